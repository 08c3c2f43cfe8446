//! A group as the workers use it.

use std::future::Future as _;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::*;
use crate::health::HealthSettings;

const OK: AttemptOutcome = AttemptOutcome::Ok { status: 200, first_byte_us: 500, total_us: 1000 };

fn servers(count: usize) -> Vec<ServerSettings> {
    let place = |n| format!("10.0.0.{}:80", n + 1).parse().unwrap();
    (0..count).map(|n| ServerSettings::at(place(n))).collect()
}

fn group(count: usize, change: impl FnOnce(&mut GroupSettings)) -> Arc<Group> {
    let mut settings = GroupSettings {
        name: "app".to_owned(),
        servers: servers(count),
        ..GroupSettings::default()
    };
    change(&mut settings);
    Group::new(settings, None, 0)
}

#[track_caller]
fn lease(pick: Pick) -> Lease {
    match pick {
        Pick::Server(lease) => lease,
        other => panic!("no server: {other:?}"),
    }
}

#[track_caller]
fn why(pick: Pick) -> WhyNone {
    match pick {
        Pick::None(why) => why,
        other => panic!("not refused: {other:?}"),
    }
}

#[track_caller]
fn waiter(pick: Pick) -> Waiter {
    match pick {
        Pick::Queue(waiter) => waiter,
        other => panic!("does not wait: {other:?}"),
    }
}

fn poll(waiter: &mut Waiter) -> Poll<Pick> {
    Pin::new(waiter).poll(&mut Context::from_waker(Waker::noop()))
}

#[track_caller]
fn ready(waiter: &mut Waiter) -> Pick {
    match poll(waiter) {
        Poll::Ready(pick) => pick,
        Poll::Pending => panic!("still waits"),
    }
}

fn any() -> Chosen<'static> {
    Chosen::default()
}

fn from(last: u8) -> Chosen<'static> {
    Chosen { client: Some(IpAddr::from([192, 0, 2, last])), ..Chosen::default() }
}

fn refuse(group: &Arc<Group>, now: u64, times: usize) {
    for _ in 0..times {
        lease(group.pick(now, &any(), &[])).finish(now, AttemptOutcome::ConnectRefused);
    }
}

#[test]
fn turns_are_the_papers() {
    let group = group(3, |settings| settings.servers[1].weight = 3);
    let order: Vec<u32> = (0..10)
        .map(|now| {
            let lease = lease(group.pick(now, &any(), &[]));
            let server = lease.server().0;
            lease.finish(now, OK);
            server
        })
        .collect();
    assert_eq!(order, [0, 1, 1, 1, 2, 0, 1, 1, 1, 2]);
    let report = group.report(10);
    assert_eq!(report.servers.iter().map(|s| s.counts.requests).collect::<Vec<_>>(), [2, 6, 2]);
    assert!(report.servers.iter().all(|s| s.in_flight == 0 && s.state == "up"));
}

#[test]
fn a_repeated_request_goes_elsewhere_and_the_refusing_server_gets_no_more() {
    let group = group(2, |_| ());
    let first = lease(group.pick(0, &any(), &[]));
    let tried = [first.server()];
    first.finish(1, AttemptOutcome::ConnectRefused);
    let second = lease(group.pick(1, &any(), &tried));
    assert_ne!(second.server(), tried[0]);
    second.finish(2, OK);
    for now in 2..20 {
        let lease = lease(group.pick(now, &any(), &[]));
        assert_ne!(lease.server(), tried[0]);
        lease.finish(now, OK);
    }
    assert_eq!(why(group.pick(20, &any(), &[ServerIndex(0), ServerIndex(1)])), WhyNone::AllTried);
}

#[test]
fn the_last_resort_is_told_by_cause() {
    let group = group(2, |_| ());
    refuse(&group, 0, 2);
    let none = why(group.pick(1, &any(), &[]));
    assert_eq!(none, WhyNone::AllDown { why: WhyDown::Refused, retry_after_s: 10 });
    assert_eq!((none.status().code(), none.retry_after_s()), (502, 10));
    let trial = lease(group.pick(1000, &any(), &[]));
    let other = lease(group.pick(1000, &any(), &[]));
    assert_ne!(trial.server(), other.server(), "each of them is tried");
    assert!(matches!(group.pick(1001, &any(), &[]), Pick::None(_)), "once a second");
    other.finish(1002, AttemptOutcome::ConnectRefused);
    trial.finish(1002, OK);
    assert_eq!(lease(group.pick(1003, &any(), &[])).server(), ServerIndex(0), "it is back");
}

