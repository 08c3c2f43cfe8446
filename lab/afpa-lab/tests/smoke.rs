//! The lab's own smoke run: two servers, a few seconds; and a run that is killed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use afpa_generator::Load;
use afpa_lab::bed::{BedPlan, Wire};
use afpa_lab::plan::{Generators, Group, Plan, Task};
use afpa_lab::results::{AGAIN, Results, Turn};
use afpa_lab::results_folder::Done;
use afpa_lab::run::{Run, Watch};
use afpa_lab::servers::Programs;
use afpa_lab::whitebox::Layer;
use afpa_lab::work::Work;
use rustix::process::{Pid, Signal, kill_process};

const LAB: &str = env!("CARGO_BIN_EXE_afpa-lab");

/// AFPA when the caller built it, else two of the reference servers, which are always here.
fn servers() -> (String, Vec<String>) {
    match std::env::var("AFPA_BIN") {
        Ok(program) => ("afpa,sped".into(), vec!["--afpa".into(), program]),
        Err(_) => {
            eprintln!("SKIP in part: AFPA_BIN is not set, so AFPA is not among the two servers");
            ("sped,io-uring".into(), Vec::new())
        }
    }
}

fn compare(folder: &Path) -> Command {
    let (names, program) = servers();
    let mut command = Command::new(LAB);
    command.args(["papers", "--servers", &names, "--size", "64,4k", "--rounds", "2"]);
    command.args(["--time", "500ms", "--warm-up", "100ms", "--patience", "0s", "--report"]);
    command.arg(folder).args(program).stdin(Stdio::null());
    command
}

fn skip() -> bool {
    let reason = afpa_netlab::missing_privilege();
    if let Some(reason) = &reason {
        eprintln!("SKIP: {reason}");
    }
    reason.is_some()
}

