//! Servers and machines that die, stop and come back, while orders are given: none is lost, and no machine answers with
//! what is older than an order that it has acknowledged.

use afpa_testkit::{Client, Server, eventually_within};
use rustix::process::Signal;

use crate::bed::{Application, Nats, SOON, gather, live, look, machine, said, version};

const TARGETS: [&str; 3] = ["/a", "/b", "/c"];

/// Each machine keeps an answer, the content changes, and machine `from` gets the order to purge. Returns the orders that were
/// acknowledged by all, after which no answer was older.
fn round(application: &Application, machines: &[&Server], from: usize) -> usize {
    let mut acknowledged = 0;
    for target in TARGETS {
        machines.iter().for_each(|machine| drop(machine.get(target)));
        let now = application.change();
        let order = ["purge", "--fleet", "--wait", "60", target];
        let (is_well, text) = said(machines[from], &order);
        if !is_well {
            eprintln!("not acknowledged: {text}");
            continue;
        }
        acknowledged += 1;
        for machine in machines {
            let version = version(machine, target);
            assert!(version >= now, "{target}: {version}, and {now} was acknowledged\n{text}");
        }
    }
    acknowledged
}

#[test]
fn no_order_is_lost_and_no_answer_is_older_whatever_dies() {
    let Some(mut nats) = Nats::start(3) else { return };
    let application = Application::start();
    let urls = nats.urls();
    let join = |name: &str| machine(name, &urls, &application, ("", ""));
    let (mut a, mut b, c) = (join("a"), join("b"), join("c"));
    gather(&[&a, &b, &c], &["a", "b", "c"]);
    assert_eq!(round(&application, &[&a, &b, &c], 0), 3, "all are well");

    // One server of three dies, and comes back: the others agree without it.
    for number in 0..3 {
        nats.kill(number);
        let all = [&a, &b, &c];
        let acknowledged = round(&application, &all, number);
        eprintln!("without server {number}: {acknowledged} of 3 acknowledged");
        nats.run(number);
        caught_up(&application, &all);
    }

    // One stops, as one whose disk hangs: its connections stay open.
    nats.signal(1, Signal::STOP);
    let acknowledged = round(&application, &[&a, &b, &c], 1);
    eprintln!("with a server that stopped: {acknowledged} of 3 acknowledged");
    nats.signal(1, Signal::CONT);
    caught_up(&application, &[&a, &b, &c]);

    // Machines: one is killed and begins anew, one stops, and a new one joins.
    a.kill_and_restart();
    caught_up(&application, &[&a, &b, &c]);
    b.signal(Signal::STOP);
    let now = application.change();
    let (is_well, text) = said(&c, &["purge", "--fleet", "--wait", "60", "/a"]);
    assert!(!is_well && text.contains("b "), "{text}");
    b.signal(Signal::CONT);
    eventually_within(SOON, "b has done it", || version(&b, "/a") >= now);
    b.kill_and_restart();
    let d = join("d");
    gather(&[&a, &b, &c, &d], &["a", "b", "c", "d"]);
    assert_eq!(round(&application, &[&a, &b, &c, &d], 3), 3, "all are well again");

    // All servers die at once. Every machine serves on; orders wait, and come when there is a majority again.
    (0..3).for_each(|number| nats.kill(number));
    let all = [&a, &b, &c, &d];
    all.iter().for_each(|machine| drop(machine.get("/last")));
    let now = application.change();
    for machine in all {
        assert!(version(machine, "/last") < now);
        let (is_well, _) = said(machine, &["purge", "--fleet", "--wait", "0.2", "/last"]);
        assert!(!is_well && version(machine, "/last") >= now, "its own orders are done at once");
    }
    (0..3).for_each(|number| nats.run(number));
    caught_up(&application, &all);
}

#[test]
fn thousands_of_orders_reach_every_machine_while_servers_die() {
    const ORDERS: u64 = 3000;
    let Some(mut nats) = Nats::start(3) else { return };
    let application = Application::start();
    let urls = nats.urls();
    let join = |name: &str| machine(name, &urls, &application, ("", ""));
    let machines = [join("a"), join("b"), join("c")];
    gather(&machines.each_ref(), &["a", "b", "c"]);
    for order in 0..ORDERS {
        match order {
            500 => nats.kill(0),
            1000 => nats.run(0),
            1500 => nats.signal(1, Signal::STOP),
            2000 => nats.signal(1, Signal::CONT),
            // No two servers are left: nothing can be agreed on.
            2300 => [0, 2].into_iter().for_each(|number| nats.kill(number)),
            2600 => [0, 2].into_iter().for_each(|number| nats.run(number)),
            _ => {}
        }
        let giver = &machines[order as usize % machines.len()];
        let mut client = Client::connect(&giver.control()).expect("connected");
        let head = format!(
            "POST /fleet/purge?tag={order} HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n"
        );
        assert_eq!(client.exchange(head).status, 200);
    }
    for machine in &machines {
        eventually_within(SOON * 2, "nothing waits", || look(machine)["waiting"] == 0);
    }
    for machine in &machines {
        // One whose acknowledgement is lost is sent again, and may be there twice.
        let last = || look(machine)["last_purge"].as_u64();
        let is_there = || last() >= Some(ORDERS) && live(machine).len() == 3;
        eventually_within(SOON * 2, "all are at the place of the last order", is_there);
        let look = look(machine);
        let (last, done) = (&look["last_purge"], &look["counts"]["purges"]);
        assert_eq!(done, last, "{look}\n{}", machine.log());
        assert_eq!(
            look["counts"]["flushes"],
            1,
            "that of the beginning: {look}\n{}",
            machine.log()
        );
    }
}

/// Waits until every machine has done all that was ordered, and shows it by one more order.
#[track_caller]
fn caught_up(application: &Application, machines: &[&Server]) {
    for machine in machines {
        eventually_within(SOON, "all members are back", || live(machine).len() == machines.len());
    }
    for (number, machine) in machines.iter().enumerate() {
        machines.iter().for_each(|machine| drop(machine.get("/all")));
        let now = application.change();
        let mut text = String::new();
        eventually_within(SOON, "an order is acknowledged by all", || {
            let (is_well, words) = said(machine, &["purge", "--fleet", "--wait", "20", "/all"]);
            text = words;
            is_well
        });
        for (other, machine) in machines.iter().enumerate() {
            assert!(version(machine, "/all") >= now, "{number} to {other}: {text}");
        }
    }
}
