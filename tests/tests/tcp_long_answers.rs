//! Answers of several segments through networks that lose, delay, reorder and repeat: every byte is nginx's
//! own, and none hangs.
//!
//! `AFPA_TRANSFER_REQUESTS` sets the number of responses of each network (default 400), `AFPA_TRANSFER_SEED`
//! repeats a run.

use std::time::{Duration, UNIX_EPOCH};

use afpa_bpf::{LONGEST_ANSWER, Reason, Settings};
use afpa_netlab::Path;
use afpa_netlab::inject::Rules;
use afpa_testkit::eventually;
use afpa_tests::tcp::networks::{Network, near};
use afpa_tests::tcp::transfer::{self, Load, Menu};
use afpa_tests::tcp::{Lab, Plan};

const REQUESTS: u64 = 400;
const CONNECTIONS: usize = 60;

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
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
    for Network { name, share, rules, .. } in near(seed) {
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
    eventually("the end of every transfer", || {
        lab.fast_path().flows.transfers().expect("counted") == 0
    });
}
