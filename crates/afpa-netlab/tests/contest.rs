//! Servers side by side, and the command line.

use std::process::{Command, Stdio};
use std::time::Duration;

use afpa_netlab::contest::{Contender, ContestOptions, hold, standings};
use afpa_netlab::load::{LoadOptions, Target};
use afpa_netlab::{Bed, missing_privilege};
use afpa_testkit::eventually;

const PROGRAM: &str = env!("CARGO_BIN_EXE_afpa-netlab");

macro_rules! skip_unless_privileged {
    () => {
        if let Some(reason) = missing_privilege() {
            eprintln!("SKIP: {reason}");
            return;
        }
    };
}

/// Two reflectors with different bodies: each turn must have seen its own, although a program
/// attached to an interface outlives a process that is killed.
#[test]
fn each_turn_meets_its_own_server() {
    skip_unless_privileged!();
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        eprintln!("SKIP: needs two cores");
        return;
    }
    let reflector = |name: &str, body: u32| {
        let address = Bed::SERVER_V4;
        Contender::new(name, format!("{PROGRAM} reflect --listen {address}:80 --body {body}"))
    };
    let address = (Bed::SERVER_V4, 80).into();
    let options = ContestOptions {
        rounds: 2,
        warm_up: Duration::from_millis(50),
        duration: Duration::from_secs(1),
        ..ContestOptions::new(
            vec![reflector("small", 100), reflector("large", 900)],
            LoadOptions::new(address, vec![Target::get("/")]),
        )
    };
    let mut watched = 0;
    let turns = hold(&options, |_| watched += 1).unwrap();
    assert_eq!((turns.len(), watched), (4, 4));
    for turn in &turns {
        let count = |name: &str| turn.interval.counts[name];
        assert_eq!(turn.interval.errors, 0, "{turn:?}");
        // The two are read one after the other, and the load goes on meanwhile.
        let each = count("response_bytes") / count("responses");
        let expected = if turn.server == "small" { 200..700 } else { 700..2000 };
        assert!(expected.contains(&each), "{}: {each} bytes", turn.server);
        assert!(turn.cost.total() > 0.0, "{turn:?}");
    }
    let names: Vec<_> = standings(&turns).into_iter().map(|standing| standing.server).collect();
    assert_eq!(names, ["small", "large"]);
}

/// The measurement of a server that accepts at once and is ready later waits until it is ready.
#[test]
fn a_turn_begins_when_the_server_says_it_is_ready() {
    skip_unless_privileged!();
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("ready");
    let command = format!(
        "sh -c '(sleep 0.5; touch {}) & exec {PROGRAM} reflect --listen {}:80'",
        mark.display(),
        Bed::SERVER_V4
    );
    let ready = Some(format!("test -e {}", mark.display()));
    let options = ContestOptions {
        rounds: 1,
        warm_up: Duration::from_millis(20),
        duration: Duration::from_millis(50),
        ..ContestOptions::new(
            vec![Contender { ready, ..Contender::new("it", command) }],
            LoadOptions::new((Bed::SERVER_V4, 80).into(), vec![Target::get("/")]),
        )
    };
    let mut turns = 0;
    hold(&options, |_| {
        assert!(mark.exists(), "the turn was over before the server was ready");
        turns += 1;
    })
    .unwrap();
    assert_eq!(turns, 1);
}

/// The reason is the last line, with any setting of backtraces in the environment.
#[test]
fn a_failure_says_why_in_its_last_line() {
    skip_unless_privileged!();
    let run = Command::new(PROGRAM)
        .args(["bed", "--rounds", "1", "--server", "none=sh -c 'exit 3'"])
        .env("RUST_BACKTRACE", "1")
        .output()
        .unwrap();
    let text = String::from_utf8(run.stderr).unwrap();
    let last = text.lines().last().unwrap();
    assert!(!run.status.success());
    assert!(last.contains("none, round 1: the server ended at once: exit status: 3"), "{text}");
}

#[test]
fn run_sets_a_bed_up_and_passes_the_status_on() {
    skip_unless_privileged!();
    let run = |words: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.arg("run").args(words).output().unwrap()
    };
    // Nobody listens there, and the server's side refuses the connection: status 7.
    let refused = "curl --silent --max-time 30 http://10.77.0.1/; test $? -eq 7";
    let ok = run(&["--inject", "--delay", "5ms", "--", "sh", "-c", refused]);
    assert!(ok.status.success(), "{ok:?}");
    let text = String::from_utf8(ok.stdout).unwrap();
    let counts: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert!(counts["to_server"]["received"].as_u64().unwrap() > 0, "{counts}");
    let failed = run(&["--", "sh", "-c", "exit 7"]);
    assert_eq!(failed.status.code(), Some(7), "{failed:?}");
}

#[test]
fn reflect_ends_when_it_is_asked_to() {
    skip_unless_privileged!();
    let bed = Bed::create(&Default::default()).unwrap();
    let mut reflect = bed
        .server()
        .command(PROGRAM)
        .args(["reflect", "--listen", "10.77.0.1:80"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let filters = || {
        let show = ["filter", "show", "dev", "eth0", "ingress"];
        let output = bed.server().command("tc").args(show).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    eventually("it reflects", || !filters().is_empty());
    assert!(reflect.try_wait().unwrap().is_none());
    let pid = rustix::process::Pid::from_child(&reflect);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(reflect.wait().unwrap().success());
    assert_eq!(filters(), "");
}
