//! Hits, passes, uploads and downloads, mixed on connections with an offset, through networks that lose, delay, reorder
//! and repeat: zero differences.
//!
//! `AFPA_TRANSFER_REQUESTS` sets their number (default 20,000; each of several networks gets its share),
//! `AFPA_TRANSFER_SEED` repeats a run, `AFPA_NETWORK` chooses among the several networks by a part of their names.

use std::time::{Duration, Instant, UNIX_EPOCH};

use afpa_bpf::{Reason, Settings};
use afpa_netlab::Path;
use afpa_netlab::inject::{Impairment, Rules};
use afpa_tests::tcp::networks::near;
use afpa_tests::tcp::transfer::{self, Load, Menu};
use afpa_tests::tcp::{Lab, Plan};

const REQUESTS: u64 = 20_000;
const CONNECTIONS: usize = 300;
/// nginx's TCP waits two minutes at most between two attempts; bursts may take several of them.
const DEADLINE: Duration = Duration::from_secs(500);

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

/// The seed, which is printed: that of `AFPA_TRANSFER_SEED`, or a new one.
fn seed() -> u64 {
    let since_epoch = UNIX_EPOCH.elapsed().expect("a clock").as_nanos() as u64;
    let seed = setting("AFPA_TRANSFER_SEED").unwrap_or(since_epoch);
    println!("AFPA_TRANSFER_SEED={seed}");
    seed
}

/// nginx and the fast path before it, with something to be asked for. None: SKIP was said.
fn lab(seed: u64) -> Option<(Lab, Menu)> {
    let plan = Plan {
        path: Path::Through(Box::default()),
        settings: Settings { log_every: 0, ..Settings::default() },
        ..Plan::default()
    };
    let files = transfer::files(seed);
    let borrowed: Vec<_> = files.iter().map(|(name, body)| (name.as_str(), &body[..])).collect();
    let mut lab = Lab::without_fast_path(plan, &borrowed)?;
    let menu = Menu::record(lab.client(), &files);
    if !lab.start_fast_path() {
        return None;
    }
    menu.pin(lab.fast_path());
    Some((lab, menu))
}

fn bad_network(seed: u64) -> Rules {
    let impairment = Impairment {
        loss: 0.05,
        duplicate: 0.05,
        reorder: 0.05,
        hold: Duration::from_millis(3),
        jitter: Duration::from_millis(1),
        ..Impairment::default()
    };
    Rules::both(impairment, seed)
}

#[test]
fn every_response_is_nginx_own_through_a_bad_network() {
    let seed = seed();
    let requests = setting("AFPA_TRANSFER_REQUESTS").unwrap_or(REQUESTS);
    let Some((lab, menu)) = lab(seed) else { return };
    lab.bed.injector().expect("an injector").set_rules(&bad_network(seed));

    let deadline = Duration::from_secs(60);
    let done =
        transfer::run(&lab, &menu, Load { requests, connections: CONNECTIONS, seed, deadline });

    println!("{done:#?}\n{}", lab.tally());
    let (up, down) = lab.bed.injector().expect("an injector").counts();
    println!("to the server: {up:?}\nto the client: {down:?}");
    assert!(done.responses >= requests);
    // The test means something only if all of this happened.
    assert_eq!((up.oversize, down.oversize), (0, 0), "offloads are off");
    for counts in [up, down] {
        let share = |count: u64| count as f64 / counts.received as f64;
        for count in [counts.lost, counts.held, counts.duplicated] {
            assert!((0.04..0.06).contains(&share(count)), "{counts:?}");
        }
    }
    let counters = lab.counters();
    assert!(counters.answered() > requests / 5, "the kernel had its part");
    for reason in [Reason::AnsweredRetransmission, Reason::ResponseEnd, Reason::PassUserFinal] {
        assert!(counters[reason] > 0, "{}", reason.text());
    }
    assert_eq!(counters[Reason::TranslateFailed] + counters[Reason::ResetLostVersion], 0);
}

/// A few of each, or as many as are asked for; slow networks take that many connections at a time.
#[test]
fn every_response_is_nginx_own_through_each_bad_network() {
    const FEW: u64 = 60;
    let seed = seed();
    let Some((lab, menu)) = lab(seed) else { return };
    let chosen = std::env::var("AFPA_NETWORK").unwrap_or_default();
    let asked = setting("AFPA_TRANSFER_REQUESTS");
    let all = near(seed);
    let is_wanted = |name: &str| {
        // A burst that takes four attempts of one connection in a row takes minutes: not in every run.
        name.contains(&chosen) && (asked.is_some() || name != "bursts")
    };
    let networks: Vec<_> = all.iter().filter(|network| is_wanted(network.name)).collect();
    assert!(!networks.is_empty(), "no network has \"{chosen}\" in its name");
    let share = asked.map_or(FEW, |all| all / networks.len() as u64);
    for network in networks {
        lab.impair(network.rules.to_server.clone(), network.rules.to_client.clone());
        let connections = network.connections.min((share / 10).max(1) as usize);
        let load = Load { requests: share, connections, seed, deadline: DEADLINE };
        let (before, begun) = (lab.counters().answered(), Instant::now());
        let done = transfer::run(&lab, &menu, load);
        let answered = lab.counters().answered() - before;
        println!(
            "{}: {} responses on {} connections, {answered} of the kernel, {:.0} s",
            network.name,
            done.responses,
            done.connections,
            begun.elapsed().as_secs_f64()
        );
        assert!(done.responses >= share && answered > 0, "{}: {done:?}", network.name);
    }
    let counters = lab.counters();
    assert_eq!(counters[Reason::TranslateFailed] + counters[Reason::ResetLostVersion], 0);
}
