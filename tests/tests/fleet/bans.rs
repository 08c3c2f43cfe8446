//! Orders to deny reach every machine, and those that join later.

use afpa_testkit::{Server, eventually, eventually_within};

use crate::bed::{Application, Nats, Relay, SOON, gather, look, machine, said, urls};

/// Orders of a log that a machine finds when it joins.
const COUNT: u64 = 150;

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
fn a_machine_that_joins_carries_out_all_that_there_are_together() {
    let Some(nats) = Nats::start(1) else { return };
    let application = Application::start();
    let join = |name| machine(name, &nats.urls(), &application, ("", ""));
    let a = join("a");
    gather(&[&a], &["a"]);
    for number in 1..=COUNT {
        let order = format!(
            "{{\"by\":\"x\",\"order\":\"deny\",\"prefix\":\"10.9.0.{number}\",\"denied\":true}}"
        );
        nats.put(&format!("afpa.bans.10_9_0_{number}"), &order);
    }
    let bans = |machine: &Server| look(machine)["counts"]["bans"].as_u64().expect("a count");
    eventually_within(SOON, "a has them", || bans(&a) == COUNT);
    let b = join("b");
    eventually_within(SOON, "b has them", || bans(&b) == COUNT);
    for machine in [&a, &b] {
        assert!(denies(machine, "10.9.0.1 ") && denies(machine, &format!("10.9.0.{COUNT} ")));
    }
    assert!(b.log().contains("prefixes, by orders of the fleet"), "{}", b.log());
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

#[test]
fn an_order_that_the_servers_refuse_is_told_and_holds_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("nats.conf");
    let rights = "authorization { users: [ { user: afpa, password: secret, permissions: {
        publish: { allow: [\">\"], deny: [\"afpa.bans.>\"] }, subscribe: \">\" } } ] }\n";
    std::fs::write(&file, rights).expect("written");
    let configured = |_| vec![format!("--config={}", file.display())];
    let Some(nats) = Nats::start_with(1, configured) else { return };
    // Somebody has made the log, for short orders alone.
    let stream = "{\"name\":\"afpa-purges\",\"subjects\":[\"afpa.purges.>\"],\"retention\":\"limits\",\
        \"storage\":\"file\",\"num_replicas\":1,\"max_msg_size\":300}";
    let made = nats.request("afpa:secret", "$JS.API.STREAM.CREATE.afpa-purges", stream);
    assert!(made.contains("\"max_msg_size\":300"), "{made}");

    let application = Application::start();
    let secret = folder.path().join("credentials");
    std::fs::write(&secret, "afpa:secret\n").expect("written");
    let credentials = format!("credentials = \"{}\"", secret.display());
    let a = machine("a", &nats.urls(), &application, (&credentials, ""));
    gather(&[&a], &["a"]);
    let order = |order: &[&str]| said(&a, &[order, &["--fleet", "--wait", "60"]].concat());
    let (is_well, text) = order(&["purge", &format!("/{}", "x".repeat(400))]);
    assert!(!is_well && text.contains("refuse it: message size exceeds"), "{text}");
    let (is_well, text) = order(&["deny", "add", "192.0.2.1"]);
    assert!(!is_well && text.contains("refuse it: no right to publish to afpa.bans."), "{text}");
    let (is_well, text) = order(&["purge", "/short"]);
    assert!(is_well && text.contains("1 machine has done it"), "{text}");
    assert_eq!(look(&a)["waiting"], 0);
}
