//! The programs' verdict on a request that lies in a file: by their own parser, compiled as a library
//! (`explain/explain.c`). It takes no privilege and loads nothing.

use std::mem::{offset_of, size_of};
use std::sync::{Mutex, PoisonError};

use afpa_abi::{
    FIELD_NAME_MAX, OLD_ALIKE, OTHER_TAG_WHOLE, Object, ObjectKey, PATH_FILTER_BITS, PATH_MAX,
    Reason, Shared, Slot, TAG_WEAKLY, kind,
};

use crate::cache::variant::Coding;
use crate::net::sum::path_hash;

unsafe extern "C" {
    fn afpa_explain_clear() -> i32;
    fn afpa_explain_put(
        table: u32,
        key: *const u8,
        key_length: u32,
        value: *const u8,
        length: u32,
    ) -> i32;
    fn afpa_explain_judge(head: *const u8, length: u32, may_close: u32) -> u32;
}

/// Tables, as `explain.c` numbers them.
const OBJECTS: u32 = 1;
const SLOTS: u32 = 2;
const SHARED: u32 = 3;
const FIELDS: u32 = 4;

/// The site of every Host.
const SITE: u32 = 1;

/// The library has static tables.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Objects and tables that the programs are taken to have.
#[derive(Clone, Debug)]
pub struct Assumed<'a> {
    /// Codings that are stored besides identity.
    pub codings: &'a [Coding],
    /// Names of request fields and their classes, in lower case; of other fields the class is
    /// [`FIELD_UNKNOWN`](crate::FIELD_UNKNOWN). `None`: no
    /// field matters, as before AFPA's own server.
    pub fields: Option<&'a [(String, u32)]>,
    /// Whether the programs may end the connection: it begins without a socket.
    pub may_close: bool,
}

/// The programs' verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explained {
    /// It is certainly one request, so that later ones of its connection may be answered again.
    pub certain: bool,
    /// Why it goes up; [`Reason::Answered`]: it does not.
    pub reason: Reason,
    /// The kind of the answer; one of `kind`.
    pub kind: u8,
}

impl Explained {
    /// Whether the kernel answers.
    pub fn is_answered(&self) -> bool {
        self.reason == Reason::Answered
    }

    /// Whether the answer is a 304.
    pub fn is_not_modified(&self) -> bool {
        self.is_answered() && self.kind == kind::NOT_MODIFIED
    }
}

/// Judges `head`, with an object pinned under `target` as it is spelled, or nothing. `modified` is the object's
/// Last-Modified.
///
/// None: there is no memory for the tables.
pub fn explain(
    head: &[u8],
    target: Option<&[u8]>,
    modified: &[u8; 29],
    assumed: &Assumed<'_>,
) -> Option<Explained> {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    // JUSTIFICATION: the programs are C.
    // SAFETY: it takes nothing, and the lock is held.
    if unsafe { afpa_explain_clear() } == 0 {
        return None;
    }
    let target = target.filter(|target| (1..=PATH_MAX).contains(&target.len()));
    let fits = shared(target, assumed.fields.is_some())
        && target.is_none_or(|target| object(target, modified, assumed))
        && assumed.fields.unwrap_or_default().iter().all(|(name, class)| field(name, *class));
    let length = u32::try_from(head.len()).ok().filter(|_| fits)?;
    // JUSTIFICATION: the programs are C.
    // SAFETY: `head` has `length` bytes, which are only read, and the lock is held.
    let word = unsafe { afpa_explain_judge(head.as_ptr(), length, u32::from(assumed.may_close)) };
    Some(Explained {
        certain: word & 3 > 0,
        reason: *Reason::ALL.get((word >> 2 & 63) as usize)?,
        kind: (word >> 8 & 3) as u8,
    })
}

fn put(table: u32, key: &[u8], value: &[u8]) -> bool {
    let (key_length, length) = (key.len() as u32, value.len() as u32);
    // JUSTIFICATION: the programs are C.
    // SAFETY: both have the lengths that are given, and are only read; sizes are compared there. `explain` holds the lock.
    unsafe { afpa_explain_put(table, key.as_ptr(), key_length, value.as_ptr(), length) != 0 }
}

