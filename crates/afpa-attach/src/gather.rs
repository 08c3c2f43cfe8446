//! Asking the server for everything that may be answered in its place.
//!
//! Each kind of answer that the programs can give is asked for: whole, HEAD, 304, in every coding.
//! What the server does not say twice in the same words, its Date aside, is not kept.

use std::time::Duration;

use afpa_bpf::{Coding, NOT_MODIFIED_MAX, Response, Variant};
use afpa_http::date;

use crate::answer::{Answer, Asked, DATE_LENGTH, Malformed};
use crate::codings::{Class, Form, forms, plan};
use crate::permit::{Permit, Refused, permit};

/// The server, for who asks it one question after the other.
pub trait Ask {
    /// Sends a whole request, and gives the whole answer to it.
    ///
    /// # Errors
    /// When none comes, or none that can be read.
    fn ask(&mut self, asked: Asked, request: &str) -> Result<Answer, AskError>;
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The server cannot be reached, or does not answer in time. Worth a retry.
    #[error("no answer from the server: {0}")]
    Unreachable(#[from] std::io::Error),
    /// It answered in a form that cannot be kept.
    #[error("its {0}")]
    Malformed(#[from] Malformed),
}

/// What to ask for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Host values that lead to the same content. Never empty.
    pub hosts: &'a [String],
    /// The request target, as clients spell it.
    pub target: &'a str,
    /// Longest answer, head and content, that can be kept.
    pub longest: usize,
}

/// Why a target is not kept.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// No answer, or none that can be read.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The server's answer forbids it.
    #[error("{0}")]
    Refused(#[from] Refused),
    /// The answer is not what the file says. A server that keeps files open sees it late: worth a retry.
    #[error("its content is not that of the file")]
    Content,
    /// Head and content are longer than answers of the kernel may be.
    #[error("it is too long")]
    Length,
    /// The same question, another answer.
    #[error("its answers differ: {0}")]
    Differs(&'static str),
}

/// Everything that may be answered for a target.
#[derive(Debug)]
pub struct Gathered {
    /// One for each coding that is stored.
    pub variants: Vec<Stored>,
    /// To be asked for again after this.
    pub lifetime: Option<Duration>,
}

/// One coding.
#[derive(Debug)]
pub struct Stored {
    coding: Coding,
    /// None: such requests go to the server.
    answers: Option<Answers>,
}

/// A class of answers, and an Accept-Encoding that they answer.
struct Kept {
    text: Option<String>,
    answers: Answers,
    lifetime: Option<Duration>,
}

#[derive(Clone, Debug)]
struct Answers {
    whole: Answer,
    not_modified: Option<Answer>,
}

/// Ask `server` for all of it. `fits` says whether an identity body is the file's content; `sibling`
/// the same of a body in a coding.
///
/// # Errors
/// With the first reason why the target cannot be kept.
pub fn gather(
    server: &mut dyn Ask,
    wanted: &Wanted<'_>,
    fits: &dyn Fn(&Answer) -> bool,
    sibling: &dyn Fn(Coding, &Answer) -> bool,
) -> Result<Gathered, Unfit> {
    let mut talk = Talk { server, wanted };
    let whole = talk.get(&[])?;
    let Permit { varies, lifetime } = permit(&whole)?;
    if !fits(&whole) {
        return Err(Unfit::Content);
    }
    if whole.len() > wanted.longest {
        return Err(Unfit::Length);
    }
    talk.agree(&whole)?;
    let answers = talk.settle(None, whole)?;
    let mut classes = vec![Kept { text: None, answers, lifetime }];
    let plan = if varies {
        talk.classify(&mut classes, sibling)?
    } else {
        let browser = talk.get(&[("Accept-Encoding", "gzip, deflate, br, zstd")])?;
        let same = classes.first().is_some_and(|kept| kept.answers.whole.same(&browser));
        if !same {
            return Err(Unfit::Differs("by Accept-Encoding, which its Vary does not name"));
        }
        vec![(Coding::Identity, Some(0))]
    };
    let kept = |class: Class| class.and_then(|class| classes.get(class));
    let lifetime = plan.iter().filter_map(|(_, class)| kept(*class)?.lifetime).min();
    let stored = plan.iter().map(|(coding, class)| Stored {
        coding: *coding,
        answers: kept(*class).map(|kept| kept.answers.clone()),
    });
    let variants: Vec<_> = stored.collect();
    if variants.is_empty() {
        return Err(Unfit::Differs("in every coding"));
    }
    Ok(Gathered { variants, lifetime })
}

impl Gathered {
    /// Whether a tag is weak: Apache gives such tags to files of the last second, and others later.
    pub fn is_weakly_tagged(&self) -> bool {
        let answers = self.variants.iter().filter_map(|stored| stored.answers.as_ref());
        let mut tags = answers.filter_map(|answers| answers.whole.field("etag"));
        tags.any(|tag| tag.starts_with(b"W/"))
    }

    /// In the form that is pinned.
    pub fn variants(&self) -> Vec<Variant<'_>> {
        self.variants.iter().map(Stored::variant).collect()
    }
}

impl Stored {
    fn variant(&self) -> Variant<'_> {
        let whole = self.answers.as_ref().map(|answers| &answers.whole);
        Variant {
            coding: self.coding,
            etag: whole.and_then(|whole| whole.field("etag")).map(opaque).unwrap_or_default(),
            last_modified: whole.and_then(|w| w.field("last-modified")?.try_into().ok()),
            whole: whole.and_then(response),
            not_modified: self.answers.as_ref().and_then(|a| response(a.not_modified.as_ref()?)),
        }
    }
}

