//! Asks a server for an error page.
//!
//! The page is read as a whole before any of it is sent, so that a server that fails costs nothing but time: the client
//! gets the built-in page then. A page is never asked for an error of a page, so nothing goes round.

use std::rc::Rc;

use afpa_framework::{Client, ClientStream, Now};
use afpa_http::{BodyLength, Version};
use afpa_proxy::exchange::{self, Core, End, Job, Passing, Report, Tap};
use afpa_proxy::pool::Share;
use afpa_proxy::request::Origin;
use afpa_proxy::response::{Asked as AskedServer, Response};

use super::{Content, Errors, LONGEST_PAGE, PageServer, Problem};
use crate::asked::Asked;
use crate::preface;
use crate::site::client_of;
use crate::{demand, own_request};

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
    pub(crate) content: Content,
}

/// The request for the page of an error. `None`: it cannot be asked for.
pub(crate) fn job(
    asked: Asked<'_, '_, '_>,
    errors: Errors<'_>,
    server: &PageServer,
    status: u16,
) -> Option<Box<Job>> {
    let path = server.path.replace("{status}", &status.to_string());
    let peer = match errors.peer {
        Client::Ip(peer) => Some(peer),
        Client::Unix => None,
    };
    let (client, origin) = client_of(&errors.pages.forwarded_from, asked.request, peer);
    let origin = Origin { secure: asked.tls.is_some(), ..origin };
    // Credentials that were wrong go to no server.
    let is_out = |name: &str| {
        let mut of_consents = errors.pages.of_consents.iter();
        status == 401 && name.eq_ignore_ascii_case("authorization")
            || of_consents.any(|own| own.eq_ignore_ascii_case(name))
    };
    let to = (&server.settings.request, origin);
    let (mut head, url_hash) = own_request::head(asked.request, &path, is_out, to)?;
    demand::tell(&mut head, &errors.pages.reserved, asked.granted);
    if let Some(edits) = asked.edits {
        head.apply(edits);
    }
    preface::end_after(&server.group, &mut head);
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
        lines: None,
        edits: None,
        replaces: None,
        compress: None,
    }))
}

/// Asks for a page. `None`: there is none, or it is no whole answer with 200, without a coding and not too long.
pub(crate) async fn ask(
    job: &mut Job,
    core: &Rc<Core>,
    client: &mut dyn ClientStream,
) -> (Option<Served>, Report) {
    let mut gathering = Gathering::of(core.pool.share(job.sharer));
    let report = exchange::run(job, core, client, Some(&mut gathering)).await;
    let is_whole = gathering.is_usable && gathering.is_whole;
    let served = is_whole && matches!(report.end, End::Relayed(_));
    (served.then(|| gathering.into_served()), report)
}

/// Reads a page for its owner.
#[derive(Debug)]
struct Gathering {
    lines: Vec<u8>,
    content: Vec<u8>,
    /// The room that it takes.
    share: Share,
    is_usable: bool,
    is_whole: bool,
}

impl Gathering {
    fn of(share: Share) -> Self {
        Self { lines: Vec::new(), content: Vec::new(), share, is_usable: false, is_whole: false }
    }

    fn into_served(self) -> Served {
        Served { lines: self.lines, content: Content::counted(self.content, self.share) }
    }
}

impl Tap for Gathering {
    fn head(&mut self, response: &Response<'_, '_>, _now: Now) -> Passing {
        let is = |name: &[u8], own: &str| name.eq_ignore_ascii_case(own.as_bytes());
        let is_coded = response.end_to_end().any(|(name, _)| is(name, "content-encoding"));
        self.lines.clear();
        self.content.clear();
        (self.is_usable, self.is_whole) = (response.status == 200 && !is_coded, false);
        let about = |name: &[u8]| is(name, "content-type") || is(name, "content-language");
        for (name, value) in response.end_to_end().filter(|(name, _)| about(name)) {
            for part in [name, b": ", value, b"\r\n"] {
                self.lines.extend_from_slice(part);
            }
        }
        Passing::Withheld
    }

    fn put_fields(&self, _out: &mut Vec<u8>) {}

    fn content(&mut self, data: &[u8]) {
        self.is_usable &= self.content.len() + data.len() <= LONGEST_PAGE;
        if self.is_usable {
            self.content.extend_from_slice(data);
            self.is_usable = self.share.reach(self.content.capacity());
        }
    }

    fn whole(&mut self, _now: Now) {
        self.is_whole = true;
    }
}
