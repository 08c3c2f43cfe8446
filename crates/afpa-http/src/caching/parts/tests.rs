use std::sync::Arc;

use proptest::prelude::*;

use super::*;

type Bytes = Arc<[u8]>;

const MOST: Most = Most { pieces: 8, bytes: 1 << 20 };

fn taken(all: &[&[u8]]) -> Option<Bytes> {
    Some(all.concat().into())
}

fn text(parts: &Parts<Bytes>, range: Range<u64>) -> Option<String> {
    let found = parts.find(&range)?;
    let bytes: Vec<u8> =
        found.into_iter().flat_map(|(piece, place)| piece.bytes[place].to_vec()).collect();
    Some(String::from_utf8(bytes).expect("text"))
}

#[test]
fn a_content_range_says_where_and_of_how_many() {
    let parse = |value: &str| {
        let parsed = ContentRange::parse(value.as_bytes())?;
        Some((parsed.range.start, parsed.range.end, parsed.complete))
    };
    assert_eq!(parse("bytes 0-0/1"), Some((0, 1, 1)));
    assert_eq!(parse("BYTES 5-9/10"), Some((5, 10, 10)));
    assert_eq!(parse("bytes 0-4/9999999999999999999"), Some((0, 5, 9_999_999_999_999_999_999)));
    for bad in [
        "",
        "bytes",
        "bytes 0-0",
        "bytes */10",
        "bytes 0-4/*",
        "bytes 5-4/10",
        "bytes 0-10/10",
        "bytes 0-0/0",
        "bytes -4/10",
        "bytes 0-/10",
        "bytes 0-4/10/10",
        "bytes 0-4, 6-7/10",
        "bytes +0-4/10",
        "bytes=0-4/10",
        "lines 0-4/10",
        "bytes 0-4/99999999999999999999",
        "bytes 18446744073709551615-18446744073709551615/18446744073709551616",
    ] {
        assert_eq!(parse(bad), None, "{bad}");
    }
}

#[test]
fn only_strong_validators_make_one_representation() {
    let of = |etag: Option<&'static str>, last_modified, date| StoredValidators {
        etag: etag.map(str::as_bytes),
        last_modified,
        date,
    };
    let tag = of(Some("\"a\""), None, 0);
    assert!(are_of_one(&tag, &of(Some("\"a\""), Some(5), 9)));
    let dated = of(None, Some(100), 160);
    assert!(are_of_one(&dated, &of(None, Some(100), 10_000)));
    for (one, other) in [
        (tag, of(Some("\"b\""), None, 0)),
        (tag, of(Some("W/\"a\""), None, 0)),
        (of(Some("W/\"a\""), None, 0), of(Some("W/\"a\""), None, 0)),
        (of(Some("a"), None, 0), of(Some("a"), None, 0)),
        (tag, of(None, None, 0)),
        (of(None, None, 0), of(None, None, 0)),
        (dated, of(None, Some(101), 10_000)),
        (dated, of(None, Some(100), 159)),
        (of(Some("\"a\""), Some(100), 160), dated),
    ] {
        assert!(!are_of_one(&one, &other) && !are_of_one(&other, &one), "{one:?} {other:?}");
    }
}

#[test]
fn parts_are_combined_and_found() {
    let mut parts = Parts::new(10);
    assert_eq!(parts.add(2, b"234", MOST, &mut taken), Ok(()));
    assert_eq!(text(&parts, 2..5).as_deref(), Some("234"));
    assert_eq!(text(&parts, 3..4).as_deref(), Some("3"));
    for not_there in [0..3, 4..6, 5..6, 9..10, 3..3] {
        assert_eq!(text(&parts, not_there.clone()), None, "{not_there:?}");
    }
    assert_eq!(parts.add(4, b"4567", MOST, &mut taken), Ok(()));
    assert_eq!(text(&parts, 2..8).as_deref(), Some("234567"));
    assert_eq!(parts.add(0, b"0123", MOST, &mut taken), Ok(()));
    assert!(!parts.is_complete());
    assert_eq!(parts.add(8, b"89", MOST, &mut taken), Ok(()));
    assert!(parts.is_complete());
    assert_eq!(text(&parts, 0..10).as_deref(), Some("0123456789"));
    assert_eq!(parts.add(1, b"12345678", MOST, &mut taken), Ok(()));
    assert_eq!(parts.bytes(), 10);
}

#[test]
fn what_contradicts_or_lies_outside_is_not_added() {
    let mut parts = Parts::new(10);
    parts.add(2, b"234", MOST, &mut taken).expect("room");
    for (start, data, why) in [
        (0, &b"012x"[..], NotAdded::Contradiction),
        (4, b"x", NotAdded::Contradiction),
        (0, b"", NotAdded::Outside),
        (10, b"x", NotAdded::Outside),
        (8, b"890", NotAdded::Outside),
        (u64::MAX, b"x", NotAdded::Outside),
    ] {
        assert_eq!(parts.clone().add(start, data, MOST, &mut taken), Err(why), "{start}");
    }
    assert_eq!(parts.add(7, b"7", MOST, &mut |_| None), Err(NotAdded::NoRoom));
    assert_eq!(parts.bytes(), 3);
}

