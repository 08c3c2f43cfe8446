//! Asks a server for an error page.
//!
//! The page is read as a whole before any of it is sent, so that a server that fails costs nothing but time: the client
//! gets the built-in page then. A page is never asked for an error of a page, so nothing goes round.

use std::rc::Rc;

use afpa_framework::{Client, ClientStream, Now};
use afpa_http::{BodyLength, FieldSlots, Request, RequestLimits, Version, request};
use afpa_proxy::exchange::{self, Core, End, Job, Passing, Report, Tap};
use afpa_proxy::request::{Origin, RequestHead};
use afpa_proxy::response::{Asked as AskedServer, Response};
use afpa_proxy::select::url_hash;

use super::{Errors, LONGEST_PAGE, PageServer, Problem};
use crate::asked::Asked;
use crate::preface;
use crate::site::client_of;

/// An error whose page a server gives.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) problem: Problem,
    /// The request for the page.
    pub(crate) job: Box<Job>,
}

/// A page that a server has given.
#[derive(Debug, Default)]
pub(crate) struct Served {
    /// Field lines about the content.
    pub(crate) lines: Vec<u8>,
    pub(crate) content: Vec<u8>,
}

/// The request for the page of an error. `None`: it cannot be asked for.
pub(crate) fn job(
    asked: Asked<'_, '_, '_>,
    errors: Errors<'_>,
    server: &PageServer,
    status: u16,
) -> Option<Box<Job>> {
    let path = server.path.replace("{status}", &status.to_string());
    let text = question(asked.request, &path, status);
    let mut slots = FieldSlots::default();
    let limits =
        RequestLimits { head: usize::MAX, request_line: usize::MAX, ..RequestLimits::default() };
    let parsed = request::parse(&text, &mut slots, &limits).ok()??;
    let peer = match errors.peer {
        Client::Ip(peer) => Some(peer),
        Client::Unix => None,
    };
    let (client, origin) = client_of(&errors.pages.forwarded_from, asked.request, peer);
    let origin = Origin { secure: asked.tls.is_some(), ..origin };
    let (path, query) =
        path.split_once('?').map_or((&*path, None), |(path, query)| (path, Some(query)));
    let mut head = RequestHead::default();
    head.write(&parsed, path.as_bytes(), &server.settings.request, origin).ok()?;
    if let Some(edits) = asked.edits {
        head.apply(edits);
    }
    let url_hash = url_hash(path.as_bytes(), query.map(str::as_bytes));
    Some(Box::new(Job {
        group: server.group.clone(),
        settings: server.settings.clone(),
        head,
        fastcgi: None,
        // It is a question of AFPA itself.
        preface: preface::of(&server.group, None, 0, None),
        body: BodyLength::None,
        asked: AskedServer { head: false, upgrade: false, trailers: false, tunnel: false },
        // The client gets no interim response for the page.
        version: Version::Http10,
        keep_alive: !asked.must_close,
        idempotent: true,
        url_hash,
        client,
        sharer: None,
        cookie: None,
        affinity: None,
        names_server: true,
        over_tls: asked.tls.is_some(),
        hsts: None,
        edits: None,
        replaces: None,
        compress: None,
    }))
}

/// A GET request for a path, with those fields of another request that are not about its method, its content, a part of
/// an answer, or its connection; nor credentials that were wrong.
fn question(request: &Request<'_, '_>, path: &str, status: u16) -> Vec<u8> {
    let is_wrong = |name: &str| status == 401 && name.eq_ignore_ascii_case("authorization");
    let host = request.host.as_bytes();
    let version = if request.host.is_absent() { "1.0" } else { "1.1" };
    let mut text = format!("GET {path} HTTP/{version}\r\n").into_bytes();
    let mut put = |name: &[u8], value: &[u8]| {
        [name, b": ", value, b"\r\n"].iter().for_each(|part| text.extend_from_slice(part));
    };
    if !request.host.is_absent() {
        put(b"Host", host);
    }
    let lines = || request.fields();
    let connection = lines().filter(|(name, _)| name.eq_ignore_ascii_case("connection"));
    let nominated: Vec<&[u8]> =
        connection.flat_map(|(_, value)| value.split(|&byte| byte == b',')).collect();
    for (name, value) in lines() {
        let is_nominated =
            nominated.iter().any(|own| own.trim_ascii().eq_ignore_ascii_case(name.as_bytes()));
        if !is_left_out(name) && !is_wrong(name) && !is_nominated {
            put(name.as_bytes(), value);
        }
    }
    text.extend_from_slice(b"\r\n");
    text
}

