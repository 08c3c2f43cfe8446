//! Changes of fields that the operator has asked for: on answers of every kind, and on requests to servers.
//!
//! [`FieldRules`] are compiled once for a request set. [`Edits`] are those that a request meets: which rules its path
//! fits, its origin if CORS lets it in, and its marks. They change a head where it lies, at the end of a buffer, and allocate
//! nothing as long as the buffer has room. The configuration refuses the fields that frame a message.

use std::sync::Arc;

use crate::marks::{IdRule, Marks};
use crate::request::Request;
use crate::trace::{TRACEPARENT, TRACESTATE, Trace, TraceRule};
use crate::{Method, media, syntax};

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

/// A rule with its conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FieldRule {
    /// The beginning of the URL path; empty: any.
    pub prefix: Vec<u8>,
    /// The first and the last status of each range; none: all.
    pub statuses: Vec<(u16, u16)>,
    /// Media types in lower case, or `type/*`; none: all, and answers without one.
    pub types: Vec<String>,
    /// On answers.
    pub answer: Change,
    /// On requests to servers. They have neither status nor type.
    pub request: Change,
}

/// A change of some fields: lines are removed first, then set, then added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Change {
    /// Names.
    pub remove: Vec<String>,
    /// In the place of all lines of the name.
    pub set: Vec<(String, String)>,
    /// Beside lines of the name.
    pub add: Vec<(String, String)>,
}

/// Cross-origin resource sharing (the Fetch standard, section 3.3).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cors {
    /// The origins that may read answers, `*` for all, or with `*.` before the host for those below it.
    pub origins: Vec<String>,
    /// Whether they may send cookies.
    pub credentials: bool,
    /// The value of Access-Control-Allow-Methods.
    pub methods: String,
    /// That of Access-Control-Allow-Headers; `None`: the fields that a preflight asks for.
    pub headers: Option<String>,
    /// That of Access-Control-Expose-Headers.
    pub expose: Option<String>,
    /// That of Access-Control-Max-Age.
    pub max_age: String,
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

impl Change {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.remove.is_empty() && self.set.is_empty() && self.add.is_empty()
    }

    fn takes_out(&self, name: &[u8]) -> bool {
        let is = |own: &String| own.as_bytes().eq_ignore_ascii_case(name);
        self.remove.iter().any(is) || self.set.iter().any(|(own, _)| is(own))
    }

    fn puts(&self, name: &str) -> bool {
        self.set.iter().chain(&self.add).any(|(own, _)| own.eq_ignore_ascii_case(name))
    }

    /// Changes the head that begins at `begin` and ends with the buffer. `keeps`: a name that is left alone.
    fn apply(&self, out: &mut Vec<u8>, begin: usize, keeps: Option<&[u8]>) {
        let is_kept = |name: &[u8]| keeps.is_some_and(|kept| kept.eq_ignore_ascii_case(name));
        if !(self.remove.is_empty() && self.set.is_empty()) {
            remove_lines(out, begin, |name| self.takes_out(name) && !is_kept(name));
        }
        let lines = self.set.iter().chain(&self.add);
        for (name, value) in lines.filter(|(name, _)| !is_kept(name.as_bytes())) {
            put_last(out, &[name.as_bytes(), b": ", value.as_bytes()]);
        }
    }
}

/// Removes field lines behind the first line of a head.
fn remove_lines(out: &mut Vec<u8>, begin: usize, goes: impl Fn(&[u8]) -> bool) {
    let line_end = |out: &[u8], from: usize| {
        let rest = out.get(from..).unwrap_or_default();
        rest.iter().position(|&byte| byte == b'\n').map_or(out.len(), |at| from + at + 1)
    };
    let mut read = line_end(out, begin);
    let mut write = read;
    while read < out.len() {
        let end = line_end(out, read);
        if !goes(name_of(out.get(read..end).unwrap_or_default())) {
            out.copy_within(read..end, write);
            write += end - read;
        }
        read = end;
    }
    out.truncate(write);
}

fn name_of(line: &[u8]) -> &[u8] {
    line.split(|&byte| byte == b':').next().unwrap_or_default()
}

