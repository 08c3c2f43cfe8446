//! The questions about one target, and what their answers have in common.

use afpa_bpf::{Coding, NOT_MODIFIED_MAX};
use afpa_http::date;

use super::ask::{Ask, AskError, Unfit, Wanted};
use super::stored::{AnswerClass, Answers, opaque};
use crate::answer::{Answer, Asked, DATE_LENGTH};
use crate::codings::{Class, Form, forms, plan};
use crate::permit::{Permit, permit};

/// A tag that no server gives.
const NO_TAG: &str = "\"afpa-attach-asks\"";

/// The questions about one target.
pub(super) struct Talk<'a> {
    pub(super) server: &'a mut dyn Ask,
    pub(super) wanted: &'a Wanted<'a>,
}

impl Talk<'_> {
    pub(super) fn get(&mut self, fields: &[(&str, &str)]) -> Result<Answer, AskError> {
        let host = self.wanted.hosts.first().map(String::as_str).unwrap_or_default();
        self.ask(Asked::Get, host, fields)
    }

    /// The white space before `*/*` is a tab. It is as valid as a space (RFC 9110 section 5.6.3), but the
    /// programs leave unusual requests to the server. So the kernel never answers these requests itself.
    fn ask(
        &mut self,
        asked: Asked,
        host: &str,
        fields: &[(&str, &str)],
    ) -> Result<Answer, AskError> {
        let method = if asked == Asked::Head { "HEAD" } else { "GET" };
        let mut request = format!(
            "{method} {} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: afpa-attach\r\nAccept:\t*/*\r\n",
            self.wanted.target
        );
        for (name, value) in fields {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("\r\n");
        self.server.ask(asked, &request)
    }

    /// The other hosts must give the same answer, and the first host must give it again.
    pub(super) fn agree(&mut self, whole: &Answer) -> Result<(), Unfit> {
        let wanted = self.wanted;
        for host in wanted.hosts.iter().skip(1).chain(wanted.hosts.first()) {
            if !self.ask(Asked::Get, host, &[])?.same(whole) {
                return Err(Unfit::Differs("by Host, or each time"));
            }
        }
        Ok(())
    }

    /// Asks in every form. `classes` holds the answer without Accept-Encoding.
    pub(super) fn classify(
        &mut self,
        classes: &mut Vec<AnswerClass>,
        sibling: &dyn Fn(Coding, &Answer) -> bool,
    ) -> Result<Vec<(Coding, Class)>, Unfit> {
        let mut results: Vec<(Form, Class)> = Vec::new();
        for form in forms() {
            let text = form.text.clone();
            let class = match self.coded(text.as_deref()) {
                Err(AskError::Unreachable(error)) => return Err(AskError::from(error).into()),
                // For example chunked: the server makes it again for each request.
                Err(AskError::Malformed(_)) => None,
                Ok(answer) => {
                    let known = classes.iter().position(|class| class.answers.whole.same(&answer));
                    match known {
                        Some(known) => Some(known),
                        None => self.admit(text.as_deref(), answer, classes, sibling)?,
                    }
                }
            };
            results.push((form, class));
        }
        let apart = self.apart(classes)?;
        for (_, class) in &mut results {
            *class = class.filter(|class| apart.get(*class) == Some(&true));
        }
        Ok(plan(&results))
    }

    /// Which classes the server distinguishes by their tags. Apache, when it compresses, accepts the tag of
    /// one coding for another; the programs would not.
    fn apart(&mut self, classes: &[AnswerClass]) -> Result<Vec<bool>, AskError> {
        let tag = |class: &AnswerClass| {
            let tag = class.answers.whole.field("etag").map(opaque);
            tag.map(|tag| String::from_utf8_lossy(tag).into_owned())
        };
        let mut apart = vec![true; classes.len()];
        for (class, apart) in classes.iter().zip(&mut apart) {
            let own = tag(class);
            let strange =
                classes.iter().filter_map(tag).filter(|other| Some(other) != own.as_ref());
            for strange in strange {
                let coding = class.text.as_deref().map(|text| ("Accept-Encoding", text));
                let fields: Vec<_> =
                    coding.into_iter().chain([("If-None-Match", strange.as_str())]).collect();
                *apart &= self.get(&fields)?.same(&class.answers.whole);
            }
        }
        Ok(apart)
    }

    fn coded(&mut self, accept_encoding: Option<&str>) -> Result<Answer, AskError> {
        match accept_encoding {
            Some(text) => self.get(&[("Accept-Encoding", text)]),
            None => self.get(&[]),
        }
    }

    /// A new answer: it becomes a class of its own, if it may be pinned.
    fn admit(
        &mut self,
        text: Option<&str>,
        answer: Answer,
        classes: &mut Vec<AnswerClass>,
        sibling: &dyn Fn(Coding, &Answer) -> bool,
    ) -> Result<Class, Unfit> {
        let coding = match answer.field("content-encoding") {
            Some(b"gzip") => Coding::Gzip,
            Some(b"br") => Coding::Brotli,
            Some(b"zstd") => Coding::Zstd,
            _ => return Ok(None),
        };
        let lifetime = match permit(&answer) {
            Ok(Permit { varies: true, lifetime }) if answer.len() <= self.wanted.longest => {
                lifetime
            }
            _ => return Ok(None),
        };
        if !sibling(coding, &answer) {
            return Ok(None);
        }
        match self.settle(text, answer) {
            Ok(answers) => {
                classes.push(AnswerClass { text: text.map(str::to_owned), answers, lifetime });
            }
            Err(Unfit::Differs(_)) => return Ok(None),
            Err(other) => return Err(other),
        }
        Ok(Some(classes.len() - 1))
    }

    /// HEAD and conditional requests for one answer.
    pub(super) fn settle(&mut self, text: Option<&str>, whole: Answer) -> Result<Answers, Unfit> {
        let host = self.wanted.hosts.first().map(String::as_str).unwrap_or_default();
        let with = |field: Option<(&'static str, String)>| -> Vec<(&'static str, String)> {
            let coding = text.map(|text| ("Accept-Encoding", text.to_owned()));
            coding.into_iter().chain(field).collect()
        };
        let mut ask = |asked, field: Option<(&'static str, String)>| {
            let fields = with(field);
            let fields: Vec<_> =
                fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
            self.ask(asked, host, &fields)
        };
        if !ask(Asked::Head, None)?.same_head(&whole) {
            return Err(Unfit::Differs("to HEAD"));
        }
        if !ask(Asked::Get, Some(("If-None-Match", NO_TAG.into())))?.same(&whole) {
            return Err(Unfit::Differs("to a tag that does not match"));
        }
        let mut validators = Vec::new();
        if let Some(etag) = whole.field("etag") {
            let tag = String::from_utf8_lossy(opaque(etag)).into_owned();
            validators.push(("If-None-Match", format!("W/{tag}")));
            validators.push(("If-None-Match", tag));
        }
        if let Some(modified) = whole.field("last-modified").filter(|value| is_date(value)) {
            let date = String::from_utf8_lossy(modified).into_owned();
            validators.push(("If-Modified-Since", date));
        }
        let mut seen: Vec<Answer> = Vec::new();
        for (name, value) in validators {
            for asked in [Asked::Get, Asked::Head] {
                seen.push(ask(asked, Some((name, value.clone())))?);
            }
        }
        let first = seen.first().cloned();
        let not_modified = first.filter(|first| {
            let fits = first.date_offset().is_some() && first.len() <= NOT_MODIFIED_MAX;
            fits && seen.iter().all(|answer| answer.status() == 304 && answer.same(first))
        });
        Ok(Answers { whole, not_modified })
    }
}

fn is_date(value: &[u8]) -> bool {
    value.len() == DATE_LENGTH && date::parse(value).is_some()
}
