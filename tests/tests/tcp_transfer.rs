//! 200,000 requests through a network that loses, delays, reorders and repeats: zero differences.
//!
//! `AFPA_TRANSFER_REQUESTS` sets their number (default 20,000), `AFPA_TRANSFER_SEED` repeats a run.

use std::time::{Duration, UNIX_EPOCH};

use afpa_bpf::{Reason, Settings};
use afpa_netlab::Path;
use afpa_netlab::inject::{Impairment, Rules};
use afpa_tests::tcp::transfer::{self, Load, Menu};
use afpa_tests::tcp::{Lab, Plan};

const REQUESTS: u64 = 20_000;
const CONNECTIONS: usize = 300;

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
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
    let since_epoch = UNIX_EPOCH.elapsed().expect("a clock").as_nanos() as u64;
    let seed = setting("AFPA_TRANSFER_SEED").unwrap_or(since_epoch);
    let requests = setting("AFPA_TRANSFER_REQUESTS").unwrap_or(REQUESTS);
    println!("AFPA_TRANSFER_SEED={seed} AFPA_TRANSFER_REQUESTS={requests}");
    let plan = Plan {
        path: Path::Through(Box::default()),
        settings: Settings { log_every: 0, ..Settings::default() },
        ..Plan::default()
    };
    let files = transfer::files(seed);
    let borrowed: Vec<_> = files.iter().map(|(name, body)| (name.as_str(), &body[..])).collect();
    let Some(mut lab) = Lab::without_fast_path(plan, &borrowed) else { return };
    let menu = Menu::record(lab.client(), &files);
    if !lab.start_fast_path() {
        return;
    }
    menu.pin(lab.fast_path());
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
