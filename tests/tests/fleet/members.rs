//! The members, and what each machine says of them.

use std::time::Duration;

use afpa_testkit::limits::is_root;
use afpa_testkit::proc::Process;
use afpa_testkit::server::free_address;
use afpa_testkit::{Client, Server, eventually, eventually_within};
use rustix::process::Signal;

use crate::bed::{
    Application, Nats, Next, Relay, SOON, gather, live, look, machine, process, said, urls, version,
};

#[test]
fn machines_see_each_other_and_one_that_ends_or_falls_silent() {
    let Some(nats) = Nats::start(1) else { return };
    let application = Application::start();
    let join = |name| machine(name, &nats.urls(), &application, ("region = \"west\"", ""));
    let (a, mut b, c) = (join("a"), join("b"), join("c"));
    gather(&[&a, &b, &c], &["a", "b", "c"]);
    let (is_well, table) = said(&a, &["fleet"]);
    assert!(is_well, "{table}");
    assert!(table.contains("NAME") && table.contains("west"), "{table}");
    assert_eq!((table.matches("this one").count(), table.matches("live").count()), (1, 2));

    // A clean end is said; a machine that stops is silent after some seconds, and is still known.
    b.signal(Signal::TERM);
    assert!(b.wait(SOON).is_some());
    eventually("the end was said", || live(&a) == ["a", "c"]);
    assert!(!said(&a, &["fleet"]).1.contains("silent"));
    c.signal(Signal::STOP);
    eventually_within(SOON, "c is silent", || said(&a, &["fleet"]).1.contains("silent for"));
    assert_eq!(live(&a), ["a"]);
    c.signal(Signal::CONT);
    eventually_within(SOON, "c is back", || live(&a) == ["a", "c"]);
}

#[test]
fn heartbeats_carry_load_and_hits_and_the_metrics_have_the_members() {
    let Some(nats) = Nats::start(1) else { return };
    let application = Application::start();
    let a = machine("a", &nats.urls(), &application, ("", ""));
    let b = machine("b", &nats.urls(), &application, ("", ""));
    gather(&[&a, &b], &["a", "b"]);
    eventually_within(SOON, "b's answers are seen at a, most of them hits", || {
        for _ in 0..20 {
            version(&b, "/hit");
        }
        let look = look(&a);
        let member = &look["members"][1];
        member["rate"].as_u64() > Some(0) && member["hits"].as_u64() > Some(500)
    });
    let metrics = metrics(&a);
    for line in
        ["afpa_fleet_members{state=\"live\"} 2", "afpa_fleet_connected 1", "afpa_fleet_lag 0"]
    {
        assert!(metrics.contains(line), "{line} in\n{metrics}");
    }
    let stats = said(&a, &["stats", "--json"]).1;
    let stats: serde_json::Value = serde_json::from_str(&stats).expect("JSON");
    assert_eq!(stats["fleet"]["members"], 2, "{stats}");
    let checks = look(&a);
    let check = |number: usize| checks["members"][number]["configuration"].as_str().map(str::len);
    assert_eq!((check(0), check(1)), (Some(8), Some(8)));
}

fn metrics(machine: &Server) -> String {
    let mut client = Client::connect(&machine.control()).expect("connected");
    client.exchange("GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n").text().to_owned()
}

#[test]
fn servers_that_cannot_be_reached_are_one_line_and_no_failure() {
    let application = Application::start();
    let nobody = urls([free_address(), free_address()]);
    let a = machine("a", &nobody, &application, ("", ""));
    assert_eq!(version(&a, "/"), 1);
    let lines = || a.log().matches("no server of the fleet can be reached").count();
    eventually_within(SOON, "it is said", || lines() == 1);
    assert!(said(&a, &["fleet"]).1.contains("no server can be reached"));
    let (is_well, text) = said(&a, &["purge", "--fleet", "--wait", "0.2", "/"]);
    assert!(!is_well && text.contains("it is done here alone, waits"), "{text}");
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!((lines(), version(&a, "/")), (1, 1));
}

#[test]
fn without_a_section_there_is_no_thread_and_no_operation() {
    let application = Application::start();
    let to = application.origin.to();
    let alone = Server::start("/", |launch| {
        launch.written(|listen| format!("[[site]]\nlisten = [\"{listen}\"]\nto = \"{to}\"\n"));
    });
    assert!(threads(&alone).iter().all(|name| name != "afpa-fleet"));
    let (is_well, text) = said(&alone, &["fleet"]);
    assert!(!is_well && text.contains("write [fleet] with `servers`"), "{text}");
    let (is_well, text) = said(&alone, &["purge", "--fleet", "/"]);
    assert!(!is_well && text.contains("is in no fleet"), "{text}");
    assert!(!said(&alone, &["call"]).1.contains("fleet"));
    assert!(!metrics(&alone).contains("afpa_fleet"));
}

fn threads(machine: &Server) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", machine.pid())).expect("its threads");
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).ok();
    tasks.flatten().filter_map(name).map(|name| name.trim().to_owned()).collect()
}

#[test]
fn a_reload_joins_and_leaves() {
    let Some(nats) = Nats::start(1) else { return };
    let application = Application::start();
    let a = machine("a", &nats.urls(), &application, ("", ""));
    let b = machine("b", &nats.urls(), &application, ("", ""));
    gather(&[&a, &b], &["a", "b"]);
    assert!(threads(&a).iter().any(|name| name == "afpa-fleet"));
    let left = Process(a.pid()).rights_left(is_root()).expect("threads");
    assert_eq!(left, [""; 0], "by thread");
    let file = b.configuration();
    let whole = std::fs::read_to_string(&file).expect("read");
    let reload = |text: &str, times: usize| {
        std::fs::write(&file, text).expect("written");
        b.signal(Signal::HUP);
        eventually("reloaded", || b.log().matches("reloaded").count() == times);
    };
    reload(&whole.replace("servers = ", "servers = [] #"), 1);
    eventually("b has left", || live(&a) == ["a"]);
    assert!(threads(&b).iter().all(|name| name != "afpa-fleet"));
    reload(&whole, 2);
    gather(&[&a, &b], &["a", "b"]);
    // Another name is another member; the place of the process stays.
    reload(&whole.replace("name = \"b\"", "name = \"z\""), 3);
    gather(&[&a, &b], &["a", "z"]);
}

