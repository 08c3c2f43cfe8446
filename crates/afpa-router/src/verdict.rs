//! What the router answers.

use afpa_http::target;

use crate::question::Question;
use crate::table::{Action, RequestSetId, SiteId};

/// Where a request goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict<'r, 'q> {
    /// The site it is for.
    pub site: SiteId,
    /// Its request set.
    pub set: RequestSetId,
    /// What is done with it.
    pub action: &'r Action,
    /// Its path below the file-system directory, or at the server.
    pub path: Rewritten<'r, 'q>,
    /// Bytes of the prefix that its path begins with.
    pub prefix_len: usize,
    /// Whether every GET and HEAD of this listener, host and path gets the same verdict, whatever
    /// its fields and query: then its answer may be given without asking again. False for other
    /// methods.
    pub certain: bool,
}

/// A path in two parts, so that nothing needs to be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rewritten<'r, 'q> {
    /// What was put in the place of the prefix; nearly always empty.
    pub head: &'r [u8],
    /// What was left of the path that was asked.
    pub tail: &'q [u8],
}

/// There is no request set for it.
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
}

impl Verdict<'_, '_> {
    /// The Location of a redirect; `None` when it is none.
    pub fn location<F>(&self, question: &Question<'_, F>) -> Option<Vec<u8>> {
        let Action::Redirect(redirect) = self.action else { return None };
        let mut out = Vec::with_capacity(redirect.location.len() + question.path.len() + 16);
        for piece in pieces(&redirect.location) {
            match piece {
                Piece::Text(text) | Piece::Unknown(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Host => out.extend_from_slice(question.host.as_bytes()),
                Piece::Path => target::encode(question.path, &mut out),
                Piece::Rest => {
                    target::encode(
                        question.path.get(self.prefix_len..).unwrap_or_default(),
                        &mut out,
                    );
                }
                Piece::Query => encode_query(question.query, &mut out),
            }
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
    /// A name in braces that stands for nothing.
    Unknown(&'t str),
}

/// Text and variables of a Location.
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

/// A query may hold what a field value may not, as far as the parser of requests is concerned.
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
