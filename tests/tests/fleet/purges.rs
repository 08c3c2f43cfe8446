//! Orders to purge reach every machine, those that are away included.

use afpa_testkit::{Server, eventually, eventually_within};
use rustix::process::Signal;
use serde_json::Value;

use crate::bed::{
    Application, Nats, Relay, SOON, gather, live, look, machine, said, urls, version,
};

/// Orders that a machine has carried out, and times that it has dropped everything.
fn counts(machine: &Server) -> (u64, u64) {
    let look = look(machine);
    let count = |name: &str| look["counts"][name].as_u64().expect("a count");
    (count("purges"), count("flushes"))
}

#[track_caller]
fn purge(machine: &Server, arguments: &[&str]) -> String {
    let (is_well, text) =
        said(machine, &[&["purge", "--fleet", "--wait", "60"], arguments].concat());
    assert!(is_well, "{text}\n{}", machine.log());
    text
}

#[test]
fn a_purge_returns_when_every_machine_has_done_it() {
    let Some(nats) = Nats::start(3) else { return };
    let application = Application::start();
    let join = |name| machine(name, &nats.urls(), &application, ("", ""));
    let machines = [join("a"), join("b"), join("c")];
    let all: Vec<&Server> = machines.iter().collect();
    gather(&all, &["a", "b", "c"]);
    let versions = |target: &str| machines.each_ref().map(|machine| version(machine, target));
    for target in ["/a", "/b", "/below/x", "/tagged"] {
        assert_eq!(versions(target), [1, 1, 1]);
    }
    application.change();
    assert_eq!(versions("/a"), [1, 1, 1], "kept");
    let text = purge(&machines[0], &["/a"]);
    assert!(text.contains("3 machines have done it: a, b, c"), "{text}");
    assert_eq!((versions("/a"), versions("/b")), ([2, 2, 2], [1, 1, 1]));
    purge(&machines[1], &["--below", "/below/"]);
    assert_eq!(versions("/below/x"), [2, 2, 2]);
    purge(&machines[2], &["--soft", "--tag", "all"]);
    assert_eq!(versions("/tagged"), [2, 2, 2], "validated");

    // Another order is refused before anybody gets it.
    let (is_well, text) = said(&machines[0], &["call", "fleet/purge", "below=yes"]);
    assert!(!is_well && text.contains("purge needs"), "{text}");
    // Each has its own and those of the others, in one order.
    assert!(machines.iter().all(|machine| counts(machine).0 == 3));
    for machine in &machines {
        eventually("all are at the same place", || live(machine) == ["a", "b", "c"]);
    }
}

#[test]
fn the_method_purge_at_one_machine_reaches_all() {
    let Some(nats) = Nats::start(1) else { return };
    let application = Application::start();
    let open = ("", "[site.cache]\npurge_from = [\"127.0.0.0/8\"]\n");
    let a = machine("a", &nats.urls(), &application, open);
    let b = machine("b", &nats.urls(), &application, open);
    gather(&[&a, &b], &["a", "b"]);
    let order = |target: &str, field: &str| {
        let head = format!("PURGE {target} HTTP/1.1\r\nHost: test\r\n{field}\r\n");
        assert_eq!(a.connect().exchange(head).status, 200);
    };
    for target in ["/a?x=1", "/b"] {
        assert_eq!((version(&a, target), version(&b, target)), (1, 1));
    }
    application.change();
    order("/a?x=1", "");
    eventually_within(SOON, "b has dropped it", || version(&b, "/a?x=1") == 2);
    assert_eq!((version(&a, "/a?x=1"), version(&b, "/b")), (2, 1));
    order("/", "Surrogate-Key: all\r\n");
    eventually_within(SOON, "b has dropped what has the tag", || version(&b, "/b") == 2);
}

#[test]
fn a_machine_that_is_cut_off_is_named_and_catches_up_and_its_own_orders_are_sent_later() {
    let Some(nats) = Nats::start(1) else { return };
    let application = Application::start();
    let relay = Relay::to(nats.address(0));
    let a = machine("a", &nats.urls(), &application, ("", ""));
    let b = machine("b", &urls([relay.address]), &application, ("", ""));
    gather(&[&a, &b], &["a", "b"]);
    for target in ["/a", "/b"] {
        assert_eq!((version(&a, target), version(&b, target)), (1, 1));
    }
    let flushes = counts(&b).1;
    relay.cut();
    application.change();
    let (is_well, text) = said(&a, &["purge", "--fleet", "--wait", "60", "/a"]);
    assert!(!is_well && text.contains("b is silent for"), "{text}");
    assert_eq!((version(&a, "/a"), version(&b, "/a")), (2, 1));
    let (is_well, text) = said(&b, &["purge", "--fleet", "--wait", "1", "/b"]);
    assert!(!is_well && text.contains("done here alone"), "{text}");
    assert_eq!((version(&a, "/b"), version(&b, "/b")), (1, 2));

    relay.mend();
    eventually_within(SOON, "b gets a's order", || version(&b, "/a") == 2);
    eventually_within(SOON, "a gets b's order", || version(&a, "/b") == 2);
    assert_eq!(counts(&b).1, flushes, "nothing was missed");
}

