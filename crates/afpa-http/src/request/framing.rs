//! The end of the request that a head begins: body length, persistence, expectation (RFC 9112 sections 6 and 9.3, RFC
//! 9110 section 10.1.1).

use super::fields::Index;
use super::{Known, Refusal, Version};
use crate::syntax;

/// How the end of the request body is found (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyLength {
    /// No body.
    #[default]
    None,
    /// So many bytes; never 0, which is [`BodyLength::None`].
    Length(u64),
    /// The chunked coding marks its end.
    Chunked,
}

/// Reads Content-Length and Transfer-Encoding. A head that two servers could read differently is refused.
#[inline]
pub(super) fn body_length(
    version: Version,
    index: &Index,
    lines: &[httparse::Header<'_>],
) -> Result<BodyLength, Refusal> {
    const FRAMING: super::KnownSet =
        super::KnownSet::of(&[Known::ContentLength, Known::TransferEncoding]);
    if !index.present().intersects(FRAMING) {
        return Ok(BodyLength::None);
    }
    if !index.present().contains(Known::TransferEncoding) {
        return content_length(index, lines);
    }
    if index.present().contains(Known::ContentLength) {
        return Err(Refusal::LengthAndCoding);
    }
    if version == Version::Http10 {
        return Err(Refusal::CodingInHttp10);
    }
    transfer_encoding(index, lines)
}

/// One line of plain digits. Lists of equal numbers, which RFC 9112 section 6.3 lets a recipient
/// repair, are refused: well-behaved clients do not send them.
fn content_length(index: &Index, lines: &[httparse::Header<'_>]) -> Result<BodyLength, Refusal> {
    let length = index.only(Known::ContentLength, lines).and_then(syntax::number);
    match length.ok_or(Refusal::ContentLength)? {
        0 => Ok(BodyLength::None),
        length => Ok(BodyLength::Length(length)),
    }
}

/// Exactly `chunked`, in any case. A list that ends with it, and has another coding before it, asks for a coding
/// that AFPA does not implement (501); otherwise it is not known where the content ends (400).
fn transfer_encoding(index: &Index, lines: &[httparse::Header<'_>]) -> Result<BodyLength, Refusal> {
    let is_chunked = |coding: &[u8]| coding.eq_ignore_ascii_case(b"chunked");
    if index.only(Known::TransferEncoding, lines).is_some_and(is_chunked) {
        return Ok(BodyLength::Chunked);
    }
    let mut codings = index
        .values(Known::TransferEncoding, lines)
        .flat_map(|value| value.split(|&byte| byte == b','))
        .map(syntax::trim);
    let ends_chunked = codings.clone().last().is_some_and(is_chunked);
    if !ends_chunked || !codings.clone().all(syntax::is_token) || codings.all(is_chunked) {
        return Err(Refusal::CodingMalformed);
    }
    Err(Refusal::CodingUnknown)
}

/// HTTP/1.1 stays open unless `close` is said, HTTP/1.0 closes unless `keep-alive` is said;
/// `close` wins over both (RFC 9112 section 9.3).
#[inline]
pub(super) fn keep_alive(version: Version, index: &Index, lines: &[httparse::Header<'_>]) -> bool {
    if !index.present().contains(Known::Connection) {
        return version == Version::Http11;
    }
    // The value that browsers send in every request.
    if index.only(Known::Connection, lines) == Some(b"keep-alive") {
        return true;
    }
    let says = |option: &[u8]| {
        index
            .values(Known::Connection, lines)
            .flat_map(syntax::list)
            .any(|said| said.eq_ignore_ascii_case(option))
    };
    !says(b"close") && (version == Version::Http11 || says(b"keep-alive"))
}

/// Whether the client waits for 100 (Continue). HTTP/1.0 has no interim responses, so an expectation there is
/// ignored, as it is in a request without a body (RFC 9110 section 10.1.1).
#[inline]
pub(super) fn expect_continue(
    version: Version,
    body: BodyLength,
    index: &Index,
    lines: &[httparse::Header<'_>],
) -> Result<bool, Refusal> {
    if !index.present().contains(Known::Expect) || version == Version::Http10 {
        return Ok(false);
    }
    let all_known =
        index.values(Known::Expect, lines).all(|value| value.eq_ignore_ascii_case(b"100-continue"));
    if all_known { Ok(body != BodyLength::None) } else { Err(Refusal::Expectation) }
}
