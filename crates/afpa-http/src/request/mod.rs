//! Request heads: a strict layer over `httparse` (RFC 9112 sections 2, 3, 5 and 6).
//!
//! [`parse`] reads a head in one pass of `httparse` and one pass over the fields, and allocates
//! nothing. It refuses what `httparse` alone lets through; `scan.rs` says what that is.
//! No answer depends on how the bytes were split by the network: each prefix of a head that will
//! be refused is either refused for the same reason already or still incomplete.

mod classes;
mod fields;
mod form;
mod framing;
mod host;
mod limits;
mod refusal;
mod said;
mod scan;
mod version;

pub use classes::{CLASSED, FieldClass, FieldClasses};
pub use fields::{FieldSlots, Fields, Known, KnownSet, MAX_FIELDS, Values};
pub use form::{Scheme, Target};
pub use framing::BodyLength;
pub use host::Host;
pub use limits::RequestLimits;
pub use refusal::Refusal;
pub use said::Said;
pub use version::Version;

use crate::Method;
use fields::Index;
use scan::Scan;

/// A request head that passed every check.
#[derive(Debug)]
pub struct Request<'s, 'b> {
    /// The method; unknown ones are not refused here.
    pub method: Method<'b>,
    /// The version of the request line.
    pub version: Version,
    /// The request target in its form.
    pub target: Target<'b>,
    /// The request target as it was sent, for logs.
    pub raw_target: &'b [u8],
    /// How often `target` has got another path and query ([`Request::rewrite`]).
    pub rewrites: u8,
    /// The authority the request is for: that of an absolute or authority form, else the Host
    /// field (RFC 9112 sections 3.2.2 and 3.3). Absent only in HTTP/1.0.
    pub host: Host<'b>,
    /// Whether the client wants the connection kept (RFC 9112 section 9.3).
    pub keep_alive: bool,
    /// The body that follows the head on the connection.
    pub body: BodyLength,
    /// Whether the client waits for `100 Continue` before it sends the body (RFC 9110 section
    /// 10.1.1). Always false in HTTP/1.0 and without a body.
    pub expect_continue: bool,
    /// Bytes of the input that the head took, an empty line before it included.
    pub head_len: usize,
    index: Index,
    lines: &'s [httparse::Header<'b>],
}

impl<'s, 'b> Request<'s, 'b> {
    /// All field lines in the order they were sent; values are without surrounding white space.
    pub fn fields(&self) -> Fields<'s, 'b> {
        Fields::new(self.lines)
    }

    /// The values of all lines of one well-known field, in order.
    pub fn values(&self, field: Known) -> Values<'s, 'b> {
        self.index.values(field, self.lines)
    }

    /// The value of a field that may stand only once; `None` when it is absent or repeated.
    pub fn only(&self, field: Known) -> Option<&'b [u8]> {
        self.index.only(field, self.lines)
    }

    /// The value of the first line of a field, for logs.
    pub fn first(&self, field: Known) -> Option<&'b [u8]> {
        self.index.first(field, self.lines)
    }

    /// Gives the target another path and query, those of `/path?query`. A target without a path stays as it is.
    pub fn rewrite(&mut self, target: &'b [u8]) {
        let new = form::split_query(target);
        if let Target::Origin { path, query } | Target::Absolute { path, query, .. } =
            &mut self.target
        {
            (*path, *query) = new;
            self.rewrites = self.rewrites.saturating_add(1);
        }
    }

    /// The target as it was sent, taken apart.
    pub fn sent_target(&self) -> Target<'b> {
        match self.rewrites {
            0 => self.target,
            _ => Target::new(&self.method, self.raw_target).unwrap_or(self.target),
        }
    }

    /// Whether a field is present; a bit test.
    #[inline]
    pub fn has(&self, field: Known) -> bool {
        self.index.present().contains(field)
    }

    /// Whether any field of a set is present; a bit test. The hot path asks once for
    /// [`KnownSet::UNUSUAL`].
    #[inline]
    pub fn has_any(&self, fields: KnownSet) -> bool {
        self.index.present().intersects(fields)
    }
}