#[test]
fn orders_that_wait_outlive_the_process() {
    let Some(nats) = Nats::start(1) else { return };
    let application = Application::start();
    let relay = Relay::to(nats.address(0));
    let a = machine("a", &nats.urls(), &application, ("", ""));
    let mut b = machine("b", &urls([relay.address]), &application, ("", ""));
    gather(&[&a, &b], &["a", "b"]);
    assert_eq!(version(&a, "/b"), 1);
    application.change();
    relay.cut();
    let (is_well, text) = said(&b, &["purge", "--fleet", "--wait", "1", "/b"]);
    assert!(!is_well && text.contains("waits"), "{text}");
    eventually_within(SOON, "the queue is on disk", || {
        let queue = std::fs::read_to_string(b.home().join("fleet/queue"));
        queue.is_ok_and(|queue| queue.contains("path=/b"))
    });
    b.kill_and_restart();
    assert_eq!(version(&a, "/b"), 1);
    relay.mend();
    eventually_within(SOON, "a gets the order of b's former process", || version(&a, "/b") == 2);
    eventually_within(SOON, "it waits no more", || look(&b)["waiting"] == 0);
}

#[test]
fn the_number_of_an_order_of_the_process_before_is_that_of_none() {
    let application = Application::start();
    // Nobody is there, so orders wait.
    let mut a = machine("a", "[\"nats://127.0.0.1:9\"]", &application, ("", ""));
    let order = |a: &Server, path: &str| {
        let sent = a.command(&["call", "fleet/purge", &format!("path={path}")]);
        let answer: Value = serde_json::from_slice(&sent.stdout)
            .unwrap_or_else(|error| panic!("{error}: {sent:?}"));
        answer["number"].as_u64().expect("a number")
    };
    let fate =
        |a: &Server, number: u64| said(a, &["call", "fleet/order", &format!("number={number}")]);
    let before = order(&a, "/before");
    let (is_known, text) = fate(&a, before);
    assert!(is_known && text.contains("queued"), "{text}");
    a.kill_and_restart();
    assert_ne!(order(&a, "/since"), before);
    let (is_known, text) = fate(&a, before);
    assert!(!is_known && text.contains("started again"), "{text}");
}

#[test]
fn a_machine_that_was_away_longer_than_the_retention_drops_everything() {
    let Some(nats) = Nats::start(1) else { return };
    let application = Application::start();
    let relay = Relay::to(nats.address(0));
    let short = ("retention = \"1s\"", "");
    let a = machine("a", &nats.urls(), &application, short);
    let b = machine("b", &urls([relay.address]), &application, short);
    gather(&[&a, &b], &["a", "b"]);
    assert_eq!((version(&b, "/a"), version(&b, "/other")), (1, 1));
    let (_, flushes) = counts(&b);
    relay.cut();
    application.change();
    let (_, text) = said(&a, &["purge", "--fleet", "--wait", "60", "/a"]);
    assert!(text.contains("b is silent for"), "{text}");
    assert_eq!((version(&b, "/a"), version(&b, "/other")), (1, 1), "it serves on");
    // The order has expired by now: silence takes longer than the retention.
    relay.mend();
    eventually_within(SOON, "everything has gone", || counts(&b).1 == flushes + 1);
    assert_eq!((version(&b, "/a"), version(&b, "/other")), (2, 2));
}

#[test]
fn answers_of_before_a_restart_are_there_but_for_those_that_were_purged_meanwhile() {
    let Some(nats) = Nats::start(1) else { return };
    let application = Application::start();
    let snapshot = "[shared_cache]\nlimit = \"16MiB\"\nsnapshot = \"HOME/snapshot/cache\"\n";
    let a = machine("a", &nats.urls(), &application, ("", ""));
    let mut b = machine("b", &nats.urls(), &application, ("", snapshot));
    gather(&[&a, &b], &["a", "b"]);
    assert_eq!((version(&b, "/purged"), version(&b, "/kept")), (1, 1));
    application.change();
    b.end_and_restart(Signal::TERM, || {
        eventually("b has left", || live(&a) == ["a"]);
        purge(&a, &["/purged"]);
    });
    let told = || b.log().matches("answers taken over").count();
    eventually_within(SOON, "the snapshot is read", || told() == 1);
    assert_eq!((version(&b, "/kept"), version(&b, "/purged")), (1, 2));
    assert_eq!(counts(&b), (1, 0), "one order, and nothing was missed");
}

#[test]
fn kept_answers_are_stale_when_there_was_no_word_for_too_long() {
    let Some(nats) = Nats::start(1) else { return };
    let application = Application::start();
    let relay = Relay::to(nats.address(0));
    let strict = ("stale_after = \"2s\"", "");
    let a = machine("a", &urls([relay.address]), &application, strict);
    gather(&[&a], &["a"]);
    assert_eq!(version(&a, "/a"), 1);
    application.change();
    assert_eq!(version(&a, "/a"), 1);
    relay.cut();
    eventually_within(SOON, "it is validated", || version(&a, "/a") == 2);
    // So is one that was kept since then.
    application.change();
    eventually_within(SOON, "again", || version(&a, "/a") == 3);
    assert_eq!(a.log().matches("no word of the fleet").count(), 1);
    relay.mend();
    eventually_within(SOON, "there is word again", || live(&a) == ["a"]);
    let kept = version(&a, "/a");
    application.change();
    assert_eq!(version(&a, "/a"), kept, "it is fresh again");
}
