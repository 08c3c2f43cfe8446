use std::io::Cursor;
use std::sync::Arc;

use afpa_cache::{Arena, CacheSettings, Key, Object};
use afpa_http::caching::snapshot;

use super::*;
use crate::key::{self, labels::Purge};
use crate::policy::CachePolicy;
use crate::store::list::room_for;
use crate::store::stored::{Circumstances, StoredResponse};

/// A process with one request set.
struct Process {
    responses: Arc<Responses>,
    policy: Arc<CachePolicy>,
    scope: u32,
    present: Present,
}

impl Process {
    /// At a second of the clock on the wall, with a configuration that says so of its rules.
    fn at(second: u64, rules: &str) -> Self {
        Self::within(second, rules, 8 << 20)
    }

    fn within(second: u64, rules: &str, memory: usize) -> Self {
        let arena = Arena::new(memory).expect("memory");
        let responses = Responses::new(CacheSettings::default(), arena);
        let policy = Arc::new(CachePolicy::default());
        // A number that differs from process to process.
        for number in 0..second % 7 {
            responses.scope(&number.to_string(), &policy);
        }
        let scope = responses.scope(rules, &policy);
        let unix_us = second * 1_000_000;
        let now = Now { unix_us, steady_us: 9_000_000 };
        let clocks = Clocks { unix_us, boot: 1, boot_us: unix_us };
        let present = Present { clocks, now, since: responses.cache().moment() };
        Self { responses, policy, scope, present }
    }

    /// Lists an answer for a path as if a server had sent it with these fields.
    fn list(&self, path: &str, fields: &[(&str, &str)], variant: &str, content: &str) {
        let now = self.present.now;
        let lines = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let (policy, host) = (&*self.policy, &b"host"[..]);
        let about = Circumstances { policy, asked_at: now, now, host, rules: None };
        let draft = Draft::new(b"HTTP/1.1 200 OK", 200, lines, about).expect("no star").0;
        let primary = self.key(path);
        let variant = [&primary[..], variant.as_bytes()].concat();
        let (primary, variant) = (&primary.into(), &variant.into());
        let place = ListPlace { primary, variant, since: self.responses.cache().moment() };
        let room = room_for(&self.responses, &[content.as_bytes()], 1 << 20).expect("room");
        let content = Content::Whole(Payload::Pinned(room), content.len() as u64);
        self.responses.list(policy, &place, draft, content, now).expect("listed");
    }

    /// The key for a path, which may go on with what follows in the key of a response that varies.
    fn key(&self, path: &str) -> Vec<u8> {
        let (path, variant) = path.split_at(path.find('\n').unwrap_or(path.len()));
        let label = key::url_label(b"host", path.as_bytes(), None);
        [&label[..], b"\x04\0\0\0", &self.scope.to_le_bytes(), variant.as_bytes()].concat()
    }

    fn object(&self, path: &str) -> Option<Arc<Object<StoredResponse>>> {
        self.responses.cache().get(&Key::new(0, &self.key(path)))
    }

    /// Content and age of what is kept.
    fn kept(&self, path: &str) -> Option<(String, u64)> {
        let object = self.object(path)?;
        let response = object.header().response()?;
        let Some(Payload::Pinned(bytes)) = object.payloads().first() else { return None };
        let text = String::from_utf8(bytes.to_vec()).expect("text");
        Some((text, response.at(self.present.now).age))
    }

    fn used(&self, path: &str, hits: u32) {
        self.responses.cache().touch(&[(self.object(path).expect("kept").id(), hits)]);
    }

    fn save(&self, most: usize) -> Vec<u8> {
        let (mut out, Present { clocks, now, .. }) = (Vec::new(), &self.present);
        self.responses.save(clocks, *now, most, &mut out).expect("memory");
        assert!(out.len() <= most);
        out
    }

    fn restore(&self, snapshot: &[u8]) -> Result<Restored, Refused> {
        self.responses.restore(&mut Cursor::new(snapshot), snapshot.len(), &self.present)
    }
}

