//! Memory that the maps hold: that of what is served, while it is.

use std::time::Duration;

use afpa_bpf::Settings;

use crate::support::{SITE, Sample, World};

#[test]
fn pages_have_memory_while_they_are_used() {
    const OBJECTS: usize = 100;
    let settings = Settings {
        answer_max: 65_536,
        retire_after: Duration::from_secs(1),
        ..Settings::default()
    };
    let Some((_world, fast_path)) = World::with_one_pinned(settings) else { return };
    let held = || fast_path.objects.pages_held();
    assert_eq!(held(), 0);
    let name = |number: usize| format!("/{number}.html");
    for number in 0..OBJECTS {
        Sample::new(vec![b'x'; 10_000]).pin(&fast_path, &name(number));
    }
    assert_eq!(held(), 2 * OBJECTS);
    assert_eq!(fast_path.objects.usage().pages, 2 * OBJECTS);
    for number in 0..OBJECTS {
        assert!(fast_path.objects.unpin(SITE, name(number).as_bytes()).expect("unpinned"));
    }
    fast_path.objects.forget_retired().expect("looked at");
    assert_eq!(held(), 2 * OBJECTS, "a client may be about to get one");
    std::thread::sleep(Duration::from_millis(1100));
    fast_path.objects.forget_retired().expect("looked at");
    assert_eq!((held(), fast_path.objects.usage().pages), (0, 0));
    Sample::new(vec![b'x'; 16_000]).pin(&fast_path, "/again.html");
    assert_eq!(held(), 3);
}
