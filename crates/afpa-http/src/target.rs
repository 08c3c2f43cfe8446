//! From the path of a target to the name of a cache object, and back
//! (RFC 3986 sections 2.1, 5.2.4 and 6.2.2).

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;

use crate::Status;

/// Why a path names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// Does not start with `/`.
    #[error("path does not start with a slash")]
    NotAbsolute,
    /// `%` without two hexadecimal digits.
    #[error("bad percent-escape in path")]
    BadEscape,
    /// NUL or another control character, escaped or not.
    #[error("control character in path")]
    Control,
    /// `..` leads above the root.
    #[error("path leads above the root")]
    AboveRoot,
    /// A segment of dots beside `%2F`: a server that takes this for a separator would go to another directory.
    #[error("segment of dots beside an escaped slash in path")]
    HiddenDots,
}

impl PathError {
    /// The status of the answer to a request for it.
    pub const fn status(self) -> Status {
        Status::BAD_REQUEST
    }
}

/// An escaped slash (`%2F`) in a path without escapes. It is one byte that no path holds otherwise, and no file name; so it is
/// no separator, and differs from a slash and from the text `%2F`. It may be in no text that leaves AFPA: [`encode`] and
/// [`shown`] write it as an escape.
pub const ESCAPED_SLASH: u8 = 0;

/// Decodes percent-escapes once, removes dot segments, and merges runs of slashes.
///
/// The result starts with `/`, holds no empty, `.` or `..` segment, ends with `/` if the path named
/// a directory, and may hold any byte but the controls, and [`ESCAPED_SLASH`] for `%2F`. A path that needs none of this is
/// returned as it is, without a copy; otherwise the result is built in `scratch`. Dot segments
/// are removed after decoding, so that `%2e%2e` cannot pass as a name.
///
/// # Errors
/// See [`PathError`].
#[inline]
pub fn normalise<'a>(path: &'a [u8], scratch: &'a mut Vec<u8>) -> Result<&'a [u8], PathError> {
    if is_normal(path) { Ok(path) } else { rewrite(path, Form::Decoded, scratch) }
}

/// As [`normalise`], but in the spelling that a server gets: only unreserved characters lose their escape, because a
/// reserved one means something else without it (RFC 3986, sections 2.2 and 6.2.2.2). To a servlet container `;` begins
/// a parameter, and `%3B` is a letter; to most servers `%2F` is one, too. Bytes that may not stand in a path are escaped. [`normalise`] makes the same of
/// the result as of the path.
///
/// # Errors
/// Those of [`normalise`].
#[inline]
pub fn spell<'a>(path: &'a [u8], scratch: &'a mut Vec<u8>) -> Result<&'a [u8], PathError> {
    if is_normal(path) && path.iter().all(|&byte| is_plain(byte)) {
        return Ok(path);
    }
    rewrite(path, Form::Spelled, scratch)
}

/// The rest of a path that [`spell`] has given, behind so many bytes of the same path as [`normalise`] gives it.
pub fn behind(spelled: &[u8], normal: usize) -> &[u8] {
    let mut rest = spelled;
    for _ in 0..normal {
        let step = if rest.first() == Some(&b'%') { 3 } else { 1 };
        rest = rest.get(step..).unwrap_or_default();
    }
    rest
}

/// Appends a path with every byte escaped that may not stand in a URI's path (RFC 3986 section
/// 3.3): the way back from [`normalise`], for Location fields and listings.
pub fn encode(path: &[u8], out: &mut Vec<u8>) {
    for &byte in path {
        match byte {
            ESCAPED_SLASH => escape(b'/', out),
            byte if is_plain(byte) => out.push(byte),
            byte => escape(byte, out),
        }
    }
}

/// A path that [`normalise`] has given, for people to read.
pub fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).replace(char::from(ESCAPED_SLASH), "%2F")
}

/// Whether a segment of a path with escapes would have `.` or `..` beside a slash if its escaped slashes were some. Servlet
/// containers drop the part behind a semicolon before they look at dots.
pub fn hides_dots(segment: &[u8]) -> bool {
    let is_slash = |three: &[u8]| three.eq_ignore_ascii_case(b"%2F");
    let (mut rest, mut is_divided) = (segment, false);
    loop {
        let end = rest.windows(3).position(is_slash);
        is_divided |= end.is_some();
        if is_divided && is_dots(rest.get(..end.unwrap_or(rest.len())).unwrap_or_default()) {
            return true;
        }
        let Some(behind) = end.and_then(|end| rest.get(end + 3..)) else { return false };
        rest = behind;
    }
}

fn is_dots(name: &[u8]) -> bool {
    let begins = |text: &[u8], with: &[u8]| {
        text.get(..with.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(with))
    };
    let (mut rest, mut dots) = (name, 0);
    while let Some(length) =
        [&b"."[..], b"%2E"].into_iter().find(|dot| begins(rest, dot)).map(<[u8]>::len)
    {
        rest = rest.get(length..).unwrap_or_default();
        dots += 1;
    }
    matches!(dots, 1 | 2) && (rest.is_empty() || begins(rest, b";") || begins(rest, b"%3B"))
}

/// Appends a query as it came, with an escape for each byte that may stand in no target (RFC 9112 section 3.2).
pub fn encode_query(query: &[u8], out: &mut Vec<u8>) {
    for &byte in query {
        match byte {
            b'!'..=b'~' => out.push(byte),
            byte => escape(byte, out),
        }
    }
}