/// Reads one request head from the front of `input`.
///
/// `Ok(None)` means that every byte so far is good and more are needed. `input` may go on behind
/// the head with a body or further requests. After a [`Refusal`] nothing on the connection can be
/// trusted: answer with [`Refusal::status`] and close.
///
/// # Errors
/// The first offence in the head, by position; then, once the head is whole, the first broken rule
/// about its meaning (target form, Host, body length, Expect).
#[inline]
pub fn parse<'s, 'b>(
    input: &'b [u8],
    slots: &'s mut FieldSlots<'b>,
    limits: &RequestLimits,
) -> Result<Option<Request<'s, 'b>>, Refusal> {
    match tokenise(input, slots, limits) {
        Some(tokens) => understand(tokens).map(Some),
        None => match scan::scan(input, limits) {
            Scan::Offence(refusal) => Err(refusal),
            Scan::Incomplete => Ok(None),
            Scan::Complete(length) => {
                debug_assert!(false, "scan passed {length} bytes that the tokeniser refused");
                Err(Refusal::RequestLine)
            }
        },
    }
}

/// The tokens of a head whose every byte stands where the grammar wants it.
struct Tokens<'s, 'b> {
    method: Method<'b>,
    version: Version,
    raw_target: &'b [u8],
    head_len: usize,
    lines: &'s [httparse::Header<'b>],
}

/// The hot path: `None` unless the head is complete, well-formed and within its limits. Why it is
/// not is a question for the cold [`scan::scan`], which both answers the same way.
#[inline]
fn tokenise<'s, 'b>(
    input: &'b [u8],
    slots: &'s mut FieldSlots<'b>,
    limits: &RequestLimits,
) -> Option<Tokens<'s, 'b>> {
    let mut parser = httparse::Request::new(&mut []);
    let slots = slots.first(limits.fields);
    let Ok(httparse::Status::Complete(head_len)) = parser.parse_with_uninit_headers(input, slots)
    else {
        return None;
    };
    let (method, target) = (parser.method?, parser.path?.as_bytes());
    let version = if parser.version? == 1 { Version::Http11 } else { Version::Http10 };
    let lines: &'s [httparse::Header<'b>] = parser.headers;

    let layout = Layout { input, head_len };
    let line_start = layout.offset(method.as_bytes());
    let line_end = layout.end(target) + " HTTP/1.1".len();
    let well_formed = layout.request_line_starts_at(line_start)
        && form::is_target(target)
        && line_end - line_start <= limits.request_line
        && head_len <= limits.head
        && layout.every_line_ends_in_crlf(line_end, lines);
    well_formed.then(|| Tokens {
        method: Method::new(method),
        version,
        raw_target: target,
        head_len,
        lines,
    })
}

/// Where the tokens of a head stand in the input. `httparse` accepts a bare LF as the end of a
/// line; the gaps between its tokens show whether there was one, without another pass.
struct Layout<'b> {
    input: &'b [u8],
    head_len: usize,
}

impl Layout<'_> {
    fn offset(&self, part: &[u8]) -> usize {
        (part.as_ptr() as usize).wrapping_sub(self.input.as_ptr() as usize)
    }

    fn end(&self, part: &[u8]) -> usize {
        self.offset(part) + part.len()
    }

    /// At most one empty line may stand before the request line (RFC 9112 section 2.2).
    fn request_line_starts_at(&self, start: usize) -> bool {
        start == 0 || (start == 2 && self.input.starts_with(b"\r\n"))
    }

    #[inline]
    fn every_line_ends_in_crlf(&self, line_end: usize, lines: &[httparse::Header<'_>]) -> bool {
        let last_end = lines.last().map_or(line_end, |line| self.end(line.value));
        self.is_crlf_after_ows(line_end)
            && lines.iter().all(|line| self.is_crlf_after_ows(self.end(line.value)))
            && self.input.get(..self.head_len).is_some_and(|head| head.ends_with(b"\r\n"))
            && last_end + 4 <= self.head_len
    }

    #[inline]
    fn is_crlf_after_ows(&self, at: usize) -> bool {
        let rest = self.input.get(at..).unwrap_or_default();
        rest.starts_with(b"\r\n") || crate::syntax::trim_start(rest).starts_with(b"\r\n")
    }
}

/// Applies the rules that need the whole head: the meaning of target, Host and framing fields.
#[inline]
fn understand<'s, 'b>(tokens: Tokens<'s, 'b>) -> Result<Request<'s, 'b>, Refusal> {
    let Tokens { method, version, raw_target, head_len, lines } = tokens;
    let target = Target::new(&method, raw_target)?;
    let index = Index::new(lines);
    let host = host::of_request(&target, version, &index, lines)?;
    let body = framing::body_length(version, &index, lines)?;
    let keep_alive = framing::keep_alive(version, &index, lines);
    let expect_continue = framing::expect_continue(version, body, &index, lines)?;
    Ok(Request {
        method,
        version,
        target,
        raw_target,
        rewrites: 0,
        host,
        keep_alive,
        body,
        expect_continue,
        head_len,
        index,
        lines,
    })
}

#[cfg(test)]
mod tests;