fn response(answer: &Answer) -> Option<Response<'_>> {
    let date_offset = answer.date_offset()?;
    Some(Response { head: answer.head(), date_offset, body: answer.body() })
}

/// The programs compare weakly (RFC 9110 section 13.1.2), without `W/`.
fn opaque(etag: &[u8]) -> &[u8] {
    etag.strip_prefix(b"W/").unwrap_or(etag)
}

/// A tag that no server gives.
const NO_TAG: &str = "\"afpa-attach-asks\"";

/// The questions about one target.
struct Talk<'a> {
    server: &'a mut dyn Ask,
    wanted: &'a Wanted<'a>,
}

impl Talk<'_> {
    fn get(&mut self, fields: &[(&str, &str)]) -> Result<Answer, AskError> {
        let host = self.wanted.hosts.first().map(String::as_str).unwrap_or_default();
        self.ask(Asked::Get, host, fields)
    }

    /// The blank before `*/*` is a tab: as valid as a space (RFC 9110 section 5.6.3), and the programs
    /// leave what is unusual to the server. So it is never the kernel that answers us.
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

    /// The other hosts must say the same, and the first one must say it again.
    fn agree(&mut self, whole: &Answer) -> Result<(), Unfit> {
        let wanted = self.wanted;
        for host in wanted.hosts.iter().skip(1).chain(wanted.hosts.first()) {
            if !self.ask(Asked::Get, host, &[])?.same(whole) {
                return Err(Unfit::Differs("by Host, or each time"));
            }
        }
        Ok(())
    }

    /// Asks in every form. `classes` holds the answer without Accept-Encoding.
    fn classify(
        &mut self,
        classes: &mut Vec<Kept>,
        sibling: &dyn Fn(Coding, &Answer) -> bool,
    ) -> Result<Vec<(Coding, Class)>, Unfit> {
        let mut results: Vec<(Form, Class)> = Vec::new();
        for form in forms() {
            let text = form.text.clone();
            let class = match self.coded(text.as_deref()) {
                Err(AskError::Unreachable(error)) => return Err(AskError::from(error).into()),
                // Chunked, for one: it is made anew each time.
                Err(AskError::Malformed(_)) => None,
                Ok(answer) => {
                    let known = classes.iter().position(|kept| kept.answers.whole.same(&answer));
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

    /// Which classes are told from the others by their tags. Apache, when it compresses, takes the tag
    /// of one coding for that of another; the programs would not.
    fn apart(&mut self, classes: &[Kept]) -> Result<Vec<bool>, AskError> {
        let tag = |kept: &Kept| {
            let tag = kept.answers.whole.field("etag").map(opaque);
            tag.map(|tag| String::from_utf8_lossy(tag).into_owned())
        };
        let mut apart = vec![true; classes.len()];
        for (kept, apart) in classes.iter().zip(&mut apart) {
            let own = tag(kept);
            let strange =
                classes.iter().filter_map(tag).filter(|other| Some(other) != own.as_ref());
            for strange in strange {
                let coding = kept.text.as_deref().map(|text| ("Accept-Encoding", text));
                let fields: Vec<_> =
                    coding.into_iter().chain([("If-None-Match", strange.as_str())]).collect();
                *apart &= self.get(&fields)?.same(&kept.answers.whole);
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

    /// An answer that was not met before: a class of its own, if it may be kept.
    fn admit(
        &mut self,
        text: Option<&str>,
        answer: Answer,
        classes: &mut Vec<Kept>,
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
                classes.push(Kept { text: text.map(str::to_owned), answers, lifetime });
            }
            Err(Unfit::Differs(_)) => return Ok(None),
            Err(other) => return Err(other),
        }
        Ok(Some(classes.len() - 1))
    }

    /// HEAD and conditional requests for one answer.
    fn settle(&mut self, text: Option<&str>, whole: Answer) -> Result<Answers, Unfit> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A server made of a function from the request to the answer.
    struct Scripted<F>(F, usize);

    impl<F: FnMut(&str) -> String> Ask for Scripted<F> {
        fn ask(&mut self, asked: Asked, request: &str) -> Result<Answer, AskError> {
            self.1 += 1;
            let mut text = (self.0)(request);
            if asked == Asked::Head {
                text.truncate(text.find("\r\n\r\n").unwrap() + 4);
            }
            Ok(Answer::read(text.as_bytes(), asked)?.expect("a whole answer"))
        }
    }

    const DATE: &str = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";

    fn ok(fields: &str, body: &str) -> String {
        format!("HTTP/1.1 200 OK\r\n{DATE}{fields}Content-Length: {}\r\n\r\n{body}", body.len())
    }

    fn gathered(server: impl FnMut(&str) -> String) -> Result<Gathered, Unfit> {
        let hosts = ["one".to_owned(), "two".to_owned()];
        let wanted = Wanted { hosts: &hosts, target: "/a", longest: 1460 };
        let fits = |answer: &Answer| answer.body() == b"content";
        gather(&mut Scripted(server, 0), &wanted, &fits, &|_, _| true)
    }

    #[test]
    fn validators_that_the_server_honours() {
        let server = |request: &str| {
            let matched = request.contains("\"tag\"") || request.contains("If-Modified-Since");
            let fields = "ETag: \"tag\"\r\nLast-Modified: Sat, 05 Nov 1994 08:49:37 GMT\r\n";
            match matched {
                true => format!("HTTP/1.1 304 Not Modified\r\n{DATE}{fields}\r\n"),
                false => ok(fields, "content"),
            }
        };
        let gathered = gathered(server).unwrap();
        let [variant] = gathered.variants()[..] else { panic!("{gathered:?}") };
        assert_eq!((variant.coding, variant.etag), (Coding::Identity, &b"\"tag\""[..]));
        assert!(variant.not_modified.is_some() && variant.last_modified.is_some());
    }

    #[test]
    fn a_server_that_compares_strongly_answers_conditions_itself() {
        let server = |request: &str| match request.contains(": \"tag\"") {
            true => format!("HTTP/1.1 304 Not Modified\r\n{DATE}ETag: \"tag\"\r\n\r\n"),
            false => ok("ETag: \"tag\"\r\n", "content"),
        };
        let gathered = gathered(server).unwrap();
        let [variant] = gathered.variants()[..] else { panic!("{gathered:?}") };
        assert!(variant.not_modified.is_none() && variant.whole.is_some());
    }

    #[test]
    fn what_is_said_differently_is_not_kept() {
        let mut count = 0;
        let counting = |_: &str| {
            count += 1;
            ok(&format!("X-Request: {count}\r\n"), "content")
        };
        assert!(matches!(gathered(counting), Err(Unfit::Differs(_))));
        let by_host = |request: &str| {
            ok(if request.contains("Host: two") { "X: two\r\n" } else { "X: one\r\n" }, "content")
        };
        assert!(matches!(gathered(by_host), Err(Unfit::Differs(_))));
        let to_head = |request: &str| {
            ok(if request.starts_with("HEAD") { "X: h\r\n" } else { "" }, "content")
        };
        assert!(matches!(gathered(to_head), Err(Unfit::Differs("to HEAD"))));
        let unsaid = |request: &str| {
            ok(if request.contains("gzip") { "Content-Encoding: gzip\r\n" } else { "" }, "content")
        };
        assert!(matches!(gathered(unsaid), Err(Unfit::Differs(_))), "Vary is missing");
        assert!(matches!(gathered(|_| ok("", "another")), Err(Unfit::Content)));
        assert!(matches!(gathered(|_| ok("Set-Cookie: a\r\n", "content")), Err(Unfit::Refused(_))));
    }

    #[test]
    fn codings_that_the_server_stores() {
        let server = |request: &str| {
            let fields = "Vary: Accept-Encoding\r\n";
            match request.contains("gzip") {
                true => ok(&format!("{fields}Content-Encoding: gzip\r\n"), "packed"),
                false => ok(fields, "content"),
            }
        };
        let gathered = gathered(server).unwrap();
        let bodies: Vec<_> = gathered
            .variants()
            .iter()
            .map(|v| (v.coding, v.whole.unwrap().body.to_vec()))
            .collect();
        assert_eq!(
            bodies,
            [(Coding::Identity, b"content".to_vec()), (Coding::Gzip, b"packed".to_vec())]
        );
    }
}
