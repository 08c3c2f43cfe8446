use proptest::prelude::*;

use super::*;
use crate::caching::{Optional, StoredControl, StoredFacts};

const CLOCKS: Clocks = Clocks { unix_us: 1_700_000_000_000_000, boot: 7, boot_us: 5_000_000 };

/// A record that owns its bytes.
#[derive(Clone, Debug)]
struct Owned {
    texts: [Vec<u8>; 6],
    tags: Vec<Vec<u8>>,
    vary: Vec<String>,
    content_type: Option<String>,
    facts: StoredFacts,
    numbers: [u64; 6],
}

impl Owned {
    fn record(&self) -> Record<'_> {
        let [head, primary, secondary, etag, language, content] = &self.texts;
        let [lifetime, stale_use, grace, took_us, age, hits] = self.numbers;
        Record {
            rules: [took_us as u8; 16],
            primary,
            secondary: if self.vary.is_empty() { &[] } else { secondary },
            tags: self.tags.iter().map(Vec::as_slice).collect(),
            vary: self.vary.iter().map(String::as_str).collect(),
            head,
            etag: (!etag.is_empty()).then_some(etag),
            last_modified: (!etag.is_empty()).then_some(language),
            content_type: self.content_type.as_deref(),
            language: Some(language),
            facts: self.facts,
            lifetime,
            stale_use,
            grace,
            took_us,
            age,
            hits,
            content,
        }
    }
}

fn facts() -> impl Strategy<Value = StoredFacts> {
    let flags = proptest::array::uniform4(any::<bool>());
    let seconds = proptest::array::uniform2(any::<Option<u32>>());
    let times = (any::<u64>(), any::<Option<u64>>());
    (100..=999_u16, flags, seconds, times).prop_map(|(status, flags, seconds, times)| {
        let [no_cache, must_revalidate, has_s_maxage, immutable] = flags;
        let [stale_while_revalidate, stale_if_error] = seconds.map(Optional::from);
        let control = StoredControl {
            no_cache,
            must_revalidate,
            has_s_maxage,
            immutable,
            stale_while_revalidate,
            stale_if_error,
        };
        StoredFacts { status, control, date: times.0, last_modified: times.1.into() }
    })
}

fn owned() -> impl Strategy<Value = Owned> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..40);
    let list = || proptest::collection::vec(bytes(), 0..4);
    let head = "HTTP/1\\.1 [0-9]{3} [a-z]{0,9}\r\n([a-z]{1,5}: [a-z]{0,9}\r\n){0,4}";
    let texts = (head, bytes(), bytes(), bytes(), bytes(), bytes());
    let names = proptest::collection::vec("[a-z]{1,9}", 0..3);
    let others = (any::<Option<String>>(), facts(), any::<[u64; 6]>());
    (texts, list(), names, others).prop_map(|(texts, tags, vary, others)| {
        let (head, primary, mut secondary, etag, language, content) = texts;
        secondary.push(b'\n');
        let texts = [head.into_bytes(), primary, secondary, etag, language, content];
        let (content_type, facts, numbers) = others;
        Owned { texts, tags, vary, content_type, facts, numbers }
    })
}

fn written(records: &[Record<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::begin(&CLOCKS, &mut out);
    for record in records {
        assert!(writer.put(record, usize::MAX, &mut out));
    }
    assert_eq!(writer.end(&mut out), records.len() as u64);
    out
}

/// The contents of a snapshot, as the program reads one.
fn read(mut bytes: &[u8]) -> Result<(Clocks, Vec<Record<'_>>), Broken> {
    let mut decoder = Decoder::new(1 << 20);
    let (mut clocks, mut records) = (Clocks::default(), Vec::new());
    loop {
        let (piece, rest) = bytes.split_at(decoder.wants().min(bytes.len()));
        match decoder.take(piece)? {
            Piece::Begin(found) => clocks = found,
            Piece::Length => {}
            Piece::Record(record) => records.push(*record),
            Piece::End(_) if rest.is_empty() => return Ok((clocks, records)),
            Piece::End(_) => decoder.take(rest).map(drop)?,
        }
        bytes = rest;
    }
}

fn one() -> Record<'static> {
    let head = b"HTTP/1.1 200 OK\r\nDate: x\r\n";
    let facts = StoredFacts { status: 200, ..StoredFacts::default() };
    let (primary, content) = (&b"ua/\nkey"[..], &b"content"[..]);
    Record { primary, head, facts, lifetime: 60, content, ..Record::default() }
}

