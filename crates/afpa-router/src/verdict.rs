//! The verdict of the router.

use afpa_http::target;

use crate::ids::{RequestSetId, SiteId};
use crate::question::Question;
use crate::table::Action;

/// Where a request goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict<'r, 'q> {
    /// The site it is for.
    pub site: SiteId,
    /// Its request set.
    pub set: RequestSetId,
    /// The action for it.
    pub action: &'r Action,
    /// Its path below the file-system directory, or at the server.
    pub path: Rewritten<'r, 'q>,
    /// Bytes of the prefix that its path begins with.
    pub prefix_len: usize,
    /// Whether every GET and HEAD for this listener, host and path gets the same verdict, whatever its fields
    /// and query. Then the kernel's fast path may answer without asking the router. False for other methods.
    pub certain: bool,
}

/// A path in two parts, so that the usual path need not be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rewritten<'r, 'q> {
    /// The text that replaces the prefix; nearly always empty.
    pub head: &'r [u8],
    /// The rest of the requested path.
    pub tail: &'q [u8],
}

/// Why a request has no request set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unrouted {
    /// No site of the listener has this host: 421.
    Misdirected,
    /// The site has no request set for this request: 404.
    NotFound(SiteId),
}

impl<'r, 'q> Rewritten<'r, 'q> {
    /// The whole path; `room` is used only when it consists of two parts.
    pub fn join<'a>(&self, room: &'a mut Vec<u8>) -> &'a [u8]
    where
        'q: 'a,
        'r: 'a,
    {
        match (self.head, self.tail) {
            ([], tail) => tail,
            (head, []) => head,
            (head, tail) => {
                room.clear();
                room.extend_from_slice(head);
                room.extend_from_slice(tail);
                room
            }
        }
    }

    /// The whole path in the spelling that a server gets ([`target::spell`]), of a path that was asked for in the spelling
    /// `asked`, and is `normal` bytes long as [`target::normalise`] gives it.
    pub fn spelled<'a>(&self, asked: &'a [u8], normal: usize, room: &'a mut Vec<u8>) -> &'a [u8] {
        let tail = target::behind(asked, normal.saturating_sub(self.tail.len()));
        if self.head.is_empty() {
            return tail;
        }
        room.clear();
        target::encode(self.head, room);
        room.extend_from_slice(tail);
        room
    }
}

impl Verdict<'_, '_> {
    /// The Location of a redirect; `None` when it is none, or names the host of a request that has none. `spelled`: the path of the question as [`target::spell`] gives it.
    pub fn location<F>(&self, question: &Question<'_, F>, spelled: &[u8]) -> Option<Vec<u8>> {
        let Action::Redirect(redirect) = self.action else { return None };
        // The next part of the path would take its place.
        if question.host.is_empty() && redirect.location.contains("{host}") {
            return None;
        }
        let mut out = Vec::with_capacity(redirect.location.len() + question.path.len() + 16);
        for piece in pieces(&redirect.location) {
            match piece {
                Piece::Text(text) | Piece::Unknown(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Host => out.extend_from_slice(question.host.as_bytes()),
                Piece::Path => out.extend_from_slice(spelled),
                Piece::Rest => out.extend_from_slice(target::behind(spelled, self.prefix_len)),
                Piece::Query => encode_query(question.query, &mut out),
            }
        }
        // Two slashes would make a host of the next segment (RFC 3986 section 4.2).
        if !redirect.location.starts_with("//") {
            let slashes = out.iter().take_while(|byte| **byte == b'/').count();
            out.drain(..slashes.saturating_sub(1));
        }
        Some(out)
    }
}

/// A part of a Location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'t> {
    Text(&'t str),
    Host,
    Path,
    Rest,
    Query,
    /// An unknown name in braces.
    Unknown(&'t str),
}

/// Splits a Location into text and variables.
pub(crate) fn pieces(mut text: &str) -> impl Iterator<Item = Piece<'_>> {
    std::iter::from_fn(move || {
        if text.is_empty() {
            return None;
        }
        let open = text.find('{').unwrap_or(text.len());
        if open > 0 {
            let (plain, rest) = text.split_at(open);
            text = rest;
            return Some(Piece::Text(plain));
        }
        let end = text.find('}').map_or(text.len(), |close| close + 1);
        let (variable, rest) = text.split_at(end);
        text = rest;
        Some(match variable {
            "{host}" => Piece::Host,
            "{path}" => Piece::Path,
            "{rest}" => Piece::Rest,
            "{query}" => Piece::Query,
            unknown => Piece::Unknown(unknown),
        })
    })
}

/// Appends a query, escaping bytes that the parser of requests lets pass but a field value must not contain.
fn encode_query(query: Option<&[u8]>, out: &mut Vec<u8>) {
    let Some(query) = query else { return };
    out.push(b'?');
    for &byte in query {
        match byte {
            b'!'..=b'~' => out.push(byte),
            _ => target::encode(&[byte], out),
        }
    }
}
