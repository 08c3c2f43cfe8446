//! Changes of fields that the operator has asked for: on answers of every kind, and on requests to servers.
//!
//! [`FieldRules`] are compiled once for a request set. [`Edits`] are those that a request meets: which rules its path
//! fits, its origin if CORS lets it in, and its marks. They change a head where it lies, at the end of a buffer, and allocate
//! nothing as long as the buffer has room. The configuration refuses the fields that frame a message.

mod cors;
mod lines;
mod rule;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::marks::{IdRule, Marks};
use crate::request::Request;
use crate::trace::{TRACEPARENT, TRACESTATE, Trace, TraceRule};
pub use cors::Cors;
use cors::origin_of;
use lines::{put_last, remove_lines};
use rule::kind_in;
pub use rule::{Change, FieldRule};

/// Most rules of one request set: a word has a bit for each.
pub const MOST_RULES: usize = 64;

/// The changes of the fields of one request set, in the order in which they are made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FieldRules {
    /// At most [`MOST_RULES`].
    pub rules: Vec<FieldRule>,
    /// Which other origins may read answers.
    pub cors: Option<Cors>,
    /// How requests have ids.
    pub id: Option<IdRule>,
    /// How requests belong to traces.
    pub trace: Option<TraceRule>,
}

/// The changes that one request meets.
#[derive(Clone, Copy, Debug)]
pub struct Edits<'a> {
    /// Of the request set.
    pub rules: &'a Arc<FieldRules>,
    /// A bit for each rule whose prefix fits.
    pub mask: u64,
    /// The origin of the request, if it is one of several that are let in.
    pub origin: Option<&'a [u8]>,
    /// The marks of the request, if the rules give it some.
    pub marks: Option<&'a Marks>,
}

/// [`Edits`] that outlive their request.
#[derive(Clone, Debug)]
pub struct KeptEdits {
    rules: Arc<FieldRules>,
    mask: u64,
    own: Option<Box<Own>>,
}

/// The parts that few requests have.
#[derive(Clone, Debug)]
struct Own {
    origin: Option<Box<[u8]>>,
    marks: Option<Marks>,
}

impl KeptEdits {
    /// As they are used.
    pub fn as_edits(&self) -> Edits<'_> {
        let Self { rules, mask, own } = self;
        let origin = own.as_ref().and_then(|own| own.origin.as_deref());
        let marks = own.as_ref().and_then(|own| own.marks.as_ref());
        Edits { rules, mask: *mask, origin, marks }
    }

    /// The rules.
    pub fn rules(&self) -> &Arc<FieldRules> {
        &self.rules
    }
}

impl FieldRules {
    /// Whether they change nothing.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.cors.is_none() && !self.marks()
    }

    /// Whether requests have marks.
    #[inline]
    pub fn marks(&self) -> bool {
        self.id.is_some() || self.trace.is_some()
    }

    /// Whether servers get a field of this name with a mark of each request.
    pub fn is_mark(&self, name: &[u8]) -> bool {
        let is = |own: &str| name.eq_ignore_ascii_case(own.as_bytes());
        self.id.as_ref().is_some_and(|rule| rule.is(name))
            || self.trace.is_some() && (is(TRACEPARENT) || is(TRACESTATE))
    }

    /// Whether answers to one URL differ from request to request.
    pub fn differs_by_request(&self) -> bool {
        self.depends_on_origin() || self.marks_answers()
    }

    /// Whether answers carry ids.
    pub fn marks_answers(&self) -> bool {
        self.id.as_ref().is_some_and(|rule| rule.in_answers)
    }

    /// Whether answers to one URL differ by the request's Origin.
    pub fn depends_on_origin(&self) -> bool {
        self.cors.as_ref().is_some_and(|cors| !cors.is_for_all())
    }

    /// Whether some answers are changed.
    pub fn changes_answers(&self) -> bool {
        self.cors.is_some()
            || self.marks_answers()
            || self.rules.iter().any(|rule| !rule.answer.is_empty())
    }

    /// Whether heads of answers from servers are not passed on, or kept, as they are.
    pub fn touches_answers(&self) -> bool {
        self.changes_answers() || self.marks()
    }

    /// Whether a rule depends on the path.
    pub fn has_prefixes(&self) -> bool {
        self.rules.iter().any(|rule| !rule.prefix.is_empty())
    }

    /// Whether servers get other fields for one path than for another.
    pub fn asks_by_path(&self) -> bool {
        self.rules.iter().any(|rule| !rule.prefix.is_empty() && !rule.request.is_empty())
    }

    /// A bit for each rule that a path fits.
    pub fn mask(&self, path: &[u8]) -> u64 {
        let rules = self.rules.iter().take(MOST_RULES).enumerate();
        let fit = rules.filter(|(_, rule)| path.starts_with(&rule.prefix));
        fit.fold(0, |mask, (place, _)| mask | 1 << place)
    }

    /// The changes for a request.
    #[inline]
    pub fn of<'a>(self: &'a Arc<Self>, path: &[u8], request: &Request<'_, 'a>) -> Edits<'a> {
        let cors = self.cors.as_ref().filter(|cors| !cors.is_for_all());
        let origin = cors.and_then(|cors| origin_of(request).filter(|origin| cors.lets_in(origin)));
        Edits { rules: self, mask: self.mask(path), origin, marks: None }
    }
}