#[test]
fn slow_servers_are_a_gateway_timeout() {
    let group = group(1, |_| ());
    for now in 0..3 {
        lease(group.pick(now, &any(), &[])).finish(now, AttemptOutcome::FirstByteTimeout);
    }
    assert_eq!(why(group.pick(4, &any(), &[])).status().code(), 504);
    let empty = self::group(0, |_| ());
    assert_eq!(why(empty.pick(0, &any(), &[])), WhyNone::NoServers);
}

#[test]
fn a_full_server_has_a_queue_and_whoever_waits_is_served_in_order() {
    let group = group(1, |settings| {
        settings.servers[0].max_connections = 2;
        settings.queue.length = 2;
    });
    let (first, second) = (lease(group.pick(0, &any(), &[])), lease(group.pick(0, &any(), &[])));
    let mut third = waiter(group.pick(0, &any(), &[]));
    let mut fourth = waiter(group.pick(0, &any(), &[]));
    assert_eq!(why(group.pick(0, &any(), &[])), WhyNone::QueueFull);
    assert!(poll(&mut third).is_pending());
    first.finish(1, OK);
    assert!(poll(&mut fourth).is_pending(), "the third was first");
    let third = lease(ready(&mut third));
    drop(second); // its client went away
    drop(lease(ready(&mut fourth)));
    drop(third);
    let report = group.report(2);
    assert_eq!((report.servers[0].in_flight, report.waiting, report.waited), (0, 0, 2));
    assert_eq!((report.queue_full, report.servers[0].counts.cancelled), (1, 3));
}

#[test]
fn who_leaves_the_queue_gives_back_even_what_it_got_meanwhile() {
    let group = group(1, |settings| settings.servers[0].max_connections = 1);
    let held = lease(group.pick(0, &any(), &[]));
    let gone = waiter(group.pick(0, &any(), &[]));
    let mut next = waiter(group.pick(0, &any(), &[]));
    drop(gone);
    let report = group.report(0);
    assert_eq!((report.waiting, report.left_queue), (1, 1));
    let unread = waiter(group.pick(0, &any(), &[]));
    held.finish(1, OK);
    let next = lease(ready(&mut next));
    next.finish(2, OK);
    drop(unread); // it had a lease by now
    assert_eq!(group.report(3).servers[0].in_flight, 0);
}

#[test]
fn nobody_waits_for_servers_that_are_gone() {
    let group = group(1, |settings| settings.servers[0].max_connections = 1);
    let held = lease(group.pick(0, &any(), &[]));
    let mut waiter = waiter(group.pick(0, &any(), &[]));
    held.finish(1, AttemptOutcome::ConnectRefused);
    assert!(matches!(why(ready(&mut waiter)), WhyNone::AllDown { .. }));
}

#[test]
fn a_hopeless_wait_is_refused_at_once() {
    let group = group(1, |settings| {
        settings.servers[0].max_connections = 1;
        settings.queue.timeout = Duration::from_secs(1);
    });
    let slow = AttemptOutcome::Ok { status: 200, first_byte_us: 1, total_us: 400_000 };
    lease(group.pick(0, &any(), &[])).finish(0, slow);
    let _held = lease(group.pick(0, &any(), &[]));
    let _waiting = [(); 2].map(|()| waiter(group.pick(0, &any(), &[])));
    assert_eq!(why(group.pick(0, &any(), &[])), WhyNone::Shed, "1.2 s would be too long");
    assert_eq!(group.report(0).shed, 1);
}

