//! How long a purge takes to all machines, what hits cost beside many of them, and how soon a machine that joins has everything.
//! `make test-fleet` has the longer ones.

use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use afpa_testkit::{Asked, Client, Endpoint, Random, Server, eventually_within, figure};
use serde_json::Value;

use crate::bed::{Application, Nats, SOON, gather, live, look, machine, said, version};
use crate::configuration::Desk;

/// Orders that are sent to a control socket in one piece.
const PIPELINED: usize = 32;

fn three(nats: &Nats, application: &Application) -> [Server; 3] {
    let machines = ["a", "b", "c"].map(|name| machine(name, &nats.urls(), application, ("", "")));
    gather(&machines.each_ref(), &["a", "b", "c"]);
    machines
}

/// The environment variable, else a number for every run.
fn wanted(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
}

fn json(client: &mut Client, head: &str) -> Value {
    let text =
        client.exchange(format!("{head} HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n"));
    serde_json::from_str(text.text()).unwrap_or_else(|error| panic!("{error}: {text:?}"))
}

#[test]
fn a_purge_is_acknowledged_by_three_machines_within_milliseconds() {
    let Some(nats) = Nats::start(3) else { return };
    let application = Application::start();
    let machines = three(&nats, &application);
    let mut times = Vec::new();
    for number in 0..wanted("AFPA_FLEET_PURGES", 60) {
        let control = machines[number as usize % machines.len()].control();
        let mut client = Client::connect(&control).expect("connected");
        let begun = Instant::now();
        let sent = json(&mut client, &format!("POST /fleet/purge?path=/{number}"));
        let question = format!("GET /fleet/order?number={}", sent["number"]);
        loop {
            let mut client = Client::connect(&control).expect("connected");
            let look = json(&mut client, &question);
            let done = look["standing"]["done"].as_array().map_or(0, Vec::len);
            if look["fate"]["state"] == "logged" && done == machines.len() {
                break;
            }
            assert!(begun.elapsed() < SOON, "{look}");
            std::thread::sleep(Duration::from_micros(500));
        }
        times.push(begun.elapsed());
        // The next one comes when nothing is on its way any more.
        std::thread::sleep(Duration::from_millis(10));
    }
    times.sort_unstable();
    let at = |share: usize| {
        times[(times.len() * share / 100).min(times.len() - 1)].as_secs_f64() * 1000.0
    };
    let (half, most) = (at(50), at(99));
    figure!(
        "{} purges to three machines: half within {half:.1} ms, 99 of 100 within {most:.1} ms",
        times.len()
    );
}

#[test]
fn hits_are_as_cheap_beside_many_purges() {
    let Some(nats) = Nats::start(3) else { return };
    let application = Application::start();
    let machines = three(&nats, &application);
    let seconds = Duration::from_secs(wanted("AFPA_FLEET_FIGURE_SECONDS", 2));
    let (before, _) = cost_of_hits(&machines[0], seconds);
    let (beside_others, _) = beside_work(|| cost_of_hits(&machines[0], seconds));
    let asked = application.origin.count("/hit");
    let (ends, taken) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let (beside, hits) = std::thread::scope(|scope| {
        // The control socket has a worker, too: that of the first machine takes no orders.
        for (number, machine) in machines.iter().enumerate().skip(1) {
            let (control, ends, taken) = (machine.control(), &ends, &taken);
            scope.spawn(move || purge_on((&control, number), ends, taken));
        }
        let cost = cost_of_hits(&machines[0], seconds);
        ends.store(true, Ordering::SeqCst);
        cost
    });
    let begun = Instant::now();
    let taken = taken.into_inner().expect("no panic");
    let mut done = Vec::new();
    for machine in &machines {
        eventually_within(2 * SOON, "all have all of them", || {
            look(machine)["waiting"] == 0 && live(machine).len() == machines.len()
        });
        done.push(look(machine)["counts"]["purges"].as_u64().expect("a count"));
    }
    let spent = seconds + begun.elapsed();
    let (orders, mut log) = (nats.read("afpa-purges", done[0]), HashSet::new());
    let again = orders.iter().filter(|order| !log.insert(path_of(order))).count();
    let lost = taken.iter().filter(|path| !log.contains(path.as_str())).count();
    assert_eq!(lost, 0, "of {}", taken.len());
    let asked = application.origin.count("/hit") - asked;
    assert_eq!(asked, 0, "a purge of others takes no hit away");
    figure!(
        "{} purges taken: {lost} lost, {again} twice in the log, {done:?} carried out by three machines, beside {hits} hits and {asked} \
         questions to the server; within {:.1} s: {:.0} a second; a hit took {} ns of a worker, {} ns beside other work, {} ns \
         beside purges",
        taken.len(),
        spent.as_secs_f64(),
        taken.len() as f64 / spent.as_secs_f64(),
        before.as_nanos(),
        beside_others.as_nanos(),
        beside.as_nanos()
    );
}

/// Does something while other threads walk through memory on all processors, as the servers of NATS do beside purges: to share
/// processors and their caches costs a hit something, without any purge.
fn beside_work<T>(something: impl FnOnce() -> T) -> T {
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 * std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let (mut memory, mut random) = (vec![0_u64; 1 << 18], Random::new(1));
                while !ends.load(Ordering::Relaxed) {
                    let place = random.below(memory.len());
                    memory[place] = memory[place].wrapping_add(1);
                }
            });
        }
        let done = something();
        ends.store(true, Ordering::SeqCst);
        done
    })
}