fn shared(target: Option<&[u8]>, fields_matter: bool) -> bool {
    let mut paths = vec![0u64; PATH_FILTER_BITS / 64];
    if let Some(target) = target {
        let hash = path_hash(SEED, target);
        paths[hash as usize % PATH_FILTER_BITS / 64] |= 1 << (hash % 64);
    }
    let mut shared = Record::new(size_of::<Shared>());
    shared.put(offset_of!(Shared, hash_seed), &SEED.to_ne_bytes());
    shared.put(offset_of!(Shared, fields_matter), &u32::from(fields_matter).to_ne_bytes());
    // No block is remembered; the mask must be that of a table of a power of two all the same.
    shared.put(offset_of!(Shared, checked_mask), &0u32.to_ne_bytes());
    let words: Vec<u8> = paths.iter().flat_map(|word| word.to_ne_bytes()).collect();
    shared.put(offset_of!(Shared, paths), &words);
    put(SHARED, &[0; 4], &shared.0)
}

fn field(name: &str, class: u32) -> bool {
    if name.len() >= FIELD_NAME_MAX {
        return true; // one that the programs do not look up
    }
    let mut key = Record::new(FIELD_NAME_MAX);
    key.put(0, name.as_bytes());
    put(FIELDS, &key.0, &class.to_ne_bytes())
}

fn object(target: &[u8], modified: &[u8; 29], assumed: &Assumed<'_>) -> bool {
    let stored = |coding: Coding| coding == Coding::Identity || assumed.codings.contains(&coding);
    let all = [Coding::Identity, Coding::Gzip, Coding::Brotli, Coding::Zstd];
    let mut key = Record::new(size_of::<ObjectKey>());
    key.put(offset_of!(ObjectKey, path_hash), &path_hash(SEED, target).to_ne_bytes());
    key.put(offset_of!(ObjectKey, site), &SITE.to_ne_bytes());
    key.put(offset_of!(ObjectKey, path_length), &(target.len() as u16).to_ne_bytes());
    let slots = all.map(|coding| if stored(coding) { 4 + coding as u32 } else { 0 });
    // A file of our own server; or one of another, whose decoys changed nothing.
    let classes = |fields: &[(String, u32)]| fields.iter().fold(0, |all, (_, class)| all | class);
    let of_another = (OTHER_TAG_WHOLE | OLD_ALIKE | TAG_WEAKLY) as u32;
    let rules = assumed.fields.map_or(!0, |fields| classes(fields) | of_another);
    // Files of our own get answers to HTTP/1.0 that keeps its connection, once somebody has asked so.
    let old_kept = if assumed.fields.is_none() { slots } else { [0; 4] };
    let words = |words: [u32; 4]| words.map(u32::to_ne_bytes).concat();
    let mut value = Record::new(size_of::<Object>());
    value.put(offset_of!(Object, slot), &words(slots));
    value.put(offset_of!(Object, closing), &words(slots));
    value.put(offset_of!(Object, old_kept), &words(old_kept));
    value.put(offset_of!(Object, fields), &rules.to_ne_bytes());
    let answer = [100u16, 80, 23, 0].map(u16::to_ne_bytes).concat(); // any that is not empty
    let slot = |coding: Coding| {
        let index = 4 + coding as u32;
        let mut slot = Record::new(size_of::<Slot>());
        slot.put(offset_of!(Slot, version), &u64::from(index).to_ne_bytes());
        slot.put(offset_of!(Slot, whole), &answer);
        slot.put(offset_of!(Slot, not_modified), &answer);
        slot.put(offset_of!(Slot, path_length), &(target.len() as u16).to_ne_bytes());
        slot.put(offset_of!(Slot, site), &SITE.to_ne_bytes());
        slot.put(offset_of!(Slot, path), target);
        slot.put(offset_of!(Slot, last_modified), modified);
        put(SLOTS, &index.to_ne_bytes(), &slot.0)
    };
    put(OBJECTS, &key.0, &value.0) && all.into_iter().filter(|coding| stored(*coding)).all(slot)
}