impl<'a> Edits<'a> {
    /// The fields of the answer that depend on the request: those by which an origin that is let in may read it, and the id.
    pub fn own_fields(self) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        let id = self.rules.id.as_ref().filter(|rule| rule.in_answers);
        let id = id.zip(self.marks).map(|(rule, marks)| (&*rule.field, marks.id()));
        let origin = self.origin.map(|origin| ("Access-Control-Allow-Origin", origin));
        let credentials =
            self.origin.is_some() && self.rules.cors.as_ref().is_some_and(|cors| cors.credentials);
        let credentials = credentials.then_some(("Access-Control-Allow-Credentials", &b"true"[..]));
        origin.into_iter().chain(credentials).chain(id)
    }

    /// The changes, for a request that waits.
    pub fn keep(self) -> KeptEdits {
        let Self { rules, mask, origin, marks } = self;
        let own = || Own { origin: origin.map(Box::from), marks: marks.copied() };
        let own = (origin.is_some() || marks.is_some()).then(|| Box::new(own()));
        KeptEdits { rules: Arc::clone(rules), mask, own }
    }

    /// The same rules, without a change of any answer.
    pub fn without_changes(self) -> Self {
        Self { mask: 0, origin: None, marks: None, ..self }
    }

    /// The changes for a file whose path has this mask.
    pub fn with_mask(self, mask: u64) -> Self {
        Self { mask, ..self }
    }

    /// The fields that the changes put behind the head of an answer with this status; `None`: they also change what is there, or
    /// look at it. `has`: whether the head has a field of a name.
    pub fn added(
        self,
        status: u16,
        has: &dyn Fn(&[u8]) -> bool,
    ) -> Option<impl Iterator<Item = (&'a str, &'a [u8])> + use<'a>> {
        let met = move || self.met().filter(|rule| !rule.answer.is_empty());
        let is_free = |name: &str, before: usize| {
            !has(name.as_bytes()) && !met().take(before).any(|rule| rule.answer.puts(name))
        };
        let only_adds = met().enumerate().all(|(place, rule)| {
            let set = rule.answer.set.iter().map(|(name, _)| name);
            let mut taken_out = rule.answer.remove.iter().chain(set);
            rule.types.is_empty() && taken_out.all(|name| is_free(name, place))
        });
        let fit = met().filter(move |rule| rule.fits(status, None));
        let put = fit.flat_map(|rule| rule.answer.set.iter().chain(&rule.answer.add));
        let put = put.map(|(name, value)| (name.as_str(), value.as_bytes()));
        // A server's own id is taken out by whatever name is alike.
        (only_adds && self.rules.id.is_none()).then(|| put.chain(self.own_fields()))
    }

    /// Changes the head of an answer that begins at `begin` and ends with the buffer. `kind`: the media type of the
    /// answer that a 304 stands for.
    pub fn apply(self, out: &mut Vec<u8>, begin: usize, status: u16, kind: Option<&[u8]>) {
        self.apply_shared(out, begin, status, kind);
        // A server's own id would be a second one, or in a kept answer that of another request.
        self.remove_id(out, begin);
        for (name, value) in self.own_fields() {
            put_last(out, &[name.as_bytes(), b": ", value]);
        }
    }

    /// Removes a server's own id from a response that begins at `begin` and ends with the buffer.
    pub fn remove_id(self, out: &mut Vec<u8>, begin: usize) {
        if let Some(rule) = &self.rules.id {
            remove_lines(out, begin, |name| rule.is(name));
        }
    }

    /// The part that is the same for all requests for one URL.
    pub fn apply_shared(self, out: &mut Vec<u8>, begin: usize, status: u16, kind: Option<&[u8]>) {
        // The type of several parts is their framing (RFC 9110 section 14.6).
        let keeps = (status == 206).then_some(&b"content-type"[..]);
        for rule in self.met() {
            if rule.answer.is_empty()
                || !rule.fits(status, kind.or_else(|| kind_in(rule, out, begin)))
            {
                continue;
            }
            rule.answer.apply(out, begin, keeps);
        }
    }

    /// Changes the head of a request to a server, which is the whole buffer.
    pub fn apply_to_request(self, head: &mut Vec<u8>) {
        for rule in self.met().filter(|rule| !rule.request.is_empty()) {
            rule.request.apply(head, 0, None);
        }
        self.put_marks_with(head, Trace::line);
    }

    /// Puts the marks alone into the head of a request to a server that is asked beside the one that answers, which is
    /// the whole buffer. The request itself is the step of its trace that has asked.
    pub fn put_marks(self, head: &mut Vec<u8>) {
        self.put_marks_with(head, Trace::own_line);
    }

    fn put_marks_with<L: AsRef<[u8]>>(self, head: &mut Vec<u8>, line: impl FnOnce(&'a Trace) -> L) {
        if let (Some(rule), Some(marks)) = (&self.rules.id, self.marks) {
            remove_lines(head, 0, |name| rule.is(name));
            put_last(head, &[rule.field.as_bytes(), b": ", marks.id()]);
        }
        if let Some(trace) = self.marks.and_then(|marks| marks.trace.as_ref()) {
            let is = |name: &[u8], own: &str| name.eq_ignore_ascii_case(own.as_bytes());
            remove_lines(head, 0, |name| {
                is(name, TRACEPARENT) || is(name, TRACESTATE) && !trace.goes_on()
            });
            put_last(head, &[TRACEPARENT.as_bytes(), b": ", line(trace).as_ref()]);
        }
    }

    fn met(self) -> impl Iterator<Item = &'a FieldRule> {
        let rules = self.rules.rules.iter().take(MOST_RULES).enumerate();
        rules.filter(move |(place, _)| self.mask >> place & 1 == 1).map(|(_, rule)| rule)
    }
}