#[test]
fn requests_of_one_client_stay_with_one_server_while_it_is_there() {
    let group = group(5, |settings| settings.affinity = Affinity::Client);
    let mut of = Vec::new();
    for client in 0..200 {
        let servers: Vec<_> =
            (0..3).map(|_| lease(group.pick(0, &from(client), &[])).server()).collect();
        assert!(servers.iter().all(|server| *server == servers[0]), "{client}: {servers:?}");
        of.push(servers[0]);
    }
    for server in 0..5 {
        assert!(of.iter().filter(|of| of.0 == server).count() > 10, "{server} has its share");
    }
    let down = lease(group.pick(0, &from(0), &[]));
    assert_eq!(down.server(), of[0]);
    down.finish(0, AttemptOutcome::ConnectRefused);
    for client in 0..200 {
        let now = lease(group.pick(1, &from(client), &[])).server();
        let stayed = now == of[usize::from(client)];
        assert_eq!(stayed, of[usize::from(client)] != of[0], "{client}");
    }
}

#[test]
fn a_cookie_keeps_a_client_with_its_server_and_tells_nothing() {
    let group = group(3, |settings| settings.affinity = Affinity::Cookie);
    let first = lease(group.pick(0, &any(), &[]));
    let field = String::from_utf8(first.set_cookie(false).unwrap().to_vec()).unwrap();
    let value = field.strip_prefix("afpa=").unwrap().split(';').next().unwrap().to_owned();
    assert_eq!(value.len(), 32);
    assert!(!field.contains("10.0.0") && field.contains("HttpOnly"), "{field}");
    let back = Chosen { cookie: Some(value.as_bytes()), ..Chosen::default() };
    for _ in 0..5 {
        let lease = lease(group.pick(0, &back, &[]));
        assert_eq!((lease.server(), lease.set_cookie(false)), (first.server(), None));
    }
    let forged = Chosen { cookie: Some(b"00000000000000000000000000000000"), ..Chosen::default() };
    assert!(lease(group.pick(0, &forged, &[])).set_cookie(false).is_some());
    let (server, mut kept) = (first.server(), None);
    first.finish(1, AttemptOutcome::ConnectRefused);
    for _ in 0..2 {
        let lease = lease(group.pick(1, &back, &[]));
        assert_ne!(lease.server(), server);
        kept = lease.set_cookie(false).map(<[u8]>::to_vec);
    }
    assert!(kept.is_some_and(|new| new != field.as_bytes()), "it gets another one");
}

#[test]
fn a_draining_server_keeps_its_own_clients_only() {
    let cookie = |settings: &mut GroupSettings| settings.affinity = Affinity::Cookie;
    let before = group(2, cookie);
    let first = lease(before.pick(0, &any(), &[]));
    let field = first.set_cookie(false).unwrap().to_vec();
    let mut settings = GroupSettings {
        name: "app".to_owned(),
        servers: servers(2),
        affinity: Affinity::Cookie,
        ..GroupSettings::default()
    };
    settings.servers[0].weight = 0;
    let group = Group::new(settings, Some(&before), 1);
    let back = Chosen { cookie: Some(&field[5..37]), ..Chosen::default() };
    assert_eq!(lease(group.pick(1, &back, &[])).server(), first.server());
    for _ in 0..10 {
        assert_ne!(lease(group.pick(1, &any(), &[])).server(), first.server());
    }
    assert_eq!(group.report(1).servers[0].state, "draining");
}

#[test]
fn a_server_that_was_ordered_to_drain_gets_no_new_requests_until_it_is_ready() {
    let before = group(2, |_| {});
    assert_eq!(before.order_drain("10.0.0.9:80", true), [""; 0], "there is no such server");
    let held = lease(before.pick(0, &any(), &[]));
    assert!(held.server() == ServerIndex(0) && held.wanted().get());
    assert_eq!(before.order_drain("10.0.0.1:80", true), ["10.0.0.1:80"]);
    assert!(!held.wanted().get(), "its connections are kept no more");
    let settings = GroupSettings { servers: servers(2), ..GroupSettings::default() };
    let group = Group::new(settings.clone(), Some(&before), 1);
    for _ in 0..10 {
        assert_eq!(lease(group.pick(1, &any(), &[])).server(), ServerIndex(1), "a reload keeps it");
    }
    assert_eq!(group.report(1).servers[0].state, "draining");
    assert_eq!(group.order_drain("10.0.0.2:80", true), ["10.0.0.2:80"]);
    assert_eq!(why(group.pick(1, &any(), &[])), WhyNone::NoServers);
    assert_eq!(group.order_drain("10.0.0.1:80", false), ["10.0.0.1:80"]);
    assert!(held.wanted().get());
    assert_eq!(lease(group.pick(1, &any(), &[])).server(), ServerIndex(0));
    // A server that leaves the group and comes back begins anew.
    group.order_drain("10.0.0.2:80", false);
    let other = lease(group.pick(1, &any(), &[held.server()]));
    assert!(other.wanted().get());
    let without = GroupSettings { servers: servers(1), ..settings.clone() };
    let without = Group::new(without, Some(&group), 2);
    assert!(held.wanted().get() && !other.wanted().get());
    let again = Group::new(settings, Some(&without), 3);
    assert!(again.report(3).servers.iter().all(|server| server.state == "up"));
}