/// Adds a line to the complete head at the end of the buffer.
fn put_last(out: &mut Vec<u8>, parts: &[&[u8]]) {
    out.truncate(out.len().saturating_sub(b"\r\n".len()));
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out.extend_from_slice(b"\r\n\r\n");
}

impl FieldRule {
    /// A 304 stands for the 200 that the client has (RFC 9110 section 15.4.5).
    fn fits(&self, status: u16, kind: Option<&[u8]>) -> bool {
        let within =
            |code: u16| self.statuses.iter().any(|&(first, last)| first <= code && code <= last);
        let by_status =
            self.statuses.is_empty() || within(status) || (status == 304 && within(200));
        by_status
            && (self.types.is_empty()
                || kind.is_some_and(|kind| media::is_listed(kind, &self.types)))
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

/// The origin of a request (RFC 6454 section 7).
fn origin_of<'b>(request: &Request<'_, 'b>) -> Option<&'b [u8]> {
    value_of(request, "origin")
}

fn value_of<'b>(request: &Request<'_, 'b>, wanted: &str) -> Option<&'b [u8]> {
    request.fields().find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value)
}

impl Cors {
    /// The fields of which there are no others beside it.
    const OWN: [&str; 3] = [
        "Access-Control-Allow-Origin",
        "Access-Control-Allow-Credentials",
        "Access-Control-Expose-Headers",
    ];

    /// Whether it decides about a field of answers.
    pub fn writes(name: &str) -> bool {
        Self::OWN.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// Whether every origin may read answers, so that they are the same for all.
    pub fn is_for_all(&self) -> bool {
        self.origins.iter().any(|origin| origin == "*")
    }

    /// The changes that are the same for all origins. A server's own fields would contradict them, and caches have to
    /// know that answers differ.
    pub fn rule(&self) -> FieldRule {
        let own = Self::OWN.map(str::to_owned).to_vec();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let all = self.is_for_all().then(|| pair("Access-Control-Allow-Origin", "*"));
        let expose = self.expose.iter().map(|names| pair("Access-Control-Expose-Headers", names));
        let vary = (!self.is_for_all()).then(|| pair("Vary", "Origin"));
        let add = all.into_iter().chain(expose).chain(vary).collect();
        let answer = Change { remove: own, add, ..Change::default() };
        FieldRule { answer, ..FieldRule::default() }
    }

    /// Whether an origin may read answers.
    pub fn lets_in(&self, origin: &[u8]) -> bool {
        self.origins.iter().any(|known| match known.split_once("*.") {
            Some((scheme, host)) => is_below(origin, scheme.as_bytes(), host.as_bytes()),
            None => known == "*" || origin.eq_ignore_ascii_case(known.as_bytes()),
        })
    }

    /// The fields of the answer to a preflight, without Access-Control-Allow-Origin; none for an origin that is not let
    /// in. `None`: the request is no preflight.
    pub fn preflight<'a>(
        &'a self,
        request: &Request<'_, 'a>,
    ) -> Option<impl Iterator<Item = (&'static str, &'a [u8])>> {
        let origin = origin_of(request).filter(|_| request.method == Method::Options)?;
        value_of(request, "access-control-request-method")?;
        let asked = value_of(request, "access-control-request-headers");
        let headers = self.headers.as_deref().map(str::as_bytes).or(asked);
        let fields = [
            ("Access-Control-Allow-Methods", Some(self.methods.as_bytes())),
            ("Access-Control-Allow-Headers", headers),
            ("Access-Control-Max-Age", Some(self.max_age.as_bytes())),
        ];
        let lets_in = self.lets_in(origin);
        let fields = fields.into_iter().filter(move |_| lets_in);
        Some(
            fields
                .filter_map(|(name, value)| Some((name, value.filter(|value| !value.is_empty())?))),
        )
    }
}

/// Whether an origin has this scheme, and a host with at least one label before `host`.
fn is_below(origin: &[u8], scheme: &[u8], host: &[u8]) -> bool {
    let Some((start, rest)) = origin.split_at_checked(scheme.len()) else { return false };
    let Some((labels, end)) =
        rest.len().checked_sub(host.len()).and_then(|at| rest.split_at_checked(at))
    else {
        return false;
    };
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let labels = labels.strip_suffix(b".").unwrap_or_default();
    start.eq_ignore_ascii_case(scheme)
        && end.eq_ignore_ascii_case(host)
        && !labels.is_empty()
        && labels.iter().all(is_name)
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
        if let Some(rule) = &self.rules.id {
            remove_lines(out, begin, |name| rule.is(name));
        }
        for (name, value) in self.own_fields() {
            put_last(out, &[name.as_bytes(), b": ", value]);
        }
    }

