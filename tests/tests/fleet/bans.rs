//! Orders to deny reach every machine, and those that join later.

use afpa_testkit::{Server, eventually, eventually_within};

use crate::bed::{Application, Nats, Relay, SOON, gather, machine, said, urls};

fn denies(machine: &Server, prefix: &str) -> bool {
    said(machine, &["deny", "list"]).1.contains(prefix)
}

#[test]
fn a_denied_prefix_is_denied_everywhere_and_by_machines_that_join_later() {
    let Some(nats) = Nats::start(1) else { return };
    let application = Application::start();
    let join = |name| machine(name, &nats.urls(), &application, ("", ""));
    let (a, b) = (join("a"), join("b"));
    gather(&[&a, &b], &["a", "b"]);
    let order = |machine: &Server, what: &str, prefix: &str| {
        let (is_well, text) = said(machine, &["deny", what, "--fleet", "--wait", "60", prefix]);
        assert!(is_well && text.contains("machines have done it"), "{text}");
    };
    order(&a, "add", "192.0.2.0/24");
    order(&b, "add", "2001:db8::/32");
    order(&b, "add", "198.51.100.7");
    for machine in [&a, &b] {
        for prefix in ["192.0.2.0/24", "2001:db8::/32", "198.51.100.7"] {
            assert!(denies(machine, prefix), "{prefix}");
        }
    }
    order(&b, "del", "192.0.2.0/24");
    assert!(!denies(&a, "192.0.2.0/24") && !denies(&b, "192.0.2.0/24"));
    let mut c = join("c");
    eventually_within(SOON, "c has them", || denies(&c, "2001:db8::/32"));
    eventually("all of them", || denies(&c, "198.51.100.7"));
    assert!(!denies(&c, "192.0.2.0/24"));
    c.kill_and_restart();
    eventually_within(SOON, "c has them again", || denies(&c, "198.51.100.7"));
    let (is_well, text) = said(&a, &["call", "fleet/deny/add", "prefix=nonsense"]);
    assert!(!is_well && text.contains("neither an address nor a prefix"), "{text}");
}

#[test]
fn a_machine_that_was_away_gets_what_changed() {
    let Some(nats) = Nats::start(1) else { return };
    let application = Application::start();
    let relay = Relay::to(nats.address(0));
    let a = machine("a", &nats.urls(), &application, ("", ""));
    let b = machine("b", &urls([relay.address]), &application, ("", ""));
    gather(&[&a, &b], &["a", "b"]);
    relay.cut();
    for prefix in ["192.0.2.1", "192.0.2.2", "192.0.2.1"] {
        said(&a, &["deny", "add", "--fleet", "--wait", "0.1", prefix]);
    }
    said(&a, &["deny", "del", "--fleet", "--wait", "0.1", "192.0.2.1"]);
    relay.mend();
    eventually_within(SOON, "b has what is in force", || {
        denies(&b, "192.0.2.2") && !denies(&b, "192.0.2.1")
    });
}