#[test]
fn a_name_means_all_its_addresses_and_each_is_meant_alone() {
    let group = group(0, |settings| {
        settings.servers = vec![ServerSettings::at("app.example:80".parse().unwrap())];
    });
    let [place] = &group.names()[..] else { panic!("one name") };
    let addresses = ["10.1.0.1:80", "10.1.0.2:80"].map(|text| text.parse().unwrap());
    group.resolved(place, &addresses, 1);
    assert_eq!(group.order_drain("app.example:80", true).len(), 2);
    assert_eq!(group.order_drain("10.1.0.1:80", false), ["app.example:80 10.1.0.1:80"]);
    assert_eq!(group.order_drain("app.example:80 10.1.0.2:80", false).len(), 1);
}

#[test]
fn the_fewest_connections_for_its_weight() {
    let group = group(3, |settings| {
        settings.select = Select::LeastConnections;
        settings.servers[2].weight = 2;
    });
    let held: Vec<_> = (0..40).map(|_| lease(group.pick(0, &any(), &[]))).collect();
    let count = |server| held.iter().filter(|lease| lease.server().0 == server).count();
    assert_eq!([count(0), count(1), count(2)], [10, 10, 20]);
}

#[test]
fn a_url_has_its_server_until_that_has_more_than_its_share() {
    let group = group(4, |settings| settings.select = Select::UrlHash);
    let hot = Chosen { url_hash: url_hash(b"/hot", None), ..Chosen::default() };
    let home = lease(group.pick(0, &hot, &[])).server();
    for _ in 0..50 {
        assert_eq!(lease(group.pick(0, &hot, &[])).server(), home, "one at a time");
    }
    let held: Vec<_> = (0..80).map(|_| lease(group.pick(0, &hot, &[]))).collect();
    for server in 0..4 {
        let has = held.iter().filter(|lease| lease.server().0 == server).count();
        assert!(has <= 25, "{server} has {has} of 80: more than 125 % of 20");
    }
    assert_eq!(held.iter().filter(|lease| lease.server() == home).count(), 25);
}

#[test]
fn errors_eject_but_never_more_than_half() {
    let group = group(4, |_| ());
    for now in 0..400 {
        lease(group.pick(now, &any(), &[])).finish(now, AttemptOutcome::Reset);
    }
    let report = group.report(400);
    let out = report.servers.iter().filter(|server| !server.available).count();
    assert_eq!(out, 2, "{report:?}");
}

#[test]
fn a_reload_keeps_what_is_known_of_servers_that_stay() {
    let before = group(3, |_| ());
    let leases: Vec<_> = (0..3).map(|_| lease(before.pick(0, &any(), &[]))).collect();
    let id = leases[1].id();
    let mut leases = leases.into_iter();
    leases.next().unwrap().finish(0, AttemptOutcome::ConnectRefused);
    let mut kept = servers(3);
    kept.remove(2);
    kept.reverse();
    kept.push(ServerSettings::at("10.0.0.9:80".parse().unwrap()));
    let settings = GroupSettings { name: "app".to_owned(), servers: kept, ..Default::default() };
    let group = Group::new(settings, Some(&before), 1);
    let names: Vec<_> = group.report(1).servers.into_iter().map(|s| (s.name, s.state)).collect();
    let expected = [("10.0.0.2:80", "up"), ("10.0.0.1:80", "refused"), ("10.0.0.9:80", "up")];
    assert_eq!(names, expected.map(|(name, state)| (name.to_owned(), state)));
    assert_eq!(group.report(1).servers[0].in_flight, 1);
    assert_eq!(leases.next().unwrap().id(), id);
    leases.next().unwrap().finish(2, AttemptOutcome::ConnectRefused); // of one that is gone: nobody cares
    for _ in 0..4 {
        let lease = lease(group.pick(2, &any(), &[]));
        assert!(lease.name() == "10.0.0.9:80" || lease.id() == id, "{}", lease.name());
    }
}

