//! From the path of a target to the name of a cache object, and back
//! (RFC 3986 sections 2.1, 5.2.4 and 6.2.2).

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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(path: &[u8]) -> Result<Vec<u8>, PathError> {
        normalise(path, &mut Vec::new()).map(<[u8]>::to_vec)
    }

    #[test]
    fn simplest_spellings() {
        for path in ["/", "/a/", "/.a/..b/...", "/%C3%B6", "/a%2Fb%40c;d=@$&", "/a:b"] {
            assert!(is_simplest(path.as_bytes()), "{path}");
        }
        let others =
            ["", "a", "//", "/./a", "/a/.", "/..", "/a//b", "/%61", "/%7E", "/%2e", "/%c3"];
        for path in
            others.into_iter().chain(["/%", "/%4", "/%zz", "/a b", "/a#", "/a?b", "/\u{f6}"])
        {
            assert!(!is_simplest(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn paths_and_what_they_name() {
        for (path, name) in [
            ("/", "/"),
            ("/a/b.html", "/a/b.html"),
            ("/a/", "/a/"),
            ("//a///b//", "/a/b/"),
            ("/./a/./b/.", "/a/b/"),
            ("/a/b/..", "/a/"),
            ("/a/b/../c", "/a/c"),
            ("/a/..", "/"),
            ("/a//../b", "/b"),
            ("/%61%2Fb/%2f", "/a\0b/\0"),
            ("/a/%2F/../b", "/a/b"),
            ("/a%252Fb", "/a%2Fb"),
            ("/.a%2F..b%2f...", "/.a\0..b\0..."),
            ("/a%20b%25", "/a b%"),
            ("/%2525", "/%25"),
            ("/a/%2e%2E/b", "/b"),
            ("/%2e", "/"),
            ("/...", "/..."),
            ("/.hidden", "/.hidden"),
            ("/a/..b", "/a/..b"),
            ("/a%5cb", "/a\\b"),
            ("/~user/x", "/~user/x"),
        ] {
            assert_eq!(of(path.as_bytes()).as_deref(), Ok(name.as_bytes()), "{path}");
        }
        assert_eq!(of(b"/%ff%c3%a9").as_deref(), Ok(&b"/\xff\xc3\xa9"[..]));
    }

    #[test]
    fn paths_that_name_nothing() {
        for (path, error) in [
            (&b""[..], PathError::NotAbsolute),
            (b"a", PathError::NotAbsolute),
            (b"/%", PathError::BadEscape),
            (b"/%4", PathError::BadEscape),
            (b"/%4g", PathError::BadEscape),
            (b"/%+1", PathError::BadEscape),
            (b"/%u0041", PathError::BadEscape),
            (b"/%00", PathError::Control),
            (b"/a%0d%0ab", PathError::Control),
            (b"/a\0", PathError::Control),
            (b"/%7F", PathError::Control),
            (b"/..", PathError::AboveRoot),
            (b"/a/../../b", PathError::AboveRoot),
            (b"/%2e%2e/etc/passwd", PathError::AboveRoot),
            (b"//..", PathError::AboveRoot),
            (b"/a%2fb%00", PathError::Control),
            (b"/a\0b%2f", PathError::Control),
            (b"/x/..%2f..", PathError::HiddenDots),
            (b"/x/%2e%2E%2Fa", PathError::HiddenDots),
            (b"/x/y%2F../z", PathError::HiddenDots),
            (b"/x/y%2F.%2f", PathError::HiddenDots),
            (b"/x/..;a%2fb", PathError::HiddenDots),
            (b"/x/b%2F.%2e%3bc/", PathError::HiddenDots),
            (b"/x/..%2fa/..", PathError::HiddenDots),
        ] {
            assert_eq!(of(path), Err(error), "{:?}", String::from_utf8_lossy(path));
        }
        assert_eq!(PathError::AboveRoot.status(), Status::BAD_REQUEST);
    }

    #[test]
    fn nothing_is_copied_when_nothing_changes() {
        let (path, mut scratch) = (b"/plain/path.html;a=b", Vec::new());
        assert!(std::ptr::eq(normalise(path, &mut scratch).unwrap(), &path[..]));
        assert!(std::ptr::eq(spell(path, &mut scratch).unwrap(), &path[..]));
        assert_eq!(scratch.capacity(), 0);
    }

    #[test]
    fn a_server_gets_reserved_characters_as_the_client_wrote_them() {
        let spelled = |path: &str| {
            let mut room = Vec::new();
            spell(path.as_bytes(), &mut room).map(|path| String::from_utf8_lossy(path).into_owned())
        };
        for (path, expected) in [
            ("/a;b=c,d", "/a;b=c,d"),
            ("/a%3bb%3Dc%2Cd", "/a%3Bb%3Dc%2Cd"),
            ("/%21%24%26%27%28%29%2a%2B%3a%40", "/%21%24%26%27%28%29%2A%2B%3A%40"),
            ("/%23%3f%5B%5d%25", "/%23%3F%5B%5D%25"),
            ("/%61%2D%2e%5f%7E%30", "/a-._~0"),
            ("/a|b\"[", "/a%7Cb%22%5B"),
            ("/\u{e9}%c3%a9", "/%C3%A9%C3%A9"),
            ("//a/%2e%2E/./b%3b/", "/b%3B/"),
            ("/a%2fb%252f%2F/", "/a%2Fb%252f%2F/"),
        ] {
            assert_eq!(spelled(path).as_deref(), Ok(expected), "{path}");
            assert!(is_simplest(expected.as_bytes()), "{expected}");
        }
        for path in ["a", "/%", "/..%3B%2f", "/%00", "/..", "/%7f"] {
            assert_eq!(spelled(path).err(), of(path.as_bytes()).err(), "{path}");
        }
        assert_eq!(
            (behind(b"/a%3Bb/c", 4), behind(b"/a%3Bb/c", 0)),
            (&b"/c"[..], &b"/a%3Bb/c"[..])
        );
        assert_eq!(behind(b"/a", 9), b"");
        assert_eq!(behind(b"/a%2Fb/c", 3), b"b/c");
        assert_eq!(shown(b"/a\0b"), "/a%2Fb");
        let mut query = Vec::new();
        encode_query(b"a=%2f&b\"c d\0\xc3?/", &mut query);
        assert_eq!(query, b"a=%2f&b\"c%20d%00%C3?/");
    }

    /// The rules of `normalise` in three separate steps over a list of segments.
    fn naive(path: &[u8]) -> Option<Vec<u8>> {
        let text = path.strip_prefix(b"/")?;
        let mut kept: Vec<Vec<u8>> = Vec::new();
        let mut directory = true;
        for segment in text.split(|&byte| byte == b'/') {
            let hex = |at: usize| {
                let pair = segment.get(at + 1..at + 3)?;
                pair.iter().all(u8::is_ascii_hexdigit).then_some(())?;
                u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()
            };
            let (mut name, mut at) = (Vec::new(), 0);
            while at < segment.len() {
                let escaped = segment[at] == b'%';
                name.push(if escaped { hex(at)? } else { segment[at] });
                at += if escaped { 3 } else { 1 };
            }
            if name.iter().any(u8::is_ascii_control) {
                return None;
            }
            // All slashes in it were escaped.
            let parts: Vec<_> = name.split(|byte| *byte == b'/').collect();
            let is_dots =
                |part: &&[u8]| matches!(part.split(|b| *b == b';').next(), Some(b"." | b".."));
            if parts.len() > 1 && parts.iter().any(is_dots) {
                return None;
            }
            let name = parts.join(&ESCAPED_SLASH);
            directory = matches!(&name[..], b"" | b"." | b"..");
            match &name[..] {
                b"" | b"." => {}
                b".." => drop(kept.pop()?),
                _ => kept.push(name),
            }
        }
        let mut out = b"/".to_vec();
        out.extend(kept.join(&b'/'));
        if directory && out != b"/" {
            out.push(b'/');
        }
        Some(out)
    }

    proptest! {
        #[test]
        fn agrees_with_the_naive_reading(path in "/([a.;%/]|%2e|%2F|%2f|%3B|%00|%41|\\.\\.|//|x){0,12}") {
            prop_assert_eq!(of(path.as_bytes()).ok(), naive(path.as_bytes()));
        }

        /// One spelling, the same name, and no escape lost or won but those that RFC 3986 calls equivalent.
        #[test]
        fn a_spelled_path_names_the_same(
            path in "/([a.;|/]|%2e|%2F|%2f|%3B|%3b|%41|%25|%c3|\\.\\.|//|\u{e9}){0,12}", cut in 0usize..20
        ) {
            let Ok(normal) = of(path.as_bytes()) else { return Ok(()) };
            let (mut room, mut again) = (Vec::new(), Vec::new());
            let spelled = spell(path.as_bytes(), &mut room).expect("a path");
            prop_assert!(is_simplest(spelled));
            prop_assert_eq!(of(spelled), Ok(normal.clone()));
            prop_assert_eq!(spell(spelled, &mut again), Ok(spelled));
            let count = |text: &[u8]| text.to_ascii_uppercase().windows(3).filter(|w| w == b"%3B").count();
            let is_flat = !path.contains('.') && !path.to_lowercase().contains("%2e");
            prop_assert!(!is_flat || count(spelled) == count(path.as_bytes()));
            let slashes = spelled.windows(3).filter(|three| three == b"%2F").count();
            prop_assert_eq!(normal.iter().filter(|byte| **byte == ESCAPED_SLASH).count(), slashes);
            let mut encoded = Vec::new();
            encode(&normal, &mut encoded);
            prop_assert_eq!(of(&encoded), Ok(normal.clone()));
            let rest = behind(spelled, cut);
            let mut bare = Vec::new();
            decode(rest.strip_prefix(b"/").unwrap_or(rest), Form::Decoded, &mut bare).ok();
            let tail = normal.get(cut..).unwrap_or_default();
            let tail = tail.strip_prefix(b"/").unwrap_or(tail);
            prop_assert!(tail.contains(&b'/') || bare == tail);
        }

        #[test]
        fn a_normal_path_survives_encoding(
            path in proptest::collection::vec(any::<u8>(), 0..24)
        ) {
            let mut rooted = b"/".to_vec();
            rooted.extend(path);
            if let Ok(normal) = of(&rooted) {
                let mut encoded = Vec::new();
                encode(&normal, &mut encoded);
                prop_assert!(encoded.is_ascii());
                prop_assert_eq!(of(&encoded), Ok(normal));
            }
        }
    }
}