/// Purges as fast as the control socket takes orders, and notes the paths of those that are taken.
fn purge_on((control, machine): (&Endpoint, usize), ends: &AtomicBool, taken: &Mutex<Vec<String>>) {
    let mut client = Client::connect(control).expect("connected");
    let mut next = 0_u64;
    while !ends.load(Ordering::Relaxed) {
        // Each for another path: equal ones that wait go once.
        let paths = (next..).take(PIPELINED).map(|number| format!("/other/{machine}/{number}"));
        let paths: Vec<_> = paths.collect();
        next += PIPELINED as u64;
        let order = |path: &String| {
            format!(
                "POST /fleet/purge?path={path} HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n"
            )
        };
        if client.try_send(paths.iter().map(order).collect::<String>()).is_err() {
            client = Client::connect(control).expect("connected");
            continue;
        }
        for path in paths {
            let Ok(answer) = client.try_receive(Asked::Body) else {
                client = Client::connect(control).expect("connected");
                break;
            };
            match answer.status {
                200 => taken.lock().expect("no panic").push(path),
                // As many wait as may.
                _ => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }
}

/// The path of an order as the log has it.
fn path_of(order: &str) -> String {
    let order: Value = serde_json::from_str(order).expect("JSON");
    let text = order.to_string();
    let path = text.split_once("path=").map_or("", |(_, behind)| behind);
    path.split('"').next().unwrap_or_default().replace("%2F", "/").replace("%2f", "/")
}

/// The time of workers for one hit, and how many there were.
fn cost_of_hits(machine: &Server, length: Duration) -> (Duration, u32) {
    version(machine, "/hit");
    let mut client = machine.connect();
    let (before, begun, mut hits) = (time_of_workers(machine), Instant::now(), 0);
    while begun.elapsed() < length {
        if client.try_send("GET /hit HTTP/1.1\r\nHost: test\r\n\r\n").is_ok()
            && client.try_receive(Asked::Body).is_ok_and(|answer| answer.status == 200)
        {
            hits += 1;
        } else {
            client = machine.connect();
        }
    }
    ((time_of_workers(machine) - before) / hits, hits)
}

/// The processor time of all workers (proc(5), `schedstat`).
fn time_of_workers(machine: &Server) -> Duration {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", machine.pid())).expect("its threads");
    let time = |task: std::fs::DirEntry| {
        let read = |name: &str| std::fs::read_to_string(task.path().join(name)).ok();
        let name = read("comm")?;
        let number = name.trim().strip_prefix("afpa-")?;
        number.parse::<u32>().ok()?;
        read("schedstat")?.split(' ').next()?.parse().ok().map(Duration::from_nanos)
    };
    tasks.flatten().filter_map(time).sum()
}

#[test]
fn a_machine_that_joins_has_everything_within_seconds() {
    let Some(nats) = Nats::start(3) else { return };
    let (application, desk) = (Application::start(), Desk::new());
    let urls = nats.urls();
    let join = |name: &str| desk.machine(name, &urls, &application, "");
    let [a, b] = ["a", "b"].map(join);
    gather(&[&a.server, &b.server], &["a", "b"]);
    let orders = wanted("AFPA_FLEET_ORDERS", 300);
    let mut client = Client::connect(&a.server.control()).expect("connected");
    for number in 0..orders {
        let prefix = format!("10.{}.{}.0/24", number / 250, number % 250);
        for what in [format!("purge?tag={number}"), format!("deny/add?prefix={prefix}")] {
            let head =
                format!("POST /fleet/{what} HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n");
            if client.try_send(&head).is_err() || client.try_receive(Asked::Body).is_err() {
                client = Client::connect(&a.server.control()).expect("connected");
                assert_eq!(client.exchange(&head).status, 200);
            }
        }
    }
    eventually_within(SOON, "nothing waits", || look(&a.server)["waiting"] == 0);
    // Servers that are still busy with the orders may leave a question unanswered: then nothing has changed.
    eventually_within(SOON, "the site is pushed", || {
        let (is_well, text) = a.push(&desk.site("one"), &[]);
        assert!(is_well || text.contains("nothing has changed"), "{text}");
        is_well
    });

    let begun = Instant::now();
    let d = join("d");
    let mut times = BTreeMap::new();
    while times.len() < 4 {
        let look = look(&d.server);
        let own =
            look["members"].as_array().and_then(|all| all.iter().find(|one| one["is_own"] == true));
        let has = |what: &str| match what {
            "orders to purge" => {
                own.is_some_and(|own| own["purges"]["sequence"].as_u64() >= Some(orders))
            }
            "bans" => look["counts"]["bans"].as_u64() >= Some(orders),
            "the configuration" => look["configuration"]["runs"] == 1,
            _ => look["keys"].as_u64().is_some(),
        };
        for what in ["orders to purge", "bans", "the configuration", "keys"] {
            if has(what) {
                times.entry(what).or_insert_with(|| begun.elapsed());
            }
        }
        assert!(begun.elapsed() < SOON, "{times:?}: {look}");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(d.word().as_deref(), Some("one"));
    assert!(said(&d.server, &["deny", "list"]).1.contains("10.0.7.0/24"));
    let times =
        times.iter().map(|(what, time)| format!("{what} after {:.1} s", time.as_secs_f64()));
    figure!(
        "of {orders} orders each, a machine that joins has {}",
        times.collect::<Vec<_>>().join(", ")
    );
}