#[test]
fn every_address_of_a_name_is_a_server() {
    let group = group(0, |settings| {
        settings.servers = vec![ServerSettings::at("app.example:80".parse().unwrap())];
    });
    let place = group.names().remove(0);
    assert_eq!(why(group.pick(0, &any(), &[])), WhyNone::NoServers);
    let addresses = ["192.0.2.1:80", "192.0.2.2:80"].map(|text| text.parse().unwrap());
    group.resolved(&place, &addresses, 1);
    let held = lease(group.pick(1, &any(), &[]));
    assert_eq!(held.address().to_string(), "192.0.2.1:80");
    let other = lease(group.pick(1, &any(), &[]));
    assert_ne!(other.id(), held.id());
    group.resolved(&place, &[], 2);
    assert_eq!(group.report(2).servers.len(), 2, "no answer is no news");
    group.resolved(&place, &addresses[1..], 3);
    for _ in 0..3 {
        assert_eq!(lease(group.pick(3, &any(), &[])).id(), other.id());
    }
    group.resolved(&place, &addresses, 4);
    let back = (0..2).map(|_| lease(group.pick(4, &any(), &[])).id());
    assert!(back.collect::<Vec<_>>().contains(&held.id()), "its requests had not ended");
}

#[test]
fn probes_are_due_when_the_paper_says() {
    let group = group(2, |settings| settings.health = HealthSettings::default());
    assert_eq!(group.next_probe(), None);
    refuse(&group, 500, 1);
    assert_eq!(group.next_probe(), Some(10_500));
    let [task] = <[_; 1]>::try_from(group.due_probes(10_500)).unwrap();
    group.probed(10_600, &task, true);
    let report = group.report(10_600);
    assert_eq!((report.servers[0].counts.ups, report.servers[0].counts.downs), (1, 1));
    assert!(report.servers[0].available);
}

fn of(last: u8) -> Chosen<'static> {
    Chosen { sharer: Some(IpAddr::from([192, 0, 2, last])), ..Chosen::default() }
}

#[test]
fn one_client_leaves_room_and_what_it_waits_for_holds_nobody_up() {
    let group = group(1, |settings| {
        settings.servers[0].max_connections = 8;
        settings.queue.length = 8;
    });
    let mut mine: Vec<_> = (0..6).map(|_| lease(group.pick(0, &of(1), &[]))).collect();
    let mut waiting: Vec<_> = (0..6).map(|_| waiter(group.pick(0, &of(1), &[]))).collect();
    assert_eq!(why(group.pick(0, &of(1), &[])), WhyNone::ClientWaits);
    assert_eq!(why(group.pick(0, &of(1), &[])).status().code(), 429);
    let others = [2, 3].map(|client| lease(group.pick(0, &of(client), &[])));
    let mut fourth = waiter(group.pick(0, &of(4), &[]));
    let [second, _third] = others;
    second.finish(1, OK);
    assert!(waiting.iter_mut().all(|waiting| poll(waiting).is_pending()), "it has its share");
    let fourth = lease(ready(&mut fourth));
    for lease in mine.drain(..5) {
        lease.finish(2, OK);
    }
    assert!(waiting.iter_mut().take(4).all(|waiting| poll(waiting).is_ready()), "in its share");
    drop((fourth, waiting, mine));
    let report = group.report(3);
    assert_eq!((report.client_waits, report.waiting), (2, 0));
}

#[test]
fn whoever_speaks_for_many_clients_has_no_share() {
    let group = group(1, |settings| {
        settings.servers[0].max_connections = 8;
        settings.queue.length = 8;
    });
    let _all: Vec<_> = (0..8).map(|_| lease(group.pick(0, &any(), &[]))).collect();
    let _waiting: Vec<_> = (0..8).map(|_| waiter(group.pick(0, &any(), &[]))).collect();
    assert_eq!(why(group.pick(0, &of(1), &[])), WhyNone::QueueFull);
}
