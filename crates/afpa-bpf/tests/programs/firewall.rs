//! The firewall speaks (P5): a client that the kernel's own path does not let through is not answered, though its
//! connections are open and its requests reach the programs.

use std::process::Stdio;
use std::time::Duration;

use afpa_bpf::{FIREWALL_INTERVAL, Reason, Settings};
use afpa_testkit::tcp::RawClient;

use crate::support::{Lent, World, counted};

/// Answers end within this time after a ban.
const BOUND: Duration = Duration::from_secs(2);
const SOON: Duration = Duration::from_millis(150);
const CONNECTIONS: usize = 4;

/// A way to keep a client out: commands that begin it, and that end it. `CLIENT` stands for its address.
struct Ban {
    begin: &'static [&'static str],
    end: &'static [&'static str],
}

fn run(world: &World, commands: &[&str], client: &str) -> bool {
    commands.iter().all(|command| {
        let command = command.replace("CLIENT", client);
        let mut shell = world.server().command("sh");
        let status = shell.args(["-c", &command]).stdout(Stdio::null()).stderr(Stdio::null());
        status.status().is_ok_and(|status| status.success())
    })
}

fn bed(interval: Duration) -> Option<(World, Lent)> {
    let (world, fast_path) = World::with_one_pinned(Settings::default())?;
    fast_path.clients.set_firewall_interval(interval);
    Some((world, fast_path))
}

fn asks(client: &mut RawClient) -> bool {
    let request = client.get("/kernel.html");
    client.send(&request);
    let answers = client.collect(SOON);
    answers.iter().any(|answer| !answer.payload.is_empty())
}

/// Several connections on which the kernel has answered; then the ban; then no client gets a byte; then its end,
/// and all of them are whole.
fn ends_answers(ban: &Ban) {
    let Some((world, fast_path)) = bed(FIREWALL_INTERVAL) else { return };
    let mut clients: Vec<RawClient> = (0..CONNECTIONS).map(|_| world.connected()).collect();
    let address = clients[0].address().ip().to_string();
    for client in &mut clients {
        fast_path.clock.beat();
        let reply = client.ask(&client.get("/kernel.html"));
        assert!(reply.is_from_kernel(), "a fresh connection is answered at once: {reply:?}");
        client.acknowledge();
    }
    if !run(&world, ban.begin, &address) {
        return println!("SKIP: not to be had here: {:?}", ban.begin);
    }
    std::thread::sleep(BOUND);
    fast_path.clock.beat();
    let before = counted(&fast_path, Reason::PassUnconfirmed);
    for client in &mut clients {
        assert!(!asks(client), "a client that is banned was answered");
    }
    assert_eq!(counted(&fast_path, Reason::PassUnconfirmed), before + CONNECTIONS as u64);
    assert!(run(&world, ban.end, &address), "{:?}", ban.end);
    for client in &mut clients {
        fast_path.clock.beat();
        // It was not answered, so it asks again; the server has the file, too.
        let again = client.get("/kernel.html");
        let reply = client.ask(&again);
        assert!(reply.text().ends_with("the pinned one, from nginx"), "{reply:?}");
        client.acknowledge();
        let reply = client.ask(&client.get("/kernel.html"));
        assert!(reply.is_from_kernel(), "its response has confirmed the client: {reply:?}");
        client.acknowledge();
    }
}

#[test]
fn a_packet_filter_for_what_comes_in() {
    ends_answers(&Ban {
        begin: &["iptables -I INPUT -s CLIENT -j DROP"],
        end: &["iptables -D INPUT -s CLIENT -j DROP"],
    });
}

#[test]
fn a_packet_filter_for_what_goes_out() {
    ends_answers(&Ban {
        begin: &[
            "nft add table ip banned",
            "nft add chain ip banned out '{ type filter hook output priority 0; }'",
            "nft add rule ip banned out ip daddr CLIENT drop",
        ],
        end: &["nft delete table ip banned"],
    });
}

#[test]
fn a_null_route() {
    ends_answers(&Ban {
        begin: &["ip route add blackhole CLIENT"],
        end: &["ip route del blackhole CLIENT"],
    });
}

#[test]
fn a_prohibiting_rule() {
    ends_answers(&Ban {
        begin: &["ip rule add to CLIENT prohibit"],
        end: &["ip rule del to CLIENT prohibit"],
    });
}

/// A client that asks seldom passes once, and then is answered.
#[test]
fn a_client_that_comes_back_is_confirmed_by_one_request() {
    let Some((world, fast_path)) = bed(FIREWALL_INTERVAL) else { return };
    let mut clients = [world.connected(), world.connected()];
    fast_path.clock.beat();
    for client in &mut clients {
        assert!(client.ask(&client.get("/kernel.html")).is_from_kernel());
        client.acknowledge();
    }
    std::thread::sleep(Duration::from_millis(1500));
    fast_path.clock.beat();
    let [first, second] = &mut clients;
    let reply = first.ask(&first.get("/kernel.html"));
    assert!(!reply.is_from_kernel() && reply.text().ends_with("from nginx"), "{reply:?}");
    first.acknowledge();
    for client in [first, second] {
        assert!(client.ask(&client.get("/kernel.html")).is_from_kernel());
        client.acknowledge();
    }
    assert_eq!(counted(&fast_path, Reason::PassUnconfirmed), 1);
}

/// A client that never stops asking is confirmed by one request at a time: the others are answered meanwhile.
#[test]
fn a_busy_client_passes_about_once_a_second() {
    let Some((world, fast_path)) = bed(FIREWALL_INTERVAL) else { return };
    let mut client = world.connected();
    let begun = std::time::Instant::now();
    let (mut asked, mut from_kernel) = (0, 0);
    while begun.elapsed() < Duration::from_millis(3500) {
        fast_path.clock.beat();
        let reply = client.ask(&client.get("/kernel.html"));
        asked += 1;
        from_kernel += usize::from(reply.is_from_kernel());
        client.acknowledge();
    }
    let passed = counted(&fast_path, Reason::PassUnconfirmed);
    let seconds = begun.elapsed().as_secs_f64();
    assert_eq!(asked - from_kernel, passed as usize);
    assert!(passed >= 2 && passed as f64 <= seconds / 0.7 + 1.0, "{passed} in {seconds} s");
}

/// With an interval of zero the firewall is not asked.
#[test]
fn the_firewall_is_not_asked_where_that_is_configured() {
    let Some((world, fast_path)) = bed(Duration::ZERO) else { return };
    let mut client = world.connected();
    std::thread::sleep(Duration::from_millis(1500));
    for _ in 0..2 {
        fast_path.clock.beat();
        assert!(client.ask(&client.get("/kernel.html")).is_from_kernel());
        client.acknowledge();
        std::thread::sleep(Duration::from_millis(1200));
    }
    assert_eq!(counted(&fast_path, Reason::PassUnconfirmed), 0);
}

/// Paused answers are user mode's; connections with a sequence offset stay whole.
#[test]
fn nothing_is_answered_while_answers_are_paused() {
    let Some((world, fast_path)) = bed(FIREWALL_INTERVAL) else { return };
    let mut client = world.connected();
    for paused in [false, true, false] {
        fast_path.clients.set_paused(paused);
        fast_path.clock.beat();
        assert_eq!(fast_path.clients.is_paused(), paused);
        let reply = client.ask(&client.get("/kernel.html"));
        assert_eq!(reply.is_from_kernel(), !paused, "{reply:?}");
        client.acknowledge();
    }
    assert_eq!(counted(&fast_path, Reason::PassPaused), 1);
}
