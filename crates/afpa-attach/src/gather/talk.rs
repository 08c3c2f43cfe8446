//! The questions about one target, and what their answers have in common.

use afpa_bpf::{Coding, NOT_MODIFIED_MAX};
use afpa_http::date;

use super::answers::{AnswerClass, Answers, opaque, pinned};
use super::ask::{Ask, AskError, Unfit, Wanted};
use crate::answer::{Answer, Asked, DATE_LENGTH};
use crate::codings::{Class, Form, Plan, forms, plan};
use crate::permit::Permit;

/// A tag that no server gives.
const NO_TAG: &str = "\"afpa-attach-asks\"";

/// The field that ends a connection with the response (RFC 9112 section 9.6).
const CLOSE: (&str, &str) = ("Connection", "close");

/// The questions about one target.
pub(super) struct Talk<'a> {
    pub(super) server: &'a mut dyn Ask,
    pub(super) wanted: &'a Wanted<'a>,
    pub(super) viewpoints: usize,
}

/// A field that no server knows. The programs leave requests with unknown fields to the server, so the kernel never
/// answers these itself. The tab before the value has the same effect.
const MARK: &str = "Afpa-Attach:\task\r\n";

/// A request with these fields. Without `bare` it also has User-Agent and Accept, unless `fields` has them.
pub(super) fn request(
    wanted: &Wanted<'_>,
    asked: Asked,
    host: &str,
    fields: &[(&str, &str)],
    bare: bool,
) -> String {
    let method = if asked == Asked::Head { "HEAD" } else { "GET" };
    let mut request = format!("{method} {} HTTP/1.1\r\nHost: {host}\r\n{MARK}", wanted.target);
    let own = [("User-Agent", "afpa-attach"), ("Accept", "*/*")];
    let own = own.iter().filter(|(name, _)| !bare && !fields.iter().any(|(have, _)| have == name));
    for (name, value) in own.chain(fields) {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    request
}

impl<'a> Talk<'a> {
    pub(super) fn get(&mut self, fields: &[(&str, &str)]) -> Result<Answer, AskError> {
        let host = self.host();
        self.ask(0, Asked::Get, host, fields)
    }

    /// The name by which everything is asked.
    pub(super) fn host(&self) -> &'a str {
        self.wanted.hosts.first().map(String::as_str).unwrap_or_default()
    }

    pub(super) fn ask(
        &mut self,
        viewpoint: usize,
        asked: Asked,
        host: &str,
        fields: &[(&str, &str)],
    ) -> Result<Answer, AskError> {
        let request = request(self.wanted, asked, host, fields, false);
        self.server.ask_at(viewpoint, asked, &request)
    }

    /// Fails unless every viewpoint gets the answer, by every name: the stranger on each address, and loopback.
    pub(super) fn everywhere(&mut self, classes: &[AnswerClass], plan: &Plan) -> Result<(), Unfit> {
        const ADDRESS: Unfit =
            Unfit::Differs("by the client's address, or by the one that it calls");
        let wanted = self.wanted;
        for class in pinned(classes, plan) {
            let coding = class.coding();
            for viewpoint in 0..self.viewpoints {
                for (at, host) in wanted.hosts.iter().enumerate() {
                    if !self.ask(viewpoint, Asked::Get, host, &coding)?.same(&class.answers.whole) {
                        return Err(if at > 0 { Unfit::Differs("by Host") } else { ADDRESS });
                    }
                }
                let host = self.host();
                let head =
                    |head: Answer| !class.answers.head || head.same_head(&class.answers.whole);
                if viewpoint > 0 && !head(self.ask(viewpoint, Asked::Head, host, &coding)?) {
                    return Err(ADDRESS);
                }
                let condition = class.condition().filter(|_| viewpoint > 0);
                if let (Some(condition), Some(expected)) = (condition, &class.answers.not_modified)
                {
                    let fields = [&coding[..], &[condition]].concat();
                    if !self.ask(viewpoint, Asked::Get, host, &fields)?.same(expected) {
                        return Err(ADDRESS);
                    }
                }
            }
        }
        Ok(())
    }

    /// Compares the answers to requests that ask for the connection's end, class by class. Such an answer must differ in the Connection field
    /// alone, from every viewpoint and by every name; else such requests are left to the server.
    pub(super) fn closing(&mut self, classes: &mut [AnswerClass]) -> Result<(), Unfit> {
        for class in classes {
            class.closing = match self.closing_of(class) {
                Ok(closing) => closing,
                Err(AskError::Malformed(_)) => None,
                Err(other) => return Err(other.into()),
            };
        }
        Ok(())
    }

    /// Whether HTTP/1.0 gets the closing answers, too: in every coding, from every viewpoint, by every name.
    pub(super) fn old_alike(&mut self, classes: &[AnswerClass]) -> Result<bool, Unfit> {
        let wanted = self.wanted;
        for class in classes {
            let Some(closing) = &class.closing else { return Ok(false) };
            let coding = class.coding();
            for viewpoint in 0..self.viewpoints.max(1) {
                for host in wanted.hosts {
                    let whole = self.ask_old((viewpoint, host), Asked::Get, &coding)?;
                    if !whole.is_some_and(|whole| whole.same(&closing.whole)) {
                        return Ok(false);
                    }
                }
            }
            let at = (0, self.host());
            let head = self.ask_old(at, Asked::Head, &coding)?;
            if closing.head && !head.is_some_and(|head| head.same_head(&closing.whole)) {
                return Ok(false);
            }
            if let (Some(expected), Some(condition)) = (&closing.not_modified, class.condition()) {
                let fields = [&coding[..], &[condition]].concat();
                let said = self.ask_old(at, Asked::Get, &fields)?;
                if !said.is_some_and(|said| said.same(expected)) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// A request of HTTP/1.0; None: the answer cannot be read.
    fn ask_old(
        &mut self,
        (viewpoint, host): (usize, &str),
        asked: Asked,
        fields: &[(&str, &str)],
    ) -> Result<Option<Answer>, Unfit> {
        let request = request(self.wanted, asked, host, fields, false);
        let request = request.replacen(" HTTP/1.1\r\n", " HTTP/1.0\r\n", 1);
        match self.server.ask_at(viewpoint, asked, &request) {
            Ok(answer) => Ok(Some(answer)),
            Err(AskError::Malformed(_)) => Ok(None),
            Err(other) => Err(other.into()),
        }
    }

    fn closing_of(&mut self, class: &AnswerClass) -> Result<Option<Answers>, AskError> {
        let fields = [&class.coding()[..], &[CLOSE]].concat();
        let wanted = self.wanted;
        let mut whole: Option<Answer> = None;
        for viewpoint in 0..self.viewpoints.max(1) {
            for host in wanted.hosts {
                let answer = self.ask(viewpoint, Asked::Get, host, &fields)?;
                let same = whole.as_ref().is_none_or(|first| first.same(&answer));
                if !same || !answer.same_but_closing(&class.answers.whole, true) {
                    return Ok(None);
                }
                whole = Some(answer);
            }
        }
        let Some(whole) = whole.filter(|whole| whole.len() <= wanted.longest) else {
            return Ok(None);
        };
        let host = self.host();
        if class.answers.head && !self.ask(0, Asked::Head, host, &fields)?.same_head(&whole) {
            return Ok(None);
        }
        let kept = class.answers.not_modified.as_ref().zip(class.condition());
        let mut not_modified = None;
        if let Some((kept, condition)) = kept {
            let fields = [&fields[..], &[condition]].concat();
            let answer = self.ask(0, Asked::Get, host, &fields)?;
            let fits = answer.date_offset().is_some() && answer.len() <= NOT_MODIFIED_MAX;
            not_modified =
                Some(answer).filter(|answer| fits && answer.same_but_closing(kept, false));
        }
        let (head, weakly) = (class.answers.head, class.answers.weakly);
        Ok(Some(Answers { whole, not_modified, head, weakly }))
    }

    /// Asks in every form. `classes` holds the answer without Accept-Encoding. Without a plan, the first reason is the error.
    pub(super) fn classify(
        &mut self,
        classes: &mut Vec<AnswerClass>,
        sibling: &dyn Fn(Coding, &Answer) -> bool,
    ) -> Result<Vec<(Coding, Class)>, Unfit> {
        let mut results: Vec<(Form, Class)> = Vec::new();
        let mut why = None;
        for form in forms() {
            let text = form.text.clone();
            let class = match self.coded(text.as_deref()) {
                Err(AskError::Unreachable(error)) => return Err(AskError::from(error).into()),
                // Its end is not marked in a way that could be trusted.
                Err(AskError::Malformed(_)) => Err("its length is not told"),
                Ok(answer) => {
                    let known = classes.iter().position(|class| class.answers.whole.same(&answer));
                    match known {
                        Some(known) => Ok(known),
                        None => self.admit(text.as_deref(), answer, classes, sibling)?,
                    }
                }
            };
            why = why.or(class.err());
            results.push((form, class.ok()));
        }
        let plan = plan(&results);
        match why.filter(|_| plan.is_empty()) {
            Some(why) => Err(Unfit::Coded(why)),
            None => Ok(plan),
        }
    }

    /// Whether the server distinguishes all classes by their tags. Apache, when it compresses, accepts the tag of
    /// one coding for another; the programs would not.
    pub(super) fn apart(&mut self, classes: &[AnswerClass]) -> Result<bool, AskError> {
        let tag = |class: &AnswerClass| {
            let tag = class.answers.whole.field("etag").map(opaque);
            tag.map(|tag| String::from_utf8_lossy(tag).into_owned())
        };
        let mut apart = true;
        for class in classes {
            let own = tag(class);
            let strange =
                classes.iter().filter_map(tag).filter(|other| Some(other) != own.as_ref());
            for strange in strange {
                let fields = [&class.coding()[..], &[("If-None-Match", strange.as_str())]].concat();
                apart &= self.get(&fields)?.same(&class.answers.whole);
            }
        }
        Ok(apart)
    }

    pub(super) fn coded(&mut self, accept_encoding: Option<&str>) -> Result<Answer, AskError> {
        match accept_encoding {
            Some(text) => self.get(&[("Accept-Encoding", text)]),
            None => self.get(&[]),
        }
    }

    /// A new answer: it becomes a class of its own, or there is a reason why it may not be pinned.
    fn admit(
        &mut self,
        text: Option<&str>,
        answer: Answer,
        classes: &mut Vec<AnswerClass>,
        sibling: &dyn Fn(Coding, &Answer) -> bool,
    ) -> Result<Result<usize, &'static str>, Unfit> {
        let coding = match answer.field("content-encoding") {
            Some(b"gzip") => Coding::Gzip,
            Some(b"br") => Coding::Brotli,
            Some(b"zstd") => Coding::Zstd,
            Some(b"deflate") => return Ok(Err(DEFLATE)),
            Some(_) => return Ok(Err("with a coding that the kernel does not store")),
            None => return Ok(Err("its head depends on codings that it does not have")),
        };
        let lifetime = match self.wanted.permit(&answer) {
            Ok(Permit { lifetime, .. }) if answer.len() <= self.wanted.longest => lifetime,
            Ok(_) => return Ok(Err("it is too long then")),
            Err(_) => return Ok(Err("it may not be kept then")),
        };
        if !sibling(coding, &answer) {
            return Ok(Err("it is not the file that is stored for this coding"));
        }
        match self.settle(text, answer) {
            Ok(answers) => {
                let text = text.map(str::to_owned);
                classes.push(AnswerClass { text, answers, closing: None, lifetime });
            }
            Err(Unfit::Differs(why)) => return Ok(Err(coded(why))),
            Err(other) => return Err(other),
        }
        Ok(Ok(classes.len() - 1))
    }

    /// HEAD and conditional requests for one answer.
    pub(super) fn settle(&mut self, text: Option<&str>, whole: Answer) -> Result<Answers, Unfit> {
        let host = self.host();
        let coding = text.map(|text| ("Accept-Encoding", text));
        let mut ask = |asked, fields: &[(&str, &str)]| {
            let fields: Vec<_> = coding.into_iter().chain(fields.iter().copied()).collect();
            self.ask(0, asked, host, &fields)
        };
        // A response that is made anew for each request has no length, and some servers do not announce chunks to HEAD
        // then.
        let head = ask(Asked::Head, &[])?.same_head(&whole);
        if !head && !whole.is_chunked() {
            return Err(Unfit::Differs(TO_HEAD));
        }
        if !ask(Asked::Get, &[("If-None-Match", NO_TAG)])?.same(&whole) {
            return Err(Unfit::Differs("to a tag that does not match"));
        }
        let tag = whole.field("etag").map(|tag| String::from_utf8_lossy(opaque(tag)).into_owned());
        let weak = tag.as_ref().map(|tag| format!("W/{tag}"));
        let date = whole.field("last-modified").filter(|value| is_date(value));
        let date = date.map(|date| String::from_utf8_lossy(date).into_owned());
        let condition = |tag: Option<String>| tag.map(|tag| ("If-None-Match", tag));
        let (weak, tag) = (condition(weak), condition(tag));
        let date = date.map(|date| ("If-Modified-Since", date));
        let mut seen = |conditions: &[Vec<&Condition>]| {
            let mut seen: Vec<Answer> = Vec::new();
            for condition in conditions {
                let fields: Vec<_> =
                    condition.iter().map(|(name, value)| (*name, value.as_str())).collect();
                for asked in [Asked::Get, Asked::Head] {
                    seen.push(ask(asked, &fields)?);
                }
            }
            Ok::<_, AskError>(seen)
        };
        let mut plain = beside(tag.as_ref(), date.as_ref());
        plain.extend(date.as_ref().map(|date| vec![date]));
        let (seen_plain, seen_weak) = (seen(&plain)?, seen(&beside(weak.as_ref(), date.as_ref()))?);
        let first = seen_plain.first().cloned();
        let all = |seen: &[Answer], first: &Answer| {
            seen.iter().all(|answer| answer.status() == 304 && answer.same(first))
        };
        let not_modified = first.filter(|first| {
            let fits = first.date_offset().is_some() && first.len() <= NOT_MODIFIED_MAX;
            fits && all(&seen_plain, first)
        });
        let weakly = not_modified.as_ref().is_none_or(|first| all(&seen_weak, first));
        // A server that gives a weak tag, and does not take it, has no comparison that the programs know.
        let strong = whole.field("etag").is_none_or(|tag| !tag.starts_with(b"W/"));
        let not_modified = not_modified.filter(|_| weakly || strong);
        Ok(Answers { whole, not_modified, head, weakly })
    }
}

impl AnswerClass {
    /// The field that asks for it.
    pub(super) fn coding(&self) -> Vec<(&str, &str)> {
        self.text.iter().map(|text| ("Accept-Encoding", text.as_str())).collect()
    }

    /// A condition that it does not meet.
    pub(super) fn condition(&self) -> Option<(&str, &str)> {
        let text = |name| str::from_utf8(self.answers.whole.field(name)?).ok();
        let tag = text("etag").map(|tag| ("If-None-Match", tag));
        tag.or_else(|| Some(("If-Modified-Since", text("last-modified")?)))
    }
}

/// The programs read `deflate`, and take it for no coding at all.
const DEFLATE: &str = "also with deflate, which the kernel does not store (leave it out: in lighttpd, \
                       deflate.allowed-encodings = ( \"gzip\" ))";

/// The reason, of an answer that has a coding.
fn coded(why: &'static str) -> &'static str {
    match why {
        TO_HEAD => {
            "HEAD gets another head than GET then (store the coded file beside the other one, \
                    or leave compression to AFPA)"
        }
        other => other,
    }
}

/// A field with its value.
type Condition = (&'static str, String);

/// A condition alone, and beside the date, as browsers ask.
fn beside<'c>(tag: Option<&'c Condition>, date: Option<&'c Condition>) -> Vec<Vec<&'c Condition>> {
    let both = tag.zip(date).map(|(tag, date)| vec![tag, date]);
    [tag.map(|tag| vec![tag]), both].into_iter().flatten().collect()
}

const TO_HEAD: &str = "to HEAD";

fn is_date(value: &[u8]) -> bool {
    value.len() == DATE_LENGTH && date::parse(value).is_some()
}