const MINUTE: &[(&str, &str)] = &[("Cache-Control", "max-age=60"), ("ETag", "\"e\"")];

#[test]
fn the_time_of_the_stop_is_part_of_the_age() {
    let before = Process::at(1_000, "rules");
    before.list("/a", MINUTE, "", "one");
    before.list("/stale", &[("Cache-Control", "max-age=10")], "", "two");
    let longer = ("Cache-Control", "max-age=10, stale-while-revalidate=40");
    before.list("/used-stale", &[longer], "", "three");
    let snapshot = before.save(1 << 20);
    let after = Process::at(1_045, "rules");
    let restored = after.restore(&snapshot).expect("whole");
    assert_eq!(restored, Restored { taken: 2, stale: 1, ..Restored::default() });
    assert_eq!(after.kept("/a"), Some(("one".into(), 45)));
    assert_eq!(after.kept("/used-stale"), Some(("three".into(), 45)));
    assert_eq!(after.kept("/stale"), None);
    assert_eq!(Process::at(1_060, "rules").restore(&snapshot).expect("whole").stale, 3);
    let earlier = Process::at(999, "rules").restore(&snapshot);
    assert!(matches!(earlier, Err(Refused::Broken(Broken::SetBack))), "{earlier:?}");
}

#[test]
fn what_is_restored_is_what_was_kept() {
    let before = Process::at(1_000, "rules");
    before.list("/a", MINUTE, "", "one");
    before.used("/a", 3);
    let snapshot = before.save(1 << 20);
    let after = Process::at(1_001, "rules");
    after.restore(&snapshot).expect("whole");
    let (old, new) = (before.object("/a").expect("kept"), after.object("/a").expect("kept"));
    // All but when it came, which is said in another way.
    let parts = |object: &Object<StoredResponse>| {
        let draft = &object.header().response().expect("a response").draft;
        let Draft { facts, took_us, life, .. } = draft;
        let (vary, tags) = (draft.vary(), draft.tags());
        let values = (draft.etag(), draft.last_modified(), draft.content_type(), draft.language());
        format!("{:?}", (facts, took_us, life, draft.head(), values, (vary, tags)))
    };
    assert_eq!(parts(&old), parts(&new));
    assert_eq!(after.responses.cache().hits(&[Key::new(0, &after.key("/a"))]), [3]);
    // And once more: nothing is lost on the way, and the age goes on.
    let third = Process::at(1_002, "rules");
    assert_eq!(third.restore(&after.save(1 << 20)).expect("whole").taken, 1);
    assert_eq!(third.kept("/a"), Some(("one".into(), 2)));
}

#[test]
fn answers_that_vary_are_found_again() {
    let before = Process::at(1_000, "rules");
    let fields = [("Cache-Control", "max-age=60"), ("Vary", "Accept-Encoding")];
    before.list("/v", &fields, "\n=gzip", "zip");
    before.list("/v", &fields, "\n", "plain");
    let snapshot = before.save(1 << 20);
    let after = Process::at(1_001, "rules");
    assert_eq!(after.restore(&snapshot).expect("whole").taken, 2);
    assert_eq!(after.object("/v").expect("an index").header().varies(), Some(true));
    assert_eq!(after.kept("/v\n=gzip"), Some(("zip".into(), 1)));
    assert_eq!(after.kept("/v\n"), Some(("plain".into(), 1)));
    // Since then the server has said that they do not vary, or by something else.
    for fields in [&fields[..1], &[fields[0], ("Vary", "Cookie")]] {
        let after = Process::at(1_001, "rules");
        after.list("/v", fields, "\n=x", "new");
        assert_eq!(after.restore(&snapshot).expect("whole").overtaken, 2);
        assert_eq!((after.kept("/v\n=gzip"), after.kept("/v\n")), (None, None));
    }
}