fn is_left_out(name: &str) -> bool {
    const NAMES: [&str; 14] = [
        "accept-encoding",
        "connection",
        "early-data",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "max-forwards",
        "range",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "priority",
    ];
    const BEGINNINGS: [&str; 3] = ["content-", "if-", "sec-websocket-"];
    let name = name.to_ascii_lowercase();
    NAMES.contains(&&*name) || BEGINNINGS.iter().any(|begin| name.starts_with(begin))
}

/// Asks for a page. `None`: there is none, or it is no whole answer with 200, without a coding and not too long.
pub(crate) async fn ask<C: ClientStream>(
    job: &mut Job,
    core: &Rc<Core>,
    client: &mut C,
) -> (Option<Served>, Report) {
    let mut gathering = Gathering::default();
    let report = exchange::run(job, core, client, Some(&mut gathering)).await;
    let is_whole = gathering.is_usable && gathering.is_whole;
    let served = is_whole && matches!(report.end, End::Relayed(_));
    (served.then_some(gathering.served), report)
}

/// Reads a page for its owner.
#[derive(Debug, Default)]
struct Gathering {
    served: Served,
    is_usable: bool,
    is_whole: bool,
}

impl Tap for Gathering {
    fn head(&mut self, response: &Response<'_, '_>, _now: Now) -> Passing {
        let is = |name: &[u8], own: &str| name.eq_ignore_ascii_case(own.as_bytes());
        let is_coded = response.end_to_end().any(|(name, _)| is(name, "content-encoding"));
        *self = Self { is_usable: response.status == 200 && !is_coded, ..Self::default() };
        let about = |name: &[u8]| is(name, "content-type") || is(name, "content-language");
        for (name, value) in response.end_to_end().filter(|(name, _)| about(name)) {
            for part in [name, b": ", value, b"\r\n"] {
                self.served.lines.extend_from_slice(part);
            }
        }
        Passing::Withheld
    }

    fn put_fields(&self, _out: &mut Vec<u8>) {}

    fn content(&mut self, data: &[u8]) {
        let content = &mut self.served.content;
        self.is_usable &= content.len() + data.len() <= LONGEST_PAGE;
        if self.is_usable {
            content.extend_from_slice(data);
        }
    }

    fn whole(&mut self, _now: Now) {
        self.is_whole = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_for_a_page_is_a_plain_get() {
        let head = b"POST /x?y HTTP/1.1\r\nHost: a.test:80\r\nCookie: b=c\r\nContent-Type: text/plain\r\n\
            Content-Length: 3\r\nIf-Match: \"x\"\r\nRange: bytes=0-1\r\nConnection: X-Own, keep-alive\r\nX-Own: 1\r\n\
            Expect: 100-continue\r\nAccept-Encoding: br\r\nAuthorization: Basic YTpi\r\nX-Kept: 2\r\n\r\n";
        let mut slots = FieldSlots::default();
        let parsed = request::parse(head, &mut slots, &RequestLimits::default()).unwrap().unwrap();
        let text = String::from_utf8(question(&parsed, "/e/404.html?a", 404)).unwrap();
        let wanted = "GET /e/404.html?a HTTP/1.1\r\nHost: a.test:80\r\nCookie: b=c\r\nAuthorization: Basic YTpi\r\nX-Kept: 2\r\n\r\n";
        assert_eq!(text, wanted);
        let text = question(&parsed, "/e/401.html", 401);
        assert!(!String::from_utf8(text).unwrap().contains("Authorization"), "it was wrong");
    }
}
