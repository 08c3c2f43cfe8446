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
    let others = ["", "a", "//", "/./a", "/a/.", "/..", "/a//b", "/%61", "/%7E", "/%2e", "/%c3"];
    for path in others.into_iter().chain(["/%", "/%4", "/%zz", "/a b", "/a#", "/a?b", "/\u{f6}"]) {
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
    assert_eq!((behind(b"/a%3Bb/c", 4), behind(b"/a%3Bb/c", 0)), (&b"/c"[..], &b"/a%3Bb/c"[..]));
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
