//! Answers of 64 B to 64 KB through bad networks, from the kernel and from nginx: are they right, how long
//! do they take, how much is sent more than once.
//!
//! ```text
//! AFPA_RESPONSES=200000 cargo test -p afpa-tests --test tcp_networks -- --nocapture
//! ```
//!
//! `AFPA_RESPONSES` is the number of responses of all networks together; without it a few go through two
//! networks, to see that all this works. `AFPA_NETWORK` chooses networks by parts of their names,
//! `AFPA_ROUNDS` takes turns so many times, `AFPA_ALONE=1` leaves nginx out, `AFPA_TIMES` names a file for
//! the time of every response. Figures want a release build
//! and an idle machine; bytes and rights do not.

use std::io::Write;
use std::time::Duration;

use afpa_bpf::{LONGEST_ANSWER, Settings};
use afpa_netlab::Path;
use afpa_tests::tcp::completion::{Completions, Plan, run};
use afpa_tests::tcp::networks::{Network, far, near};
use afpa_tests::tcp::transfer::{self, Exchange, Menu};
use afpa_tests::tcp::{self, Lab};

/// As many as a test has the time for.
const FEW: u64 = 400;
const SEED: u64 = 0x5eed;
/// Two backed-off time-outs behind the minute after which the engine gives up.
const DEADLINE: Duration = Duration::from_secs(150);

fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

fn number(name: &str) -> Option<u64> {
    setting(name).map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

/// nginx behind a network, and the fast path before it if it is wanted. None: SKIP was said.
fn lab(files: &[(String, Vec<u8>)], with_fast_path: bool) -> Option<(Lab, Menu)> {
    let answer_max = LONGEST_ANSWER as u32;
    let plan = tcp::Plan {
        path: Path::Through(Box::default()),
        settings: Settings { log_every: 0, answer_max, ..Settings::default() },
        ..tcp::Plan::default()
    };
    let borrowed: Vec<_> = files.iter().map(|(name, body)| (name.as_str(), &body[..])).collect();
    let mut lab = Lab::without_fast_path(plan, &borrowed)?;
    let menu = Menu::record_up_to(LONGEST_ANSWER, lab.client(), files);
    if with_fast_path {
        if !lab.start_fast_path() {
            return None;
        }
        menu.pin(lab.fast_path());
    }
    Some((lab, menu))
}

/// 64 B to 64 KB.
fn files() -> Vec<(String, Vec<u8>)> {
    let small =
        transfer::files(SEED).into_iter().filter(|(_, body)| (64..2_000).contains(&body.len()));
    small.chain(transfer::long_files(SEED ^ 1)).collect()
}

fn whole(menu: &Menu) -> Vec<&Exchange> {
    let is_whole = |exchange: &&Exchange| {
        exchange.request.starts_with(b"GET") && exchange.expected.starts_with(b"HTTP/1.1 200")
    };
    menu.pinned.iter().filter(is_whole).collect()
}

struct Contest {
    nginx: Option<(Lab, Menu)>,
    kernel: (Lab, Menu),
    rounds: u64,
}

impl Contest {
    /// Both through one network, in turns: nginx's outcome, the kernel's.
    fn hold(&self, network: &Network, responses: u64) -> (Completions, Completions) {
        let (mut nginx, mut kernel) = (Completions::default(), Completions::default());
        for round in 0..self.rounds {
            let turn = |(lab, menu): &(Lab, Menu)| {
                lab.impair(network.rules.to_server.clone(), network.rules.to_client.clone());
                let plan = Plan {
                    menu: &whole(menu),
                    responses: (responses / self.rounds).max(1),
                    connections: network.connections.min((responses / 10).max(1) as usize),
                    seed: SEED ^ round << 32,
                    deadline: DEADLINE,
                };
                run(lab, plan)
            };
            if let Some(alone) = &self.nginx {
                nginx = nginx.and(turn(alone));
            }
            kernel = kernel.and(turn(&self.kernel));
        }
        (nginx, kernel)
    }
}

/// Appends every time, a line each, to the file that `AFPA_TIMES` names, for more detail than the table has.
fn keep(network: &str, who: &str, outcome: &Completions) {
    let Some(path) = setting("AFPA_TIMES") else { return };
    let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
    let mut file = std::io::BufWriter::new(file.expect("a file"));
    for (time, length) in &outcome.times {
        writeln!(file, "{network}\t{who}\t{length}\t{}", time.as_micros()).expect("written");
    }
}

/// A line of the table.
fn line(name: &str, nginx: &Completions, kernel: &Completions) -> String {
    let ratio =
        |one: f64, other: f64| if other > 0.0 { format!("{:.2}", one / other) } else { "-".into() };
    let at = |share| {
        let (one, other) = (kernel.quantile(share), nginx.quantile(share));
        format!("{one:.1} / {other:.1} ms | {}", ratio(one, other))
    };
    let again = |outcome: &Completions| outcome.repeated() as f64 / outcome.needed.max(1) as f64;
    format!(
        "| {name} | {} | {} + {} + {} | {} | {} | {:.2} / {:.2} % | {} |",
        kernel.times.len(),
        kernel.wrong,
        kernel.cut,
        kernel.hung,
        at(0.5),
        at(0.99),
        again(kernel) * 100.0,
        again(nginx) * 100.0,
        ratio(again(kernel), again(nginx)),
    )
}

#[test]
fn answers_arrive_through_bad_networks_as_from_the_kernels_own_tcp() {
    let asked = number("AFPA_RESPONSES");
    let chosen = setting("AFPA_NETWORK");
    let is_chosen = |network: &Network| {
        let Some(parts) = &chosen else { return true };
        parts.split(';').any(|part| network.name.contains(part))
    };
    // In a test, the two that take no time; `tcp_long_answers` goes through all of them.
    let quick =
        |network: &Network| asked.is_some() || network.connections < 20 && network.share == 1;
    let all = near(SEED).into_iter().chain(far(SEED)).filter(quick);
    let networks: Vec<_> = all.filter(is_chosen).collect();
    let files = files();
    let Some(kernel) = lab(&files, true) else { return };
    let alone = asked.is_some() && setting("AFPA_ALONE").is_none();
    let nginx = if alone { lab(&files, false) } else { None };
    let contest = Contest { nginx, kernel, rounds: number("AFPA_ROUNDS").unwrap_or(1) };
    let shares: u64 = networks.iter().map(|network| network.share).sum();
    println!(
        "| network | responses | wrong + cut + hung | median, AFPA / nginx | ratio | p99 | ratio | sent again | ratio |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut failed = 0;
    for network in &networks {
        let begin = std::time::Instant::now();
        let before = contest.kernel.0.counters();
        let responses = asked.unwrap_or(FEW) * network.share / shares;
        let (nginx, kernel) = contest.hold(network, responses);
        println!("{} {:.0?}", line(network.name, &nginx, &kernel), begin.elapsed());
        keep(network.name, "nginx", &nginx);
        keep(network.name, "afpa", &kernel);
        let answered = contest.kernel.0.counters().since(&before).answered();
        assert!(answered >= responses / 2, "{}: the kernel answered {answered}", network.name);
        failed += kernel.wrong + kernel.cut + kernel.hung;
    }
    assert_eq!(failed, 0, "responses that did not arrive as they should");
}