    /// Removes a server's own id from an interim response that begins at `begin` and ends with the buffer.
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

/// The media type in a head, if a rule asks for it.
fn kind_in<'h>(rule: &FieldRule, out: &'h [u8], begin: usize) -> Option<&'h [u8]> {
    if rule.types.is_empty() {
        return None;
    }
    let lines = out.get(begin..)?.split(|&byte| byte == b'\n').skip(1);
    let mut types = lines.filter(|line| name_of(line).eq_ignore_ascii_case(b"content-type"));
    let line = types.next()?;
    line.get(b"content-type:".len()..).map(syntax::trim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marks::RequestId;
    use crate::{FieldSlots, RequestLimits, request};

    fn texts(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn edited(rules: &FieldRules, head: &str, status: u16, path: &str) -> String {
        let rules = &Arc::new(rules.clone());
        let edits = Edits { rules, mask: rules.mask(path.as_bytes()), origin: None, marks: None };
        let mut out = format!("before\r\n{head}").into_bytes();
        edits.apply(&mut out, b"before\r\n".len(), status, None);
        let text = String::from_utf8(out).unwrap();
        text.strip_prefix("before\r\n").unwrap().to_owned()
    }

    const HEAD: &str = "HTTP/1.1 200 OK\r\nServer: afpa\r\nX-A: 1\r\nContent-Type: text/html; charset=utf-8\r\nx-a: 2\r\n\r\n";

    #[test]
    fn lines_are_removed_set_and_added_in_the_order_of_the_rules() {
        let first = Change {
            remove: texts(&["SERVER", "absent"]),
            set: pairs(&[("X-A", "3"), ("X-B", "4")]),
            add: pairs(&[("X-B", "5")]),
        };
        let second = Change { set: pairs(&[("x-b", "6")]), ..Change::default() };
        let rule = |answer| FieldRule { answer, ..FieldRule::default() };
        let rules = FieldRules { rules: vec![rule(first.clone())], ..FieldRules::default() };
        let begin = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nX-A: 3\r\n";
        assert_eq!(edited(&rules, HEAD, 200, "/"), format!("{begin}X-B: 4\r\nX-B: 5\r\n\r\n"));
        let rules = FieldRules { rules: vec![rule(first), rule(second)], ..FieldRules::default() };
        assert_eq!(edited(&rules, HEAD, 200, "/"), format!("{begin}x-b: 6\r\n\r\n"));
    }

    #[test]
    fn what_is_only_put_behind_a_head_is_told_without_it() {
        let change = |remove: &[&str], set: &[(&str, &str)], add: &[(&str, &str)]| Change {
            remove: texts(remove),
            set: pairs(set),
            add: pairs(add),
        };
        let rule = |answer| FieldRule { answer, ..FieldRule::default() };
        let of_errors = |answer| FieldRule { statuses: vec![(400, 599)], ..rule(answer) };
        let of_text = |answer| FieldRule { types: texts(&["text/html"]), ..rule(answer) };
        let alternative = || change(&[], &[("Alt-Svc", "h3")], &[]);
        let id = || Some(IdRule { field: "X-A".into(), in_answers: false });
        for (rules, id, is_told) in [
            (vec![], None, true),
            (vec![rule(alternative())], None, true),
            (
                vec![rule(change(&["X-C"], &[("X-D", "1")], &[("X-D", "2"), ("x-a", "3")]))],
                None,
                true,
            ),
            (vec![of_errors(change(&[], &[], &[("X-E", "1")])), rule(alternative())], None, true),
            (vec![rule(change(&["x-A"], &[], &[]))], None, false),
            (vec![rule(change(&[], &[("server", "none")], &[]))], None, false),
            (vec![rule(alternative()), rule(change(&["ALT-SVC"], &[], &[]))], None, false),
            (vec![of_text(change(&[], &[], &[("X-E", "1")]))], None, false),
            (vec![rule(change(&[], &[], &[("X-E", "1")]))], id(), false),
        ] {
            let rules = FieldRules { rules, id, ..FieldRules::default() };
            let shared = &Arc::new(rules.clone());
            let edits = Edits { rules: shared, mask: u64::MAX, origin: None, marks: None };
            let has = |name: &[u8]| {
                HEAD.lines().any(|line| name_of(line.as_bytes()).eq_ignore_ascii_case(name))
            };
            let added = edits.added(200, &has).map(|fields| {
                let lines =
                    fields.map(|(name, value)| format!("{name}: {}\r\n", value.escape_ascii()));
                format!("{}{}\r\n", HEAD.strip_suffix("\r\n").unwrap(), lines.collect::<String>())
            });
            let expected = is_told.then(|| edited(&rules, HEAD, 200, "/"));
            assert_eq!(added, expected, "{rules:?}");
        }
    }

    #[test]
    fn conditions_are_path_status_and_type() {
        let rule = |prefix: &str, statuses: &[(u16, u16)], types: &[&str]| FieldRules {
            rules: vec![FieldRule {
                prefix: prefix.into(),
                statuses: statuses.to_vec(),
                types: texts(types),
                answer: Change { add: pairs(&[("X", "y")]), ..Change::default() },
                ..FieldRule::default()
            }],
            ..FieldRules::default()
        };
        for (rules, status, path, met) in [
            (rule("", &[], &[]), 404, "/", true),
            (rule("/a/", &[], &[]), 200, "/a/b", true),
            (rule("/a/", &[], &[]), 200, "/b/a/", false),
            (rule("", &[(400, 499), (503, 503)], &[]), 404, "/", true),
            (rule("", &[(400, 499), (503, 503)], &[]), 502, "/", false),
            (rule("", &[(200, 299)], &[]), 304, "/", true),
            (rule("", &[(304, 304)], &[]), 200, "/", false),
            (rule("", &[(206, 206)], &[]), 304, "/", false),
            (rule("", &[], &["text/html"]), 200, "/", true),
            (rule("", &[], &["text/*"]), 200, "/", true),
            (rule("", &[], &["text/htm"]), 200, "/", false),
            (rule("", &[], &["image/*"]), 200, "/", false),
        ] {
            let text = edited(&rules, HEAD, status, path);
            assert_eq!(text.contains("X: y\r\n"), met, "{rules:?} {status} {path}");
        }
        let bare = "HTTP/1.1 204 No Content\r\n\r\n";
        assert_eq!(edited(&rule("", &[], &["text/html"]), bare, 204, "/"), bare);
    }

    #[test]
    fn the_type_of_several_parts_stays() {
        let answer = Change { set: pairs(&[("Content-Type", "a/b")]), ..Change::default() };
        let rule = FieldRule { answer, ..FieldRule::default() };
        let rules = FieldRules { rules: vec![rule], ..FieldRules::default() };
        assert_eq!(edited(&rules, HEAD, 206, "/"), HEAD);
        assert!(edited(&rules, HEAD, 200, "/").ends_with("x-a: 2\r\nContent-Type: a/b\r\n\r\n"));
    }

    #[test]
    fn nothing_is_allocated_while_there_is_room() {
        let answer = Change { remove: texts(&["Server"]), ..Change::default() };
        let rules = FieldRules {
            rules: vec![FieldRule { answer, ..FieldRule::default() }],
            ..FieldRules::default()
        };
        let rules = Arc::new(rules);
        let edits = Edits { rules: &rules, mask: 1, origin: Some(b"https://a"), marks: None };
        let mut out = Vec::with_capacity(256);
        out.extend_from_slice(HEAD.as_bytes());
        let before = out.as_ptr();
        edits.apply(&mut out, 0, 200, None);
        assert_eq!(out.as_ptr(), before);
        assert!(out.ends_with(b"Access-Control-Allow-Origin: https://a\r\n\r\n"));
    }

    #[test]
    fn an_id_stands_alone_on_requests_and_answers() {
        let marked = |in_answers| {
            let id = IdRule { field: "X-Id".to_owned(), in_answers };
            Arc::new(FieldRules { id: Some(id), ..FieldRules::default() })
        };
        let marks = Marks { id: RequestId::given(b"own"), trace: None };
        let (rules, quiet) = (marked(true), marked(false));
        assert!(rules.differs_by_request() && rules.changes_answers() && !rules.is_empty());
        assert!(!quiet.differs_by_request() && !quiet.changes_answers() && !quiet.is_empty());
        assert!(rules.is_mark(b"x_ID") && !rules.is_mark(b"X-Ids"));
        let edits = |rules| Edits { rules, mask: 0, origin: None, marks: Some(&marks) };
        let mut request = b"GET / HTTP/1.1\r\nHost: a\r\nx-id: his\r\nX_Id: hers\r\n\r\n".to_vec();
        edits(&quiet).apply_to_request(&mut request);
        assert_eq!(request, b"GET / HTTP/1.1\r\nHost: a\r\nX-Id: own\r\n\r\n");
        let served = b"HTTP/1.1 200 OK\r\nX-ID: server\r\nA: b\r\n\r\n";
        let mut answer = served.to_vec();
        edits(&rules).apply(&mut answer, 0, 200, None);
        assert_eq!(answer, b"HTTP/1.1 200 OK\r\nA: b\r\nX-Id: own\r\n\r\n");
        let mut answer = served.to_vec();
        edits(&quiet).keep().as_edits().apply(&mut answer, 0, 200, None);
        assert_eq!(answer, b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n");
    }

    #[test]
    fn origins_are_whole_or_below_a_host() {
        let origins =
            texts(&["https://app.example", "https://*.example.org", "http://*.dev.test:8080"]);
        let cors = Cors { origins, ..Cors::default() };
        for origin in [
            "https://app.example",
            "https://APP.example",
            "https://a.example.org",
            "https://a.b.example.org",
            "http://x.dev.test:8080",
        ] {
            assert!(cors.lets_in(origin.as_bytes()), "{origin}");
        }
        for origin in [
            "http://app.example",
            "https://app.example:8443",
            "https://app.example.evil",
            "https://example.org",
            "https://.example.org",
            "https://evilexample.org",
            "https://evil/.example.org",
            "https://evil:1.example.org",
            "http://a.example.org",
            "http://x.dev.test",
            "null",
            "",
        ] {
            assert!(!cors.lets_in(origin.as_bytes()), "{origin}");
        }
    }

    #[test]
    fn a_preflight_is_an_options_request_that_asks_for_a_method() {
        let cors = Cors {
            origins: texts(&["https://a"]),
            methods: "GET, PUT".to_owned(),
            max_age: "60".to_owned(),
            ..Cors::default()
        };
        let fields = |head: &str| {
            let mut slots = FieldSlots::default();
            let parsed = request::parse(head.as_bytes(), &mut slots, &RequestLimits::default());
            let parsed = parsed.unwrap().unwrap();
            let fields = cors.preflight(&parsed)?;
            Some(
                fields
                    .map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value)))
                    .collect::<Vec<_>>(),
            )
        };
        let asked = "Access-Control-Request-Method: PUT\r\n";
        let head =
            |method: &str, lines: &str| format!("{method} / HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
        assert_eq!(fields(&head("GET", &format!("Origin: https://a\r\n{asked}"))), None);
        assert_eq!(fields(&head("OPTIONS", "Origin: https://a\r\n")), None);
        assert_eq!(fields(&head("OPTIONS", asked)), None);
        assert_eq!(
            fields(&head("OPTIONS", &format!("Origin: https://b\r\n{asked}"))),
            Some(vec![])
        );
        let lines = format!("Origin: https://a\r\n{asked}Access-Control-Request-Headers: x-a\r\n");
        let expected = [
            "Access-Control-Allow-Methods: GET, PUT",
            "Access-Control-Allow-Headers: x-a",
            "Access-Control-Max-Age: 60",
        ];
        assert_eq!(fields(&head("OPTIONS", &lines)), Some(texts(&expected)));
    }
}
