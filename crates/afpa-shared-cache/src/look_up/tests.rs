use afpa_cache::{Arena, CacheSettings, Key, Payload};
use afpa_framework::{Client, Now};
use afpa_http::{FieldSlots, Request, RequestLimits, request};
use afpa_proxy::exchange;
use afpa_proxy::request::Origin;

use super::*;
use crate::policy::CachePolicy;
use crate::store::list::{Content, ListPlace};
use crate::store::stored::{Circumstances, Draft};

const NOW: Now = Now { unix_us: 1_700_000_000_000_000, steady_us: 5_000_000 };

struct Rig {
    cache: SiteCache,
    view: View<StoredResponse>,
    room: KeyRoom,
    exchange: exchange::Settings,
}

impl Rig {
    fn new() -> Self {
        let arena = Arena::new(4 << 20).expect("memory");
        let responses = Responses::new(CacheSettings::default(), arena);
        let wake: Arc<dyn Fn() + Send + Sync> = Arc::new(|| {});
        let view = responses.view(&wake);
        let policy = Arc::new(CachePolicy::default());
        let cache = SiteCache { responses, policy, scope: 0, place: [0; 16] };
        Self { cache, view, room: KeyRoom::default(), exchange: exchange::Settings::default() }
    }

    /// Whether the request is a hit, and how often finding that out allocates memory.
    fn look_up(&mut self, fields: &str) -> (bool, u64) {
        with_request(fields, |request| {
            let Self { cache, view, room, exchange } = self;
            let (path, client, names_client) = (&b"/"[..], Client::Unix, false);
            let wanted = CacheRequest {
                cache,
                exchange,
                origin: Origin::default(),
                request,
                url: path,
                path,
                sent: None,
                client,
                is_early: false,
                names_client,
                now: NOW,
            };
            let mut hit = false;
            let counted = allocation_counter::measure(|| {
                hit = matches!(look_up(view, room, wanted), Found::Hit(..));
            });
            (hit, counted.count_total)
        })
    }

    /// Keeps an answer to a request, with this field line of its own.
    fn keep(&mut self, fields: &str, line: (&str, &str)) {
        with_request(fields, |request| {
            let SiteCache { responses, policy, scope, .. } = &self.cache;
            let lines = [("Cache-Control", "max-age=60"), line];
            let lines = lines.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
            let host = &b"test"[..];
            let about = Circumstances { policy, asked_at: NOW, now: NOW, host, rules: None };
            let draft = Draft::new(b"HTTP/1.1 200 OK", 200, lines.into_iter(), about);
            let draft = draft.expect("no star").0;
            let place = Place {
                scope: *scope,
                url: b"/",
                path: b"/",
                origin: Origin::default(),
                sent: None,
            };
            let mut primary = Vec::new();
            key::put_primary(policy, &self.exchange, request, place, &mut primary);
            let mut variant = primary.clone();
            vary::put_key(draft.vary(), request, &mut variant);
            let since = responses.cache().moment();
            let (primary, variant) = (&primary.into(), &variant.into());
            let place = ListPlace { primary, variant, since };
            let room = responses.cache().reserve_now(4, 1024).expect("room");
            let content = Content::Whole(Payload::Pinned(room.freeze()), 4);
            assert!(responses.list(policy, &place, draft, content, NOW).is_ok());
        });
    }
}

fn with_request<T>(fields: &str, then: impl FnOnce(&Request<'_, '_>) -> T) -> T {
    let head = format!("GET / HTTP/1.1\r\nHost: test\r\n{fields}\r\n");
    let mut slots = FieldSlots::new();
    let request = request::parse(head.as_bytes(), &mut slots, &RequestLimits::default());
    then(&request.expect("valid").expect("whole"))
}

#[test]
fn a_hit_allocates_nothing() {
    let mut rig = Rig::new();
    assert!(!rig.look_up("").0);
    rig.keep("", ("X", "y"));
    assert!(rig.look_up("").0, "the first look-up learns the object");
    assert_eq!(rig.look_up(""), (true, 0));

    let mut rig = Rig::new();
    let fields = "Accept-Encoding: gzip, deflate, br, zstd\r\n";
    rig.keep(fields, ("Vary", "Accept-Encoding"));
    assert!(rig.look_up(fields).0);
    assert_eq!(rig.look_up(fields), (true, 0));
    assert!(rig.look_up("Accept-Encoding: br,gzip ,ZSTD,deflate\r\n").0);
    assert!(!rig.look_up("Accept-Encoding: gzip\r\n").0);
}

#[test]
fn each_use_is_counted_once_for_the_response_and_for_its_index() {
    for vary in [false, true] {
        let mut rig = Rig::new();
        rig.keep("", if vary { ("Vary", "Accept-Encoding") } else { ("X", "y") });
        (0..5).for_each(|_| assert!(rig.look_up("").0));
        let keys = [&rig.room.primary, &rig.room.variant].map(|key| Key::new(0, key));
        rig.view.flush_touches();
        let used = if vary { [5, 5] } else { [5, 0] };
        assert_eq!(rig.cache.responses.cache().hits(&keys), used, "vary: {vary}");
    }
}
