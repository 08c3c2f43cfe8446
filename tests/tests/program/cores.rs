//! Which worker has a connection: the one of the core that receives its packets, unless it would get more than its share.
//! By loopback packets are received on the core that sends them.

use afpa_testkit::{Client, Launch, Server, Tree, eventually, skip};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;

use crate::upgrade::Next;

/// The cores on which this process may run, if there are several, and the kernel prefers sockets by core (from 6.2 on).
fn cores() -> Result<Vec<usize>, String> {
    let allowed = sched_getaffinity(None).map_err(|error| error.to_string())?;
    let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core)).collect();
    if cores.len() < 2 {
        return Err("there is one core".into());
    }
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version < (6, 2) { Err(format!("Linux {release} only hashes")) } else { Ok(cores) }
}

macro_rules! cores {
    () => {
        match cores() {
            Ok(cores) => cores,
            Err(why) => skip!("{why}"),
        }
    };
}

fn serve(configure: impl FnOnce(&mut Launch)) -> (Tree, Server) {
    let tree = Tree::new();
    tree.file("hello.txt", "hello");
    let server = Server::start(tree.path(), configure);
    (tree, server)
}

/// So many connections of a client that runs on `core`, each with one answer.
fn connect_from(server: &Server, core: usize, count: usize) -> Vec<Client> {
    std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut own = CpuSet::new();
            own.set(core);
            sched_setaffinity(None, &own).expect("on one core");
            (0..count)
                .map(|_| {
                    let mut client = server.connect();
                    assert_eq!(client.get("/hello.txt").text(), "hello");
                    client
                })
                .collect()
        });
        client.join().expect("no panic")
    })
}

fn accepted(server: &Server) -> Vec<u64> {
    let stats = Client::connect(&server.control()).expect("the control socket").get("/stats");
    let stats: Value = serde_json::from_slice(&stats.body).expect("JSON");
    let workers = stats["workers"].as_array().expect("workers").clone();
    workers.iter().map(|worker| worker["accepted"].as_u64().expect("a count")).collect()
}

/// How many of these connections each worker has accepted.
fn shares(server: &Server, connect: impl FnOnce() -> Vec<Client>) -> Vec<u64> {
    // The connections that looked whether it serves are accepted before these.
    cores().into_iter().flatten().for_each(|core| drop(connect_from(server, core, 1)));
    let before = accepted(server);
    let held = connect();
    let after = accepted(server);
    drop(held);
    after.iter().zip(before).map(|(after, before)| after - before).collect()
}

const EACH: usize = 8;

/// So many connections come from each core, in turns.
fn from_all_cores(server: &Server, cores: &[usize]) -> Vec<u64> {
    let one = |&core: &usize| connect_from(server, core, 1);
    shares(server, || (0..EACH).flat_map(|_| cores).flat_map(one).collect())
}

#[test]
fn connections_stay_on_the_core_that_receives_their_packets() {
    let cores = cores!();
    let (_tree, server) = serve(|_| ());
    assert_eq!(from_all_cores(&server, &cores), vec![EACH as u64; cores.len()]);
}

#[test]
fn they_do_so_after_an_upgrade() {
    let cores = cores!();
    let (_tree, server) = serve(|_| ());
    let _next = Next::of(&server, None);
    assert_eq!(from_all_cores(&server, &cores), vec![EACH as u64; cores.len()]);
}

/// As with a network card that has one queue.
#[test]
fn connections_that_all_arrive_on_one_core_are_spread_over_the_workers() {
    let cores = cores!();
    let (_tree, server) = serve(|_| ());
    let connections = 40 * cores.len();
    let each = shares(&server, || connect_from(&server, cores[0], connections));
    assert_eq!(each.iter().sum::<u64>(), connections as u64);
    let most = each.iter().max().expect("workers");
    assert!(*most <= 40 + 7 + 2, "the mean, its root, and two: {each:?}");
}

/// None is lost, and none is refused, when the workers stop while they pass connections on.
#[test]
fn a_server_that_ends_has_answered_what_its_workers_passed_on() {
    let cores = cores!();
    let (_tree, mut server) = serve(|_| ());
    let held = connect_from(&server, cores[0], 40);
    server.signal(rustix::process::Signal::TERM);
    for mut client in held {
        client.assert_closed();
    }
    eventually("it has ended", || !server.is_running());
}

#[test]
fn more_workers_than_cores_have_no_core_of_their_own() {
    let cores = cores!();
    let workers = cores.len() + 1;
    let (_tree, server) = serve(|launch| _ = launch.arg("--workers").arg(workers.to_string()));
    let each = shares(&server, || connect_from(&server, cores[0], 64));
    assert_eq!(each.iter().sum::<u64>(), 64);
    assert!(each.iter().all(|count| *count > 0), "by hashes: {each:?}");
}