#[test]
fn of_too_many_pieces_neighbours_are_joined_and_the_shortest_go() {
    let most = Most { pieces: 2, bytes: 6 };
    let mut parts = Parts::new(100);
    for (start, data) in [(0, &b"01"[..]), (2, b"2"), (3, b"3")] {
        parts.add(start, data, most, &mut taken).expect("room");
    }
    assert_eq!((parts.pieces().len(), text(&parts, 0..4).as_deref()), (1, Some("0123")));
    parts.add(10, b"0", most, &mut taken).expect("room");
    parts.add(20, b"01", most, &mut taken).expect("room");
    assert_eq!((text(&parts, 10..11), text(&parts, 20..22).as_deref()), (None, Some("01")));
    parts.add(30, b"0123456", most, &mut taken).expect("room");
    assert_eq!((parts.bytes(), text(&parts, 30..31)), (0, None), "longer than all that is kept");
}

proptest! {
    /// The bytes of truthful answers, in any order, are found as they were, and no others.
    #[test]
    fn what_is_found_is_what_was_added(
        length in 1u64..64,
        adds in prop::collection::vec((0u64..64, 1usize..24), 0..24),
        pieces in 0usize..5,
        bytes in 0u64..80,
    ) {
        let content: Vec<u8> = (0..length as u8).collect();
        let most = Most { pieces, bytes };
        let mut parts = Parts::new(length);
        let mut said = vec![false; content.len()];
        for (start, len) in adds {
            let end = (start as usize + len).min(content.len());
            let Some(data) = content.get(start as usize..end) else { continue };
            let added = parts.add(start, data, most, &mut taken);
            prop_assert_eq!(added.is_ok(), !data.is_empty());
            said[start as usize..end].fill(true);
            prop_assert!(parts.pieces().len() <= pieces && parts.bytes() <= bytes);
            check(&parts)?;
            for first in 0..length {
                for last in first..=length {
                    if let Some(found) = parts.find(&(first..last)) {
                        let found: Vec<u8> = found
                            .into_iter()
                            .flat_map(|(piece, place)| piece.bytes[place].to_vec())
                            .collect();
                        prop_assert_eq!(&found[..], &content[first as usize..last as usize]);
                        prop_assert!(said[first as usize..last as usize].iter().all(|said| *said));
                    }
                }
            }
        }
    }

    /// Without limits that leave pieces out, everything that was said is there.
    #[test]
    fn nothing_is_lost(adds in prop::collection::vec((0u64..64, 1usize..24), 0..24)) {
        let content: Vec<u8> = (0..64).collect();
        let mut parts = Parts::new(64);
        let mut said = [false; 64];
        for (start, len) in adds {
            let end = (start as usize + len).min(64);
            let most = Most { pieces: 64, bytes: 64 };
            parts.add(start, &content[start as usize..end], most, &mut taken).expect("true");
            said[start as usize..end].fill(true);
        }
        for (at, said) in said.into_iter().enumerate() {
            prop_assert_eq!(parts.find(&(at as u64..at as u64 + 1)).is_some(), said);
        }
        prop_assert_eq!(parts.is_complete(), said.iter().all(|said| *said));
    }

    /// A server that says two things about a byte is caught, unless the first one is not kept any more.
    #[test]
    fn a_lie_is_noticed_or_nobody_has_both(
        adds in prop::collection::vec((0u64..32, prop::collection::vec(0u8..2, 1..12)), 0..16),
    ) {
        let mut parts = Parts::new(32);
        for (start, data) in adds {
            let before = parts.clone();
            let most = Most { pieces: 3, bytes: 24 };
            match parts.add(start, &data, most, &mut taken) {
                Ok(()) => check(&parts)?,
                Err(_) => prop_assert_eq!(format!("{parts:?}"), format!("{before:?}")),
            }
            for (offset, byte) in data.iter().enumerate() {
                let at = start + offset as u64;
                if let Some(found) = parts.find(&(at..at + 1))
                    && before.find(&(at..at + 1)).is_none()
                {
                    prop_assert_eq!(found[0].0.bytes[found[0].1.start], *byte);
                }
            }
        }
    }
}

/// Pieces are in order, and neither overlap nor are empty nor lie outside.
fn check(parts: &Parts<Bytes>) -> Result<(), TestCaseError> {
    let mut at = 0;
    for piece in parts.pieces() {
        prop_assert!(piece.start >= at && piece.len() > 0);
        at = piece.end();
    }
    prop_assert!(at <= parts.complete());
    Ok(())
}