#[test]
fn purges_hold_on_both_sides_of_the_stop() {
    let before = Process::at(1_000, "rules");
    let tagged = [MINUTE[0], ("Surrogate-Key", "red")];
    for path in ["/a", "/b", "/c", "/d"] {
        before.list(path, &tagged, "", "old");
    }
    let url = |path: &str| {
        let (host, path) = (Some(b"host".to_vec()), path.into());
        Purge::Url { host, path, query: None }
    };
    before.responses.purge(&url("/a"), false);
    before.responses.purge(&url("/b"), true);
    let snapshot = before.save(1 << 20);
    let after = Process::at(1_001, "rules");
    after.responses.purge(&url("/c"), false);
    let restored = after.restore(&snapshot).expect("whole");
    assert_eq!(restored, Restored { taken: 1, overtaken: 1, ..Restored::default() });
    assert_eq!(after.responses.purge(&Purge::Tag(b"red".to_vec()), false), 1);
    assert!(["/a", "/b", "/c", "/d"].iter().all(|path| after.kept(path).is_none()));
    assert_eq!(after.restore(&snapshot).expect("whole").overtaken, 2);
}

#[test]
fn what_has_come_since_stays() {
    let before = Process::at(1_000, "rules");
    before.list("/a", MINUTE, "", "old");
    before.list("/b", MINUTE, "", "old");
    let snapshot = before.save(1 << 20);
    let after = Process::at(1_001, "rules");
    after.list("/a", MINUTE, "", "new");
    // The server has said that its answer is not kept any more.
    after.responses.passes().note(after.responses.hash(&after.key("/b")), 99);
    assert_eq!(after.restore(&snapshot).expect("whole").overtaken, 2);
    assert_eq!((after.kept("/a"), after.kept("/b")), (Some(("new".into(), 0)), None));
}

#[test]
fn other_rules_find_nothing() {
    let before = Process::at(1_000, "rules");
    before.list("/a", MINUTE, "", "one");
    let restored = Process::at(1_001, "other").restore(&before.save(1 << 20));
    assert_eq!(restored.expect("whole"), Restored { other_rules: 1, ..Restored::default() });
}

#[test]
fn the_most_used_come_first_and_push_nothing_out() {
    let before = Process::at(1_000, "rules");
    let content = "x".repeat(1_000);
    for number in 0..20 {
        before.list(&format!("/{number}"), MINUTE, "", &content);
        before.used(&format!("/{number}"), number);
    }
    let snapshot = before.save(10_000);
    let after = Process::at(1_001, "rules");
    let Restored { taken, .. } = after.restore(&snapshot).expect("whole");
    assert!((5..10).contains(&taken), "{taken}");
    let first = 20 - taken;
    assert!((0..20).all(|number| after.kept(&format!("/{number}")).is_some() == (number >= first)));
    let small = Process::within(1_001, "rules", 4 << 10);
    let restored = small.restore(&snapshot).expect("whole");
    assert!(restored.no_room > 0 && restored.taken > 0, "{restored:?}");
    assert!(small.kept("/19").is_some() && small.responses.stats().ejections == 0);
}

#[test]
fn nothing_of_a_broken_snapshot_is_used() {
    let before = Process::at(1_000, "rules");
    before.list("/a", MINUTE, "", "one");
    before.list("/b", MINUTE, "", "two");
    let whole = before.save(1 << 20);
    let last = whole.len() - snapshot::END_LEN - 20;
    let changed: Vec<u8> =
        whole.iter().enumerate().map(|(at, byte)| byte ^ u8::from(at == last)).collect();
    let cut = whole[..whole.len() - 1].to_vec();
    let longer = [&whole[..], b"\0"].concat();
    let mut version = whole.clone();
    version[snapshot::MAGIC.len()] = 1;
    for (bytes, why) in [
        (changed, Broken::Changed),
        (cut, Broken::Cut),
        (longer, Broken::Longer),
        (version, Broken::Version(1)),
        (b"[site]".to_vec(), Broken::Foreign),
        (Vec::new(), Broken::Cut),
    ] {
        let after = Process::at(1_001, "rules");
        let refused = after.restore(&bytes);
        assert!(matches!(&refused, Err(Refused::Broken(found)) if *found == why), "{refused:?}");
        assert_eq!(after.responses.stats().objects, 0);
    }
}