proptest! {
    #[test]
    fn what_is_read_is_what_was_written(all in proptest::collection::vec(owned(), 0..4)) {
        let records: Vec<Record<'_>> = all.iter().map(Owned::record).collect();
        let bytes = written(&records);
        prop_assert_eq!(read(&bytes), Ok((CLOCKS, records)));
    }

    #[test]
    fn no_changed_bit_stays_unnoticed(one in owned(), at in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let mut bytes = written(&[one.record()]);
        let at = at.index(bytes.len());
        bytes[at] ^= 1_u8 << bit;
        prop_assert!(read(&bytes).is_err());
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut rest = written(&[one()]);
        prop_assert!(read(&bytes).is_err());
        rest.splice(super::BEGIN_LEN.., bytes);
        prop_assert!(read(&rest).is_err());
    }
}

#[test]
fn what_is_cut_short_is_not_used() {
    let whole = written(&[one(), one()]);
    for len in 0..whole.len() {
        assert_eq!(read(&whole[..len]), Err(Broken::Cut), "{len} of {}", whole.len());
    }
    let longer = [&whole[..], b"x"].concat();
    assert_eq!(read(&longer), Err(Broken::Longer));
    // A record that is left out, twice there, or in another place.
    let (begin, end) = (BEGIN_LEN, whole.len() - END_LEN);
    let half = (end - begin) / 2;
    let fewer = [&whole[..begin + half], &whole[end..]].concat();
    let more = [&whole[..end], &whole[begin..begin + half], &whole[end..]].concat();
    assert_eq!((read(&fewer), read(&more)), (Err(Broken::Changed), Err(Broken::Changed)));
    let (first, second) = (written(&[one(), Record { hits: 1, ..one() }]), begin + half);
    let swapped =
        [&first[..begin], &first[second..end], &first[begin..second], &first[end..]].concat();
    assert_eq!(read(&swapped), Err(Broken::Changed));
}

#[test]
fn others_are_told_apart() {
    let mut whole = written(&[one()]);
    assert_eq!(read(b"<html>"), Err(Broken::Foreign));
    whole[MAGIC.len()] = 9;
    assert_eq!(read(&whole), Err(Broken::Version(9)));
}

#[test]
fn a_length_takes_no_memory_before_it_is_believed() {
    let mut whole = written(&[one()]);
    whole[BEGIN_LEN + 3] = 0xff;
    assert_eq!(read(&whole), Err(Broken::Changed));
}

#[test]
fn a_head_that_would_end_early_is_neither_written_nor_read() {
    for head in [
        &b"HTTP/1.1 200 OK\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\nA: b\n",
        b"HTTP/1.1 200 OK\r\nA: \rb\r\n",
        b"HTTP/1.1 200 OK\r\nA: \0b\r\n",
        b"HTTP/1.1 200 OK",
        b"",
    ] {
        let mut out = Vec::new();
        let mut writer = Writer::begin(&CLOCKS, &mut out);
        let before = out.len();
        assert!(!writer.put(&Record { head, ..one() }, usize::MAX, &mut out));
        assert_eq!(out.len(), before);
        let mut bytes = Vec::new();
        Record { head, ..one() }.put(&mut bytes);
        assert_eq!(Record::parse(&bytes), None);
    }
}

#[test]
fn a_record_that_is_too_long_is_left_out() {
    let (mut out, mut frame) = (Vec::new(), Vec::new());
    let mut writer = Writer::begin(&CLOCKS, &mut out);
    assert!(writer.put(&one(), usize::MAX, &mut frame));
    let exactly = frame.len();
    assert!(!writer.put(&one(), exactly - 1, &mut out) && writer.put(&one(), exactly, &mut out));
}

#[test]
fn the_time_in_between_counts_and_never_runs_back() {
    let after = |wall: i64, steady: i64, boot| Clocks {
        unix_us: CLOCKS.unix_us.saturating_add_signed(wall),
        boot_us: CLOCKS.boot_us.saturating_add_signed(steady),
        boot,
    };
    for (now, seconds) in [
        (after(0, 0, 7), Ok(0)),
        (after(1, 1, 7), Ok(1)),
        (after(60_000_000, 60_500_000, 7), Ok(61)),
        (after(60_000_000, 62_000_000, 7), Err(Broken::SetBack)),
        (after(60_000_000, 0, 8), Ok(60)),
        (after(-1, 5, 8), Err(Broken::SetBack)),
        (after(60_000_000, -1, 7), Err(Broken::SetBack)),
        (after(60_000_000, -1, 0), Ok(60)),
    ] {
        assert_eq!(CLOCKS.seconds_until(&now), seconds, "{now:?}");
    }
}

#[test]
fn it_is_of_use_until_nothing_more_is_allowed() {
    let record = Record { lifetime: 60, stale_use: 5, age: 50, ..one() };
    assert_eq!((record.age_after(0), record.age_after(14)), (Some(50), Some(64)));
    assert_eq!((record.age_after(15), record.age_after(u64::MAX)), (None, None));
}
