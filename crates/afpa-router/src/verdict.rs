//! The verdict of the router.

use afpa_http::target;

use crate::ids::{RequestSetId, SiteId};
use crate::question::Question;
use crate::table::{Action, Content};
use crate::variables::{Asked, expand, put_query};

/// Where a request goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict<'r, 'q> {
    /// The site it is for.
    pub site: SiteId,
    /// Its request set.
    pub set: RequestSetId,
    /// The action for it.
    pub action: &'r Action,
    /// All that is configured for it.
    pub content: &'r Content,
    /// Its path below the file-system directory, or at the server, as long as it has no other target ([`Verdict::target`]).
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
    /// The Location of a redirect; `None` when it is none, names the host of a request that has none, or when what the client
    /// has asked for has made a segment of dots in it. `spelled`: the path of the question as [`target::spell`] gives it.
    pub fn location<F>(&self, question: &Question<'_, F>, spelled: &[u8]) -> Option<Vec<u8>> {
        let Action::Redirect(redirect) = self.action else { return None };
        // The next part of the path would take its place.
        if question.host.is_empty() && redirect.location.contains("{host}") {
            return None;
        }
        let mut out = expand(&redirect.location, &self.asked(question, spelled));
        // Two slashes would make a host of the next segment (RFC 3986 section 4.2), and browsers take a backslash for one.
        if !redirect.location.starts_with("//") {
            let slashes = out.iter().take_while(|byte| matches!(byte, b'/' | b'\\')).count();
            out.drain(slashes.min(1)..slashes);
        }
        let own = has_dots(path_of(redirect.location.as_bytes()));
        (own || !has_dots(path_of(&out))).then_some(out)
    }

    /// The target that takes the place of that of a request ([`Content::target`]), with its query. `None`: there is none, or
    /// what the client has asked for has made a segment of dots in it. `spelled`: as for [`Verdict::location`].
    pub fn target<F>(&self, question: &Question<'_, F>, spelled: &[u8]) -> Option<Vec<u8>> {
        let text = self.content.target()?;
        let mut out = expand(text, &self.asked(question, spelled));
        match text.ends_with('?') {
            // The query was to be dropped.
            true => drop(out.pop_if(|last| *last == b'?')),
            false if !text.contains('?') && !text.contains("{query}") => {
                put_query(question.query, &mut out);
            }
            false => {}
        }
        let path = path_of(&out);
        (!has_dots(path) && path.starts_with(b"/")).then_some(out)
    }

    fn asked<'a, F>(&'a self, question: &Question<'a, F>, spelled: &'a [u8]) -> Asked<'a> {
        let Question { host, path, query, .. } = *question;
        let (prefix_len, conditions) = (self.prefix_len, &self.content.conditions);
        Asked { host, path, spelled, query, prefix_len, conditions }
    }
}

/// The part of a target or a URL before its query and its fragment.
fn path_of(text: &[u8]) -> &[u8] {
    text.split(|byte| matches!(byte, b'?' | b'#')).next().unwrap_or_default()
}

/// Whether a segment leads upwards, or nowhere. Servlet containers drop the part behind a semicolon before they look at dots.
fn has_dots(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').any(|segment| {
        let name = segment.split(|byte| *byte == b';').next();
        matches!(name, Some(b"." | b"..")) || target::hides_dots(segment)
    })
}