/// Appends the escape of a byte.
pub fn escape(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
    out.extend_from_slice(&[b'%', DIGITS[high], DIGITS[low]]);
}

/// Whether a path is in its simplest spelling (RFC 3986, 6.2.2): no segment is empty or one of dots, nothing is escaped that
/// may stand as it is in any URI (section 2.3), and escapes are in capitals. Two such paths are the same resource only if
/// they have the same bytes, as far as that specification goes.
pub fn is_simplest(path: &[u8]) -> bool {
    let Some(segments) = path.strip_prefix(b"/") else { return false };
    let last = segments.iter().filter(|byte| **byte == b'/').count();
    let plain = |(at, segment): (usize, &[u8])| match segment {
        b"" => at == last,
        b"." | b".." => false,
        segment => is_simplest_segment(segment),
    };
    segments.split(|byte| *byte == b'/').enumerate().all(plain)
}

fn is_simplest_segment(segment: &[u8]) -> bool {
    let escape = |rest: &[u8]| match *rest {
        [high, low, ..] if !high.is_ascii_lowercase() && !low.is_ascii_lowercase() => {
            let digits = char::from(high).to_digit(16).zip(char::from(low).to_digit(16));
            digits.and_then(|(high, low)| u8::try_from(high * 16 + low).ok())
        }
        _ => None,
    };
    segment.iter().enumerate().all(|(at, byte)| match byte {
        b'%' => escape(&segment[at + 1..]).is_some_and(|byte| !is_unreserved(byte)),
        byte => matches!(byte, b'!'..=b'~') && !b"#?".contains(byte),
    })
}

/// True when [`rewrite`] would change nothing. Names that begin with a dot count as work to do:
/// they are rare.
#[inline]
fn is_normal(path: &[u8]) -> bool {
    let mut after_slash = false;
    for &byte in path {
        if byte == b'%' || byte < b' ' || byte == 0x7f {
            return false;
        }
        if after_slash && (byte == b'/' || byte == b'.') {
            return false;
        }
        after_slash = byte == b'/';
    }
    path.first() == Some(&b'/')
}

/// How a path is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As a name: without escapes.
    Decoded,
    /// As a server gets it.
    Spelled,
}

/// Invariant of the loop: `out` starts with `/`, and ends with `/` before each segment.
fn rewrite<'a>(path: &[u8], form: Form, out: &'a mut Vec<u8>) -> Result<&'a [u8], PathError> {
    let [b'/', segments @ ..] = path else { return Err(PathError::NotAbsolute) };
    out.clear();
    out.push(b'/');
    let mut segments = segments.split(|&byte| byte == b'/').peekable();
    while let Some(segment) = segments.next() {
        let start = out.len();
        if decode(segment, form, out)? && hides_dots(segment) {
            return Err(PathError::HiddenDots);
        }
        match out.get(start..).unwrap_or_default() {
            b"" => {}
            b"." => out.truncate(start),
            b".." => {
                out.truncate(start);
                leave_directory(out)?;
            }
            _ if segments.peek().is_some() => out.push(b'/'),
            _ => {}
        }
    }
    Ok(out)
}

/// Whether there was an escaped slash.
fn decode(mut segment: &[u8], form: Form, out: &mut Vec<u8>) -> Result<bool, PathError> {
    let mut has_slash = false;
    while let [first, rest @ ..] = segment {
        let (byte, stands);
        (byte, stands, segment) = match (first, rest) {
            (b'%', [high, low, rest @ ..]) => {
                let byte = unescape(*high, *low)?;
                (byte, is_unreserved(byte), rest)
            }
            (b'%', _) => return Err(PathError::BadEscape),
            (plain, rest) => (*plain, is_plain(*plain), rest),
        };
        match byte {
            b'/' => {
                has_slash = true;
                match form {
                    Form::Decoded => out.push(ESCAPED_SLASH),
                    Form::Spelled => escape(b'/', out),
                }
            }
            0..=0x1f | 0x7f => return Err(PathError::Control),
            _ if stands || form == Form::Decoded => out.push(byte),
            _ => escape(byte, out),
        }
    }
    Ok(has_slash)
}

fn unescape(high: u8, low: u8) -> Result<u8, PathError> {
    let digit = |byte| char::from(byte).to_digit(16).ok_or(PathError::BadEscape);
    let value = digit(high)? * 16 + digit(low)?;
    u8::try_from(value).map_err(|_| PathError::BadEscape)
}

/// `/a/b/` becomes `/a/`.
fn leave_directory(out: &mut Vec<u8>) -> Result<(), PathError> {
    out.pop();
    let parent = out.iter().rposition(|&byte| byte == b'/').ok_or(PathError::AboveRoot)?;
    out.truncate(parent + 1);
    Ok(())
}

/// RFC 3986 section 2.3.
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

/// `pchar` without the percent sign, and the slash (RFC 3986 section 3.3).
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'-' | b'.'
                | b'_'
                | b'~'
                | b'!'
                | b'$'
                | b'&'
                | b'\''
                | b'('
                | b')'
                | b'*'
                | b'+'
                | b','
                | b';'
                | b'='
                | b':'
                | b'@'
                | b'/'
        )
}
