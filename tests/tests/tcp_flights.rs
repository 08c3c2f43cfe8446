//! Answers of several segments through networks that lose, delay, reorder and repeat: every byte is nginx's
//! own, and none hangs.
//!
//! `AFPA_TRANSFER_REQUESTS` sets the number of responses of each network (default 400), `AFPA_TRANSFER_SEED`
//! repeats a run.

use std::time::{Duration, UNIX_EPOCH};

use afpa_bpf::{LONGEST_ANSWER, Reason, Settings};
use afpa_netlab::Path;
use afpa_netlab::inject::{Burst, DropRule, Impairment, Rules};
use afpa_tests::tcp::transfer::{self, Load, Menu};
use afpa_tests::tcp::{Lab, Plan, await_that};

const REQUESTS: u64 = 400;
const CONNECTIONS: usize = 60;

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

/// A network, and the share of the responses that it can do in the time.
struct Network {
    name: &'static str,
    share: u64,
    rules: Rules,
}

fn networks(seed: u64) -> Vec<Network> {
    let plain = Impairment::default;
    let late = Duration::from_millis;
    let both =
        |name, share, impairment| Network { name, share, rules: Rules::both(impairment, seed) };
    let lossy = Impairment { loss: 0.2, ..plain() };
    let mixed = Impairment {
        loss: 0.05,
        duplicate: 0.05,
        reorder: 0.05,
        hold: late(3),
        jitter: late(1),
        delay: late(5),
        ..plain()
    };
    vec![
        both("perfect", 2, plain()),
        both("1 % lost", 2, Impairment { loss: 0.01, ..plain() }),
        both("5 % lost", 1, Impairment { loss: 0.05, ..plain() }),
        // With acknowledgements lost, too, some take minutes, whoever sends them.
        Network {
            name: "20 % lost to the client",
            share: 1,
            rules: Rules { to_server: plain(), to_client: lossy, seed },
        },
        both(
            "reordered",
            1,
            Impairment { reorder: 0.05, hold: late(3), jitter: late(1), ..plain() },
        ),
        both("repeated", 1, Impairment { duplicate: 0.1, ..plain() }),
        both("bursts", 1, Impairment { burst: Some(Burst { start: 0.01, length: 4 }), ..plain() }),
        both("tails", 1, Impairment { drop_rules: vec![DropRule::tails().every(5)], ..plain() }),
        both("far away", 1, Impairment { delay: late(50), loss: 0.01, ..plain() }),
        both("all of it", 1, mixed),
    ]
}

/// nginx with all files, and the fast path before it, which pins nothing yet. None: SKIP was said.
fn lab(seed: u64) -> Option<(Lab, Menu)> {
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
    let mut lab = Lab::without_fast_path(plan, &borrowed)?;
    let menu = Menu::record_up_to(LONGEST_ANSWER, lab.client(), &files);
    lab.start_fast_path().then_some((lab, menu))
}

#[test]
fn every_long_answer_is_nginx_own_through_bad_networks() {
    let since_epoch = UNIX_EPOCH.elapsed().expect("a clock").as_nanos() as u64;
    let seed = setting("AFPA_TRANSFER_SEED").unwrap_or(since_epoch);
    let requests = setting("AFPA_TRANSFER_REQUESTS").unwrap_or(REQUESTS);
    println!("AFPA_TRANSFER_SEED={seed} AFPA_TRANSFER_REQUESTS={requests}");
    let Some((lab, menu)) = lab(seed) else { return };
    menu.pin(lab.fast_path());
    for Network { name, share, rules } in networks(seed) {
        let begin = std::time::Instant::now();
        let before = lab.counters();
        lab.bed.injector().expect("an injector").set_rules(&rules);
        let load = Load {
            requests: requests * share,
            connections: CONNECTIONS,
            seed,
            deadline: Duration::from_secs(120),
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

/// Not a test: the same requests through the same networks, answered by nginx and by the kernel.
#[test]
#[ignore = "figures"]
fn completion_times() {
    let requests = setting("AFPA_TRANSFER_REQUESTS").unwrap_or(REQUESTS);
    println!("| network | nginx median | p99 | kernel median | p99 | ratio median | p99 |");
    let Some((lab, menu)) = lab(1) else { return };
    let measure = |network: &Network| {
        lab.bed.injector().expect("an injector").set_rules(&network.rules);
        std::thread::sleep(Duration::from_millis(60));
        let deadline = Duration::from_secs(300);
        let load = Load { requests: requests * network.share, connections: 10, seed: 1, deadline };
        let mut times = transfer::run(&lab, &menu, load).times;
        times.sort();
        let at =
            |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
        [at(0.5), at(0.99)]
    };
    let networks = networks(1);
    let nginx: Vec<_> = networks.iter().map(measure).collect();
    menu.pin(lab.fast_path());
    for (network, nginx) in networks.iter().zip(nginx) {
        let kernel = measure(network);
        let ratio = [0, 1].map(|at| kernel[at] / nginx[at]);
        println!(
            "| {} | {:.1} ms | {:.1} | {:.1} | {:.1} | {:.2} | {:.2} |",
            network.name, nginx[0], nginx[1], kernel[0], kernel[1], ratio[0], ratio[1]
        );
    }
}
