//! Memory of slots and pages: of some from the start on, of the others while they are used.

use std::time::Duration;

use afpa_bpf::{Coding, MORE_VARIANT_BYTES, PinError, Reason, Settings, Variant};
use afpa_testkit::eventually;

use crate::support::{SERVER_V4, SITE, Sample, World};

#[test]
fn places_that_are_not_ready_have_memory_while_they_are_used() {
    const OBJECTS: usize = 100;
    const READY: usize = 50;
    let settings = Settings {
        answer_max: 65_536,
        ready_objects: 10,
        ready_pages: READY as u32,
        retire_after: Duration::from_secs(1),
        ..Settings::default()
    };
    let Some((world, fast_path)) = World::with_one_pinned(settings) else { return };
    let held = || fast_path.objects.more_pages();
    assert_eq!(held(), 0);
    let name = |number: usize| format!("/{number}.html");
    let body = |number: usize| vec![b'a' + (number % 26) as u8; 6_000 + number];
    for number in 0..OBJECTS {
        Sample::new(body(number)).pin(&fast_path, &name(number));
    }
    assert_eq!(held(), 2 * OBJECTS - READY);
    assert_eq!(fast_path.objects.usage().pages, 2 * OBJECTS);
    let mut client = world.connect(SERVER_V4);
    for number in [0, 20, 30, OBJECTS - 1] {
        let request = format!("GET {} HTTP/1.1\r\nHost: server\r\n\r\n", name(number));
        assert_eq!(client.exchange(request).body, body(number));
    }
    assert_eq!(fast_path.stats.counters().expect("counters")[Reason::Answered], 4);
    for number in 0..OBJECTS {
        assert!(fast_path.objects.unpin(SITE, name(number).as_bytes()).expect("unpinned"));
    }
    fast_path.objects.forget_retired().expect("looked at");
    assert_eq!(held(), 2 * OBJECTS - READY, "a client may be about to get one");
    eventually("they are given back", || {
        fast_path.objects.forget_retired().expect("looked at");
        (held(), fast_path.objects.usage().pages) == (0, 0)
    });
    Sample::new(vec![b'x'; 9_000]).pin(&fast_path, "/again.html");
    assert_eq!((held(), fast_path.objects.usage().pages), (0, 3), "ready ones first");
}

#[test]
fn the_memory_of_places_that_are_not_ready_is_bounded() {
    let settings = Settings {
        ready_objects: 4,
        ready_pages: 0,
        more_bytes: 6 * MORE_VARIANT_BYTES,
        ..Settings::default()
    };
    let Some((_world, fast_path)) = World::with_one_pinned(settings) else { return };
    let taken = fast_path.objects.usage().slots;
    assert_eq!(fast_path.objects.free_slots(), 10 - taken);
    for number in taken..10 {
        Sample::new(b"x").pin(&fast_path, &format!("/{number}.html"));
    }
    assert_eq!((fast_path.objects.free_slots(), fast_path.objects.usage().slots), (0, 10));
    let none_is_free = fast_path.objects.pin(
        SITE,
        b"/another.html",
        &[Variant {
            coding: Coding::Identity,
            closing: false,
            etag: b"",
            last_modified: None,
            freshness: None,
            whole: None,
            not_modified: None,
        }],
    );
    assert!(matches!(none_is_free, Err(PinError::Full)), "{none_is_free:?}");
}
