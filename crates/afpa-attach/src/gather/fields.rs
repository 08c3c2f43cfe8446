//! Which request fields matter to an answer: the server is asked with decoys.

use afpa_bpf::Coding;
use afpa_http::request::{FieldClass, FieldClasses};

use super::answers::{AnswerClass, Answers};
use super::ask::{AskError, Unfit};
use super::talk::{Talk, request};
use crate::answer::{Answer, Asked};
use crate::codings::Class;
use crate::decoys::{Decoy, decoys, together};

impl Talk<'_> {
    /// The classes of fields that matter to none of the stored answers. If such a field changes the response to HEAD
    /// or to a conditional request, the server answers these requests. If one field that matters is enough to refuse
    /// the answer, the search ends once it is found.
    pub(super) fn fields(
        &mut self,
        classes: &mut [AnswerClass],
        plan: &[(Coding, Class)],
    ) -> Result<FieldClasses, Unfit> {
        let mut unimportant = self.wanted.fields(classes);
        let stored = |at: usize| plan.iter().any(|(_, class)| *class == Some(at));
        let mut first = true;
        for (_, class) in classes.iter().enumerate().filter(|(at, _)| stored(*at)) {
            if !self.bare(class)?.same(&class.answers.whole) {
                return Err(Unfit::Differs("when the client does not say what it is"));
            }
            if first || !self.all_together(class, unimportant)? {
                let left = self.one_by_one(class, unimportant)?;
                if self.wanted.kept && left != unimportant {
                    return Ok(left);
                }
                unimportant = left;
            }
            first = false;
        }
        // Fields that do not matter alone may matter together.
        for (at, class) in classes.iter_mut().enumerate() {
            if !stored(at) {
                continue;
            }
            if !self.all_together(class, unimportant)? {
                return Ok(FieldClasses::NONE);
            }
            self.other_kinds(class, unimportant)?;
        }
        Ok(unimportant)
    }

    /// Whether the answer stays the same with decoys of all fields at once. These few questions find most answers that
    /// depend on the client, before all others are asked.
    pub(super) fn seems_alike(&mut self, whole: &Answer) -> Result<bool, AskError> {
        let answers =
            Answers { whole: whole.clone(), not_modified: None, head: false, weakly: true };
        let class = AnswerClass { text: None, answers, closing: None, lifetime: None };
        let fields = self.wanted.fields(std::slice::from_ref(&class));
        self.all_together(&class, fields)
    }

    /// A request that says nothing of the client.
    fn bare(&mut self, class: &AnswerClass) -> Result<Answer, AskError> {
        let request = request(self.wanted, Asked::Get, self.host(), &class.coding(), true);
        self.server.ask_at(0, Asked::Get, &request)
    }

    /// The members of `classes` whose decoys change nothing.
    fn one_by_one(
        &mut self,
        answer: &AnswerClass,
        mut classes: FieldClasses,
    ) -> Result<FieldClasses, AskError> {
        for class in members(classes) {
            for decoy in decoys(class, self.host()) {
                if !self.unchanged(answer, &decoy)? {
                    classes = classes.without(class);
                    if self.wanted.kept {
                        return Ok(classes);
                    }
                    break;
                }
            }
        }
        Ok(classes)
    }

    /// Whether decoys of all the classes at once change nothing.
    fn all_together(
        &mut self,
        answer: &AnswerClass,
        classes: FieldClasses,
    ) -> Result<bool, AskError> {
        for decoy in together(members(classes), self.host()) {
            if !self.unchanged(answer, &decoy)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn other_kinds(
        &mut self,
        class: &mut AnswerClass,
        classes: FieldClasses,
    ) -> Result<(), AskError> {
        let Some(decoy) = together(members(classes), self.host()).into_iter().next() else {
            return Ok(());
        };
        let decoy: Vec<_> = decoy.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let fields = [&class.coding()[..], &decoy].concat();
        let head = self.ask(0, Asked::Head, self.host(), &fields)?.same_head(&class.answers.whole);
        let same = match (class.condition(), &class.answers.not_modified) {
            (Some(condition), Some(expected)) => {
                let fields = [&fields[..], &[condition]].concat();
                self.ask(0, Asked::Get, self.host(), &fields)?.same(expected)
            }
            _ => true,
        };
        class.answers.head &= head;
        if !same {
            class.answers.not_modified = None;
        }
        Ok(())
    }

    fn unchanged(&mut self, class: &AnswerClass, decoy: &Decoy) -> Result<bool, AskError> {
        let decoy = decoy.iter().map(|(name, value)| (*name, value.as_str()));
        let fields: Vec<_> = class.coding().into_iter().chain(decoy).collect();
        match self.get(&fields) {
            Ok(answer) => Ok(answer.same(&class.answers.whole)),
            Err(AskError::Malformed(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// The members of a set.
pub(super) fn members(classes: FieldClasses) -> impl Iterator<Item = FieldClass> + Clone {
    FieldClass::ALL.iter().copied().filter(move |class| classes.contains(*class))
}