#[test]
fn purges_of_clients_while_a_reload_exchanges_the_fleet_are_those_of_the_next_one() {
    let Some(nats) = Nats::start(1) else { return };
    let application = Application::start();
    let relay = Relay::to(nats.address(0));
    let open = ("", "[site.cache]\npurge_from = [\"127.0.0.0/8\"]\n");
    let a = machine("a", &nats.urls(), &application, open);
    let b = machine("b", &urls([relay.address]), &application, open);
    gather(&[&a, &b], &["a", "b"]);
    let targets: Vec<String> = (0..500).map(|number| format!("/{number}")).collect();
    assert!(targets.iter().all(|target| version(&a, target) == 1));
    application.change();
    let file = b.configuration();
    let whole = std::fs::read_to_string(&file).expect("read");
    std::fs::write(&file, whole.replace("name = \"b\"", "name = \"z\"")).expect("written");
    // The thread of the fleet says good-bye for half a second, as nothing passes.
    relay.cut();
    b.signal(Signal::HUP);
    let mut purged = 0;
    for target in &targets {
        let head = format!("PURGE {target} HTTP/1.1\r\nHost: test\r\n\r\n");
        assert_eq!(b.connect().exchange(head).status, 200);
        purged += 1;
        if b.log().contains("reloaded") {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(b.log().contains("reloaded"), "{purged} purges took less time");
    relay.mend();
    eventually_within(SOON, "a has dropped all of them", || {
        targets[..purged].iter().all(|target| version(&a, target) == 2)
    });
}

#[test]
fn an_upgrade_changes_the_process_and_not_the_machine() {
    let Some(nats) = Nats::start(1) else { return };
    let application = Application::start();
    let a = machine("a", &nats.urls(), &application, ("", ""));
    let b = machine("b", &nats.urls(), &application, ("", ""));
    gather(&[&a, &b], &["a", "b"]);
    assert_eq!((version(&a, "/"), version(&b, "/")), (1, 1));
    let before = b.pid();
    b.signal(Signal::USR2);
    let is_next = || process(&b).is_some_and(|pid| pid != before);
    eventually_within(SOON, "the next process takes orders", is_next);
    let next = Next(process(&b).expect("it is there"));
    let now = application.change();
    let (is_well, text) = said(&b, &["purge", "--fleet", "--wait", "60", "/"]);
    assert!(is_well && text.contains("a, b"), "{text}");
    assert!(version(&a, "/") >= now && version(&b, "/") >= now);
    eventually_within(SOON, "the process before has left", || live(&a) == ["a", "b"]);
    drop(next);
}

#[test]
fn orders_that_a_process_leaves_after_an_upgrade_are_those_of_the_next() {
    let Some(mut nats) = Nats::start(1) else { return };
    let application = Application::start();
    let open = ("", "[site.cache]\npurge_from = [\"127.0.0.0/8\"]\n");
    let a = machine("a", &nats.urls(), &application, open);
    let mut b = machine("b", &nats.urls(), &application, open);
    gather(&[&a, &b], &["a", "b"]);
    assert_eq!((version(&a, "/b"), version(&b, "/b")), (1, 1));
    nats.kill(0);
    eventually_within(SOON, "it is gone", || look(&b)["connected"] == false);
    // A request that has begun is the old process's, which gets the order when the next one has its queue.
    let mut client = b.connect();
    client.send("PURGE /b HTTP/1.1\r\nHost: test\r\n");
    let before = b.pid();
    b.signal(Signal::USR2);
    let is_next = || process(&b).is_some_and(|pid| pid != before);
    eventually_within(SOON, "the next process takes orders", is_next);
    let next = Next(process(&b).expect("it is there"));
    let now = application.change();
    client.send("\r\n");
    assert_eq!(client.receive().status, 200);
    drop(client);
    assert!(b.wait(SOON).is_some(), "the process before has ended");
    eventually_within(SOON, "the next one has the order", || look(&b)["waiting"] == 1);
    nats.run(0);
    eventually_within(SOON, "a has it", || version(&a, "/b") >= now);
    eventually_within(SOON, "nothing waits", || look(&b)["waiting"] == 0);
    // The queue is written beside itself, under another name, after the order has left it.
    let left = || {
        let left = std::fs::read_dir(b.home().join("fleet")).expect("the folder").flatten();
        left.map(|entry| entry.file_name()).collect::<Vec<_>>()
    };
    eventually_within(SOON, "the folder of the process before is empty", || {
        left().iter().all(|name| name == "queue" || name == "place" || name == "seen")
    });
    drop(next);
}

#[test]
fn two_machines_with_one_name_are_told_once() {
    let Some(nats) = Nats::start(1) else { return };
    let application = Application::start();
    let a = machine("a", &nats.urls(), &application, ("", ""));
    let _other = machine("a", &nats.urls(), &application, ("", ""));
    let said = || said(&a, &["fleet"]).1;
    eventually_within(SOON, "it is shown", || said().contains("two machines are named a"));
    let lines = || a.log().matches("two machines of the fleet are named a").count();
    eventually_within(SOON, "it is in the log", || lines() == 1);
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(lines(), 1, "{}", a.log());
}
