//! One keep-alive connection, answered by the kernel and by an ordinary server in turn.

use crate::support::{Lent, SERVER_V4, SERVER_V6, Sample, World};
use afpa_bpf::{FastPath, Reason, Settings};
use afpa_testkit::Client;

/// nginx with a small and a large file of its own, and a pinned object it does not have.
fn world() -> Option<(World, Lent, Sample)> {
    let mut world = World::new()?;
    world.file("small.html", b"from nginx");
    world.file("large.bin", &vec![b'z'; 3_000_000]);
    world.nginx("");
    world.await_server();
    let fast_path = world.fast_path(Settings::default())?;
    let sample = Sample::new([b'k'; 512]);
    sample.pin(&fast_path, "/kernel.html");
    Some((world, fast_path, sample))
}

fn kernel_and_user_in_turn(fast_path: &FastPath, client: &mut Client, sample: &Sample) {
    let large = vec![b'z'; 3_000_000];
    for round in 0..20 {
        fast_path.clock.beat();
        let reply = client.get("/kernel.html");
        assert!(reply.is_from_kernel(), "round {round}: {reply:?}");
        assert_eq!(reply.body, sample.body());
        let reply = client.get("/small.html");
        assert!(!reply.is_from_kernel(), "round {round}: {reply:?}");
        assert_eq!(reply.body, b"from nginx");
        if round % 5 == 0 {
            assert_eq!(client.get("/large.bin").body, large, "round {round}");
            fast_path.clock.beat();
            assert!(
                client.get("/kernel.html").is_from_kernel(),
                "after the large file, round {round}"
            );
        }
        assert!(client.get("/kernel.html").is_from_kernel(), "second in a row, round {round}");
    }
    client.assert_quiet();
}

fn run(address: &str, prepare: impl Fn(&World)) {
    let Some((world, fast_path, sample)) = world() else { return };
    prepare(&world);
    let before = fast_path.stats.counters().expect("counters");
    kernel_and_user_in_turn(&fast_path, &mut world.connect(address), &sample);
    let counters = fast_path.stats.counters().expect("counters").since(&before);
    for (reason, count) in counters.iter().filter(|(_, count)| *count != 0) {
        println!("{count:>8} {}", reason.text());
    }
    assert_eq!(counters[Reason::Answered], 44);
    assert_eq!(counters[Reason::Unsolicited] + counters[Reason::ResponseUnsure], 0);
}

#[test]
fn ipv4() {
    run(SERVER_V4, |_| ());
}

#[test]
fn ipv6() {
    run(SERVER_V6, |_| ());
}

#[test]
fn without_timestamps() {
    run(SERVER_V4, |world| world.sysctl("net.ipv4.tcp_timestamps=0"));
}

#[test]
fn full_checksums() {
    run(SERVER_V4, |world| world.ethtool("tx", "off"));
}

#[test]
fn full_checksums_ipv6() {
    run(SERVER_V6, |world| world.ethtool("tx", "off"));
}
