//! Answers of several segments that end early, are refused, or meet segments that are not theirs.

use std::time::Duration;

use crate::support::SITE;
use crate::support::lab::{Lab, SOON, UNIT, begin, check, data, join, repeats, settings};
use afpa_bpf::{Reason, Settings};
use afpa_testkit::packet::{ACK, FIN, RST, Segment};

#[test]
fn a_reset_ends_the_transfer() {
    let Some(lab) = Lab::new(settings()) else { return };
    let mut client = lab.connected();
    begin(&mut client, "/big.html");
    client.send(&Segment { flags: RST | ACK, seq: client.seq.wrapping_add(77), ..client.next() });
    std::thread::sleep(SOON);
    assert_eq!(
        lab.fast_path.flows.transfers().expect("counted"),
        1,
        "not one that the kernel would not believe"
    );
    client.send(&Segment { flags: RST | ACK, ..client.next() });
    std::thread::sleep(SOON);
    assert_eq!(lab.fast_path.flows.transfers().expect("counted"), 0);
    lab.service_timers(Duration::from_millis(400));
    client.collect(SOON);
    assert_eq!(lab.count(Reason::TransferEnded), 1);
}

#[test]
fn a_client_that_closes_in_the_middle_gets_the_rest_first() {
    let Some(lab) = Lab::new(settings()) else { return };
    let mut client = lab.connected();
    let (_, segments) = begin(&mut client, "/big.html");
    let mut whole = join(&mut client, &segments);
    while whole.len() < 60_000 {
        client.send(&Segment { flags: FIN | ACK, ..client.next() });
        let all = client.collect(SOON);
        assert!(all.iter().all(|s| s.flags & FIN == 0), "not before the end");
        whole.extend(join(&mut client, &data(all)));
    }
    check(&whole, 60_000);
    client.send(&Segment { flags: FIN | ACK, ..client.next() });
    let end = client.collect(Duration::from_millis(200));
    assert!(end.iter().any(|s| s.flags & FIN != 0 && s.seq == client.ack), "{end:?}");
}

#[test]
fn a_version_that_is_gone_ends_both_sides() {
    let Some(lab) = Lab::new(Settings { retired_bytes: 0, ..settings() }) else { return };
    let mut client = lab.connected();
    begin(&mut client, "/big.html");
    assert!(lab.fast_path.objects.unpin(SITE, b"/big.html").expect("unpinned"));
    std::thread::sleep(Duration::from_millis(1100));
    lab.fast_path.objects.reclaim().expect("reclaimed"); // no byte is kept longer than a second
    client.send(&client.next());
    let end = client.collect(SOON);
    assert!(data(end.clone()).is_empty(), "{} segments of another version", end.len());
    assert!(end.iter().any(|s| s.flags & RST != 0), "the client waits in vain: {end:?}");
    assert_eq!(lab.count(Reason::TransferLost), 1);
    assert_eq!(lab.fast_path.flows.transfers().expect("counted"), 0);
}

#[test]
fn a_full_table_and_clients_without_room_are_left_to_user_mode() {
    let Some(lab) = Lab::new(Settings { transfers: 1, ..settings() }) else { return };
    let mut first = lab.connected();
    begin(&mut first, "/big.html");
    let mut second = lab.connected();
    assert!(second.ask(&second.get("/big.html")).text().ends_with("big, but from nginx"));
    assert_eq!(lab.count(Reason::PassTransfersFull), 1);
    let mut narrow = lab.connected();
    let request = Segment { window: 20, ..narrow.get("/big.html") }; // 2,560 bytes
    assert!(narrow.ask(&request).text().ends_with("big, but from nginx"));
    assert_eq!(lab.count(Reason::PassWindow), 1);
}

#[test]
fn damaged_and_foreign_acknowledgements_change_nothing() {
    let Some(lab) = Lab::new(settings()) else { return };
    let mut client = lab.connected();
    let (_, segments) = begin(&mut client, "/big.html");
    let honest = client.next();
    let end = segments[9].seq.wrapping_add(UNIT as u32);
    for foreign in [
        Segment { ack: end, checksum_holds: false, ..honest.clone() },
        Segment { ack: end.wrapping_add(200_000), ..honest.clone() },
        Segment { ack: client.ack.wrapping_sub(5000), ..honest.clone() },
        Segment { ack: end, seq: client.seq.wrapping_add(1 << 30), ..honest.clone() },
    ] {
        client.send(&foreign);
    }
    assert!(data(client.collect(SOON)).is_empty());
    assert_eq!(lab.count(Reason::TransferInvalid), 4);
    let whole = join(&mut client, &segments);
    assert_eq!(whole.len(), 10 * UNIT);
}

#[test]
fn a_client_that_has_vanished_is_given_up_on_both_sides() {
    let Some(lab) = Lab::new(settings()) else { return };
    let mut client = lab.connected();
    begin(&mut client, "/big.html");
    lab.fast_path.flows.age_transfers(Duration::from_secs(59)).expect("aged");
    lab.service_timers(SOON);
    assert_eq!(lab.count(Reason::TransferGivenUp), 0, "a minute is a minute");
    lab.fast_path.flows.age_transfers(Duration::from_secs(2)).expect("aged");
    lab.service_timers(Duration::from_millis(200));
    let end = client.collect(SOON);
    assert!(end.iter().any(|s| s.flags & RST != 0 && s.seq == client.ack), "{end:?}");
    assert_eq!(lab.count(Reason::TransferGivenUp), 1);
    assert_eq!(lab.fast_path.flows.transfers().expect("counted"), 0);
    assert_eq!(lab.fast_path.flows.translated_flows().expect("counted"), 0);
    // The server's socket is gone as well: it answers as to a stranger.
    client.send(&client.next());
    let end = client.collect(SOON);
    assert!(end.iter().any(|s| s.flags == RST), "{end:?}");
}

#[test]
fn clients_without_sack_get_one_segment_from_here() {
    let Some(lab) = Lab::new(settings()) else { return };
    let mut client = lab.world.raw();
    client.habits.sack = false;
    client.connect();
    lab.fast_path.clock.beat();
    assert!(client.ask(&client.get("/kernel.html")).is_from_kernel());
    assert!(client.ask(&client.get("/big.html")).text().ends_with("big, but from nginx"));
    assert_eq!(lab.count(Reason::TransferBegun), 0);
    assert_eq!(lab.count(Reason::PassWindow), 1);
}

#[test]
fn one_setting_bounds_what_is_answered() {
    let Some(lab) = Lab::new(Settings { answer_max: 6000, ..settings() }) else { return };
    let mut client = lab.connected();
    let (_, segments) = begin(&mut client, "/some.html");
    assert_eq!(segments.len(), 4);
    join(&mut client, &segments);
    assert!(client.ask(&client.get("/big.html")).text().ends_with("big, but from nginx"));
}

#[test]
fn what_leaves_after_a_time_out_may_be_cut_by_routers() {
    let Some(lab) = Lab::new(settings()) else { return };
    let mut client = lab.connected();
    let (_, segments) = begin(&mut client, "/some.html");
    assert!(segments.iter().all(|s| s.dont_fragment));
    lab.service_timers(Duration::from_millis(700));
    let again = data(client.collect(SOON));
    let cut: Vec<_> = again.iter().filter(|s| !s.dont_fragment).collect();
    assert!(!cut.is_empty(), "a path may have become narrower");
    assert!(cut.iter().all(|s| s.payload.len() <= 1228), "{cut:?}");
    assert!(repeats(&again, &segments) && again.iter().all(|s| s.checksum_holds));
}