/// Any will do.
const SEED: u64 = 0x0123_4567_89ab_cdef;

/// A C structure that is written member by member.
struct Record(Vec<u8>);

impl Record {
    fn new(size: usize) -> Self {
        Self(vec![0; size])
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        if let Some(place) = self.0.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: &[u8; 29] = b"Sun, 06 Nov 1994 08:49:37 GMT";

    fn judged(head: &str, assumed: &Assumed<'_>) -> Explained {
        let target = head.split(' ').nth(1).map(str::as_bytes);
        explain(head.as_bytes(), target, DATE, assumed).expect("memory")
    }

    fn plain() -> Assumed<'static> {
        Assumed { codings: &[Coding::Gzip, Coding::Brotli], fields: None, may_close: false }
    }

    #[test]
    fn requests_of_every_kind_have_their_reason() {
        let table = [
            ("GET /a HTTP/1.1\r\nHost: a\r\n\r\n", Reason::Answered),
            ("HEAD /a HTTP/1.1\r\nHost: a\r\nX-Any: thing\r\n\r\n", Reason::Answered),
            ("POST /a HTTP/1.1\r\nHost: a\r\n\r\n", Reason::PassMethod),
            ("GET /a HTTP/1.1\r\nHost: a\r\nRange: bytes=0-1\r\n\r\n", Reason::PassField),
            ("GET /a HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\n\r\n", Reason::PassCondition),
            ("GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", Reason::PassHeader),
            ("GET /a HTTP/2.0\r\nHost: a\r\n\r\n", Reason::PassRequestLine),
        ];
        for (head, reason) in table {
            assert_eq!(judged(head, &plain()).reason, reason, "{head:?}");
        }
        let since = format!(
            "GET /a HTTP/1.1\r\nHost: a\r\nIf-Modified-Since: {}\r\n\r\n",
            str::from_utf8(DATE).unwrap()
        );
        assert!(judged(&since, &plain()).is_not_modified());
        let nothing = explain(b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n", None, DATE, &plain());
        assert_eq!(nothing.map(|found| found.reason), Some(Reason::PassNotPinned));
        assert_eq!(judged("GET /", &plain()).reason, Reason::PassHeadLength);
        let long = format!("GET /a HTTP/1.1\r\nHost: a\r\nCookie: {}\r\n\r\n", "x".repeat(4000));
        assert_eq!(judged(&long, &plain()).reason, Reason::PassHeadLength);
    }

    #[test]
    fn assumptions_count() {
        let close = "GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        assert!(judged(close, &Assumed { may_close: true, ..plain() }).is_answered());
        let fields = [("cookie".to_owned(), 1)];
        let attached = Assumed { fields: Some(&fields), ..plain() };
        let cookie = "GET /a HTTP/1.1\r\nHost: a\r\nCookie: a=b\r\n\r\n";
        let other = "GET /a HTTP/1.1\r\nHost: a\r\nX-Any: thing\r\n\r\n";
        assert!(judged(cookie, &attached).is_answered());
        assert_eq!(judged(other, &attached).reason, Reason::PassField);
        assert!(judged(other, &plain()).is_answered(), "the tables are made anew");
    }

    /// The heads by which the differential test shows which clients are answered.
    #[test]
    fn heads_of_real_clients_are_explained_as_the_test_of_the_parsers_judges_them() {
        let text = include_str!("../tests/agree/clients.txt");
        let heads = text.split("\n== ").skip(1).map(|head| {
            let lines = head.lines().skip(1).filter(|line| !line.is_empty()).chain([""]);
            lines.flat_map(|line| [line, "\r\n"]).collect::<String>()
        });
        let mut count = 0;
        for head in heads {
            // As in that test: nothing but identity is stored for the index.
            let alone = head.split(' ').nth(1) == Some("/");
            let assumed = if alone { Assumed { codings: &[], ..plain() } } else { plain() };
            assert!(judged(&head, &assumed).is_answered(), "{head}");
            count += 1;
        }
        assert!(count > 10);
    }
}