#[test]
fn two_servers_are_compared_and_the_report_is_whole() {
    if skip() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = compare(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", told(&output));
    let results = Results::read(folder.path()).unwrap();
    check_turns(&results);
    for file in ["README.md", "index.html", "figures/requests-steered-persistent.svg"] {
        let text = fs::read_to_string(folder.path().join(file)).unwrap();
        for server in &results.servers {
            assert!(text.contains(&server.name), "{file} does not name {}", server.name);
        }
    }
    let last = String::from_utf8_lossy(&output.stdout);
    let last = last.lines().last().unwrap_or_default();
    assert!(last.contains(" / ") && last.contains("x ("), "no ratio in: {last}");
    let same = Command::new(LAB).arg("diff").args([folder.path(), folder.path()]).output().unwrap();
    assert!(same.status.success(), "{}", told(&same));
    assert!(String::from_utf8_lossy(&same.stdout).contains("1.00x  no difference"));
    let again = compare(folder.path()).output().unwrap();
    assert!(told(&again).contains("holds a finished run"), "{}", told(&again));
}

#[test]
fn what_there_was_no_time_for_is_added_later() {
    if skip() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let run = |more: &[&str]| {
        let mut command = Command::new(LAB);
        command.args(["papers", "--servers", "sped,io-uring", "--size", "64", "--rounds", "1"]);
        command.args(["--bed", "steered,one-core", "--time", "300ms", "--warm-up", "100ms"]);
        command.args(["--patience", "0s", "--no-white-box", "--report"]).arg(folder.path());
        command.args(more).stdin(Stdio::null()).output().unwrap()
    };
    let beds = |results: &Results| {
        let of = |bed: &str| results.turns.iter().filter(|turn| turn.point.bed == bed).count();
        [of("steered"), of("one-core")]
    };
    let output = run(&["--within", "6s"]);
    assert!(output.status.success(), "{}", told(&output));
    let first = Results::read(folder.path()).unwrap();
    assert!(first.left_out.iter().any(|line| line.contains("bed one-core: no time for it")));
    assert!(beds(&first)[0] > 0 && beds(&first)[1] == 0, "{:?}", beds(&first));

    let output = run(&[]);
    assert!(output.status.success(), "{}", told(&output));
    let both = Results::read(folder.path()).unwrap();
    assert_eq!((beds(&both), both.left_out.len()), ([3, 3], 0), "{:?}", both.left_out);
    assert_eq!(both.method.additions.len(), 1);
    assert_eq!(both.turns[0].measured.requests, first.turns[0].measured.requests);
    let page = fs::read_to_string(folder.path().join("README.md")).unwrap();
    assert!(page.contains("Added at") && page.contains("bed *one-core*"), "{page}");
    let output = run(&["--within", "20m"]);
    assert!(told(&output).contains("nothing is missing"), "{}", told(&output));
}

/// Two sizes, two rounds, two servers and one of them again; each answered.
fn check_turns(results: &Results) {
    assert_eq!(results.turns.len(), 2 * 2 * 3);
    assert_eq!(results.turns.iter().filter(|turn| turn.server.ends_with(AGAIN)).count(), 4);
    for turn in &results.turns {
        assert_eq!(turn.failure, None);
        assert!(turn.measured.requests > 0 && turn.cost.total() > 0.0, "{turn:?}");
        assert_eq!(turn.measured.errors, 0);
    }
    assert!(!results.environment.kernel.is_empty());
    for server in &results.servers {
        let command = &server.command;
        assert!(command.contains("WORK/root"), "{command}");
        assert!(!command.contains("afpa-lab-work") && !command.contains("target"), "{command}");
    }
}

#[test]
fn a_killed_run_leaves_nothing_for_long_and_goes_on() {
    if skip() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut run = start(folder.path());
    let id = run.id();
    run.kill().unwrap();
    run.wait().unwrap();
    assert!(!namespaces(id).is_empty(), "it was killed without a bed: nothing is shown");
    let cleaned = Command::new(LAB).arg("clean").output().unwrap();
    assert!(cleaned.status.success(), "{}", told(&cleaned));
    assert_eq!(namespaces(id), Vec::<PathBuf>::new());
    assert!(!work_folder(id).exists());
    assert!(servers_of(id).is_empty(), "a server outlived its bed");
    let output = compare(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", told(&output));
    check_turns(&Results::read(folder.path()).unwrap());
}

#[test]
fn a_signal_ends_a_run_in_good_order() {
    if skip() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut run = start(folder.path());
    let id = run.id();
    kill_process(Pid::from_child(&run), Signal::TERM).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert_eq!(namespaces(id), Vec::<PathBuf>::new());
    assert!(!work_folder(id).exists());
    assert!(folder.path().join("turns.jsonl").is_file() && Results::read(folder.path()).is_err());
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_measured() {
    if skip() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (arguments, expected) in [
        (["--servers", "no-such-server"], "there are: afpa"),
        (["--workload", "no-such-workload"], "there are: webstone"),
        (["--bed", "tilted"], "there are: steered"),
        (["--generator", "nobody"], "there are: tc"),
    ] {
        let mut command = compare(folder.path());
        if arguments[0] == "--servers" {
            command = Command::new(LAB);
            command.arg("papers");
        }
        let output = command.args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", told(&output));
        assert!(told(&output).contains(expected), "{}", told(&output));
    }
    assert!(!folder.path().join("turns.jsonl").exists());
}

/// A preset decides what is measured, and how: other options beside it are refused, not ignored.
#[test]
fn options_that_a_preset_would_ignore_are_refused() {
    for preset in ["--quick", "--full"] {
        for option in [
            &["--workload", "jaws"][..],
            &["--size", "512"],
            &["--connections", "8"],
            &["--non-persistent"],
            &["--bed", "steered"],
            &["--every-generator"],
            &["--delay", "1ms"],
            &["--loss", "1%"],
            &["--bandwidth", "100mbit"],
            &["--rate", "1000"],
        ] {
            let mut command = Command::new(LAB);
            let output = command.args(["papers", preset]).args(option).output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{preset} {option:?}: {}", told(&output));
            assert!(told(&output).contains("cannot be used with"), "{}", told(&output));
        }
    }
}

struct Silent;

impl Watch for Silent {
    fn turn(&mut self, _: &Turn, _: usize, _: usize) {}
    fn say(&mut self, line: &str) {
        eprintln!("{line}");
    }
}

/// A point of Kim and Rixner's axes, direct and by way of the forwarder: it is asked for at a rate, and its time told by layer.
#[test]
fn the_time_of_a_request_is_told_by_layer() {
    static INTERRUPTED: AtomicBool = AtomicBool::new(false);
    if skip() {
        return;
    }
    if let Some(reason) = afpa_lab::whitebox::missing() {
        return eprintln!("SKIP: {reason}");
    }
    let folder = tempfile::tempdir().unwrap();
    let work = Work::create().unwrap();
    let run = Run {
        folder: folder.path(),
        work: work.path(),
        programs: Programs { afpa: "afpa".into(), lab: LAB.into() },
        generators: Generators::choose(Some("socket")).unwrap(),
        patience: Duration::ZERO,
        deadline: None,
        interrupted: &INTERRUPTED,
    };
    let workload = afpa_generator::family("segments", &[1], true).unwrap().remove(0);
    let group = |delay: Option<Duration>| {
        let wire = delay.and_then(|delay| Wire::new(delay, 0.0, None));
        let load = Load {
            connections: 8,
            warm_up: Duration::from_millis(200),
            duration: Duration::from_millis(600),
            persistent: true,
            rate: Some(300.0),
        };
        Group {
            title: "an axis".into(),
            bed: BedPlan::named("steered", (0, 1), wire).unwrap().acknowledging_each(),
            tasks: vec![Task { workload: workload.clone(), load, generator: "socket".into() }],
            servers: vec!["sped".into()],
            closing: Vec::new(),
        }
    };
    let plan = Plan {
        groups: Vec::new(),
        axes: vec![group(None), group(Some(Duration::from_millis(5)))],
        rounds: 1,
        look_inside: true,
        left_out: Vec::new(),
        done: Done::default(),
    };
    let mut brought = run.carry_out(&plan, &mut Silent).unwrap();
    for group in plan.white_box() {
        run.look_inside(&group, &mut Silent, &mut brought).unwrap();
    }
    let [direct, far] = &brought.white_box[..] else { panic!("{:?}", brought.white_box) };
    assert_eq!([&*direct.point.bed, &*far.point.bed], ["steered", "steered-5ms-impaired"]);
    for found in [direct, far] {
        let profile = found.profile.as_ref().expect("samples");
        assert_eq!(found.point.rate, Some(300));
        assert!(profile.rate > 0.0, "nothing was answered: {profile:?}");
        assert!(profile.layer(Layer::Tcp).samples > 0, "no time in TCP: {profile:?}");
    }
}

/// Starts a run and waits until it has measured something.
fn start(folder: &Path) -> Child {
    let mut run = compare(folder).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(run.stderr.take().expect("a pipe")).lines();
    let mut said = Vec::new();
    for line in lines.map_while(Result::ok) {
        said.push(line);
        if said.last().is_some_and(|line| line.starts_with("[1/")) {
            return run;
        }
    }
    panic!("it ended at once, {:?}: {}", run.wait(), said.join("\n"));
}

fn namespaces(owner: u32) -> Vec<PathBuf> {
    let prefix = format!("afpa-{owner}-");
    let entries = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix));
    ours.map(|entry| entry.path()).collect()
}

fn work_folder(owner: u32) -> PathBuf {
    std::env::temp_dir().join(format!("afpa-lab-work-{owner}"))
}

/// Processes whose command line names the folder of a run.
fn servers_of(owner: u32) -> Vec<String> {
    let folder = work_folder(owner).display().to_string();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let commands = entries.filter_map(|entry| {
        let words = fs::read(entry.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&words).replace('\0', " "))
    });
    commands.filter(|command| command.contains(&folder)).collect()
}

fn told(output: &Output) -> String {
    let text = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    format!("{}: {}", output.status, String::from_utf8_lossy(&text))
}

#[test]
fn a_server_lives_through_a_load_that_changes() {
    let Ok(program) = std::env::var("AFPA_BIN") else {
        return eprintln!("SKIP: AFPA_BIN is not set");
    };
    if skip() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(LAB);
    command.args(["adaptive", "--rounds", "1", "--seconds", "0.3", "--only", "64-kept,64-once"]);
    command.args(["--afpa", &program, "--out"]).arg(folder.path()).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", told(&output));
    let text = fs::read_to_string(folder.path().join("results.md")).unwrap();
    for words in
        ["| 64 B, one request a connection | ", "| afpa-readiness | ", "| afpa-completion | "]
    {
        assert!(text.contains(words), "{words} is missing:\n{text}");
    }
}
