//! Answers of several segments through networks that lose, delay, reorder and repeat: every byte is nginx's
//! own, and none hangs.
//!
//! `AFPA_TRANSFER_REQUESTS` sets the number of responses of each network (default 600), `AFPA_TRANSFER_SEED`
//! repeats a run.

use std::time::{Duration, UNIX_EPOCH};

use afpa_bpf::{LONGEST_ANSWER, Reason, Settings};
use afpa_netlab::Path;
use afpa_netlab::inject::{Burst, DropRule, Impairment, Rules};
use afpa_tests::tcp::transfer::{self, Load, Menu};
use afpa_tests::tcp::{Lab, Plan, await_that};

const REQUESTS: u64 = 600;
const CONNECTIONS: usize = 60;

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

/// Networks, each with the share of the responses that it can do in the time.
fn networks() -> Vec<(&'static str, u64, Impairment)> {
    let plain = Impairment::default;
    let late = Duration::from_millis;
    vec![
        ("perfect", 2, plain()),
        ("1 % lost", 2, Impairment { loss: 0.01, ..plain() }),
        ("5 % lost", 1, Impairment { loss: 0.05, ..plain() }),
        ("20 % lost", 1, Impairment { loss: 0.2, ..plain() }),
        ("reordered", 1, Impairment { reorder: 0.05, hold: late(3), jitter: late(1), ..plain() }),
        ("repeated", 1, Impairment { duplicate: 0.1, ..plain() }),
        ("bursts", 1, Impairment { burst: Some(Burst { start: 0.01, length: 4 }), ..plain() }),
        ("tails", 1, Impairment { drop_rules: vec![DropRule::tails().every(5)], ..plain() }),
        ("far away", 1, Impairment { delay: late(50), loss: 0.01, ..plain() }),
        (
            "all of it",
            1,
            Impairment {
                loss: 0.05,
                duplicate: 0.05,
                reorder: 0.05,
                hold: late(3),
                jitter: late(1),
                delay: late(5),
                ..plain()
            },
        ),
    ]
}

#[test]
fn every_long_answer_is_nginx_own_through_bad_networks() {
    let since_epoch = UNIX_EPOCH.elapsed().expect("a clock").as_nanos() as u64;
    let seed = setting("AFPA_TRANSFER_SEED").unwrap_or(since_epoch);
    let requests = setting("AFPA_TRANSFER_REQUESTS").unwrap_or(REQUESTS);
    println!("AFPA_TRANSFER_SEED={seed} AFPA_TRANSFER_REQUESTS={requests}");
    let plan = Plan {
        path: Path::Through(Box::default()),
        settings: Settings {
            log_every: 0,
            answer_max: LONGEST_ANSWER as u32,
            ..Settings::default()
        },
        ..Plan::default()
    };
    let mut files = transfer::files(seed);
    files.extend(transfer::long_files(seed ^ 1));
    let borrowed: Vec<_> = files.iter().map(|(name, body)| (name.as_str(), &body[..])).collect();
    let Some(mut lab) = Lab::without_fast_path(plan, &borrowed) else { return };
    let menu = Menu::record_up_to(LONGEST_ANSWER, lab.client(), &files);
    if !lab.start_fast_path() {
        return;
    }
    menu.pin(lab.fast_path());
    for (name, share, impairment) in networks() {
        let begin = std::time::Instant::now();
        let before = lab.counters();
        let rules = Rules::both(impairment, seed);
        lab.bed.injector().expect("an injector").set_rules(&rules);
        let load = Load {
            requests: requests * share,
            connections: CONNECTIONS,
            seed,
            deadline: Duration::from_secs(60),
        };
        let done = transfer::run(&lab, &menu, load);
        let counted = lab.counters().since(&before);
        println!(
            "{name}: {} responses, {} answered by the kernel, {:?}",
            done.responses,
            counted.answered(),
            begin.elapsed()
        );
        assert!(done.responses >= load.requests, "{name}");
        assert!(counted.answered() > load.requests / 5, "{name}: the kernel had its part");
        assert_eq!(counted[Reason::TranslateFailed] + counted[Reason::ResetLostVersion], 0);
    }
    println!("{}", lab.tally());
    lab.bed.injector().expect("an injector").set_rules(&Rules::default());
    await_that("the end of every flight", || lab.fast_path().flights().expect("counted") == 0);
}
