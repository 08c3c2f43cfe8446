//! `afpa-lab papers`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use afpa_lab::choice::{Preset, Wish, known};
use afpa_lab::environment::Environment;
use afpa_lab::plan::{Generators, Plan};
use afpa_lab::results::{FAILED, Method, Results, SCHEMA, Turn, WorkloadRecord, write_whole};
use afpa_lab::results_folder::{ResultsFolder, cut_short, remove_journals};
use afpa_lab::run::{Brought, Run, Watch};
use afpa_lab::servers::{Programs, Server};
use afpa_lab::units::{parse_duration, parse_rate, parse_share, parse_size};
use afpa_lab::work::Work;
use afpa_lab::{report, whitebox};
use anyhow::{Result, bail, ensure};
use clap::{ArgGroup, Args};

use super::interrupt;
use super::progress::Progress;
use super::say::say;

/// The presets decide by themselves about loads, connections and beds.
const PRESETS: [&str; 2] = ["quick", "full"];

/// Measure servers beside each other; leave tables, figures and a page in a folder.
///
/// Exit status: 0 measured; 1 a server failed, or nothing could be measured; 130 interrupted.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("preset").args(["quick", "full", "workload"])))]
pub(super) struct Papers {
    /// Families of workloads [default: webstone]; see `afpa-lab list`
    #[arg(short, long, value_name = "NAME,...", value_delimiter = ',')]
    workload: Vec<String>,
    /// A look at everything, within ten minutes
    #[arg(long)]
    quick: bool,
    /// The papers' experiments, with all servers, within an hour
    #[arg(long)]
    full: bool,
    /// Servers [default: a few; with --full all that are here]
    #[arg(short, long, value_name = "NAME,...", value_delimiter = ',')]
    servers: Vec<String>,
    /// Sizes of files, such as 512,4k,1m, or target rates of specweb96
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', value_parser = parse_size, conflicts_with_all = PRESETS)]
    size: Vec<u64>,
    /// Connections at a time
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "64", conflicts_with_all = PRESETS)]
    connections: Vec<u32>,
    /// One request a connection, as in the papers
    #[arg(long, conflicts_with_all = PRESETS)]
    non_persistent: bool,
    /// Beds: steered, steered-jumbo, unsteered, one-core
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "steered", conflicts_with_all = PRESETS)]
    bed: Vec<String>,
    /// The generator [default: the fastest that can make the load]
    #[arg(long, value_name = "NAME")]
    generator: Option<String>,
    /// Let every generator that can make a load do so, to see how far they agree
    #[arg(long, conflicts_with = "generator", conflicts_with_all = PRESETS)]
    every_generator: bool,
    /// Requests a second that come whether or not the server keeps up [default: closed loop]
    #[arg(long, value_name = "N", conflicts_with_all = PRESETS)]
    rate: Option<f64>,
    /// Interleaved rounds [default: 3; with --full 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Length of a measurement, such as 500ms or 2s
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "1s")]
    time: Duration,
    /// Load before each measurement
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "200ms")]
    warm_up: Duration,
    /// Make what is not in the folder yet fit: shorter measurements first, then fewer rounds, experiments, looks
    /// inside and servers; and end then
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    within: Option<Duration>,
    /// How long each server may wait until both cores have nothing else to do
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "2s")]
    patience: Duration,
    /// Delay of the way between client and server, each way
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "0ms", conflicts_with_all = PRESETS)]
    delay: Duration,
    /// Share of packets lost on it, such as 1%
    #[arg(long, value_name = "SHARE", value_parser = parse_share, default_value = "0%", conflicts_with_all = PRESETS)]
    loss: f64,
    /// Bandwidth of it, such as 100mbit
    #[arg(long, value_name = "RATE", value_parser = parse_rate, conflicts_with_all = PRESETS)]
    bandwidth: Option<u64>,
    /// Leave system calls and context switches uncounted
    #[arg(long)]
    no_white_box: bool,
    /// Folder of the results; a run that was cut short, or had no time for everything, goes on there
    /// [default: build/lab/TIME; a preset that was cut short finds its own]
    #[arg(long, value_name = "FOLDER")]
    report: Option<PathBuf>,
    /// The afpa program [default: beside this one]
    #[arg(long, value_name = "FILE")]
    afpa: Option<PathBuf>,
    /// Core of the servers
    #[arg(long, value_name = "N", default_value_t = 0)]
    server_core: usize,
    /// Core of the generators
    #[arg(long, value_name = "N", default_value_t = 1)]
    client_core: usize,
}

/// `afpa` beside this program, or where the caller says.
pub(super) fn programs(afpa: Option<&Path>) -> Programs {
    let lab = std::env::current_exe().unwrap_or_else(|_| "afpa-lab".into());
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let afpa = afpa.map(absolute).unwrap_or_else(|| lab.with_file_name("afpa"));
    Programs { afpa, lab }
}

impl Papers {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let interrupted = interrupt::watch()?;
        if let Some(reason) = afpa_netlab::missing_privilege() {
            bail!(reason);
        }
        let programs = programs(self.afpa.as_deref());
        let wish = self.wish();
        let servers = known(&wish, &programs);
        let generators = Generators::choose(wish.generator.as_deref())?;
        let folder = self.folder(&wish);
        let mut earlier = ResultsFolder::look(&folder, &wish)?;
        let mut plan = wish.plan(&servers, &generators, std::mem::take(&mut earlier.done))?;
        if let Some(reason) = whitebox::missing().filter(|_| plan.look_inside) {
            plan.left_out.push(reason);
            plan.look_inside = false;
        }
        ensure!(
            earlier.finished.is_none() || !plan.lasts().is_zero(),
            "{0} holds a finished run, and nothing is missing; its report again: afpa-lab report {0}",
            folder.display()
        );
        earlier.begin(&folder, &wish)?;
        let begun = Environment::look();
        let environment = environment_of(&folder, &begun)?;
        describe(&plan, &folder);
        let work = Work::create()?;
        let run = Run {
            folder: &folder,
            work: work.path(),
            programs,
            generators,
            patience: self.patience,
            deadline: wish
                .within
                .map(|within| Instant::now() + within.saturating_sub(plan.white_box_lasts())),
            interrupted,
        };
        let mut progress = Progress::new();
        let brought = run.carry_out(&plan, &mut progress).and_then(|mut brought| {
            look_inside(&run, &plan, &mut progress, &mut brought)?;
            Ok(brought)
        });
        let brought = match brought {
            Err(error) if interrupted.load(std::sync::atomic::Ordering::Relaxed) => {
                say!(
                    "afpa-lab: {error:#}; the same command with --report {} goes on",
                    folder.display()
                );
                return Ok(ExitCode::from(interrupt::STATUS));
            }
            other => other?,
        };
        // Failures of an earlier, finished run do not count as failures of this one.
        let before = earlier.finished.as_ref().map_or(0, |results| results.turns.len());
        let mut new = brought.turns.iter().skip(before);
        let failed = !brought.failures.is_empty() || new.any(|turn| turn.failure.is_some());
        let mut results = self.results(&wish, &plan, &servers, &run, environment, brought);
        if let Some(finished) = earlier.finished {
            results = results.added_to(finished, begun);
        }
        finish(&results, &folder)?;
        Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    fn wish(&self) -> Wish {
        let preset = match (self.quick, self.full) {
            (true, _) => Preset::Quick,
            (_, true) => Preset::Full,
            _ => Preset::Named,
        };
        let workloads = match (self.workload.as_slice(), preset) {
            ([], Preset::Named) => vec!["webstone".to_owned()],
            (named, _) => named.to_vec(),
        };
        let usual_rounds = if preset == Preset::Full { 5 } else { 3 };
        Wish {
            preset,
            servers: self.servers.clone(),
            workloads,
            sizes: self.size.clone(),
            connections: self.connections.clone(),
            persistent: vec![!self.non_persistent],
            beds: self.bed.clone(),
            generator: self.generator.clone(),
            every_generator: self.every_generator,
            rate: self.rate,
            rounds: self.rounds.unwrap_or(usual_rounds),
            warm_up: self.warm_up,
            seconds: self.time,
            delay: self.delay,
            loss: self.loss,
            bandwidth: self.bandwidth,
            cores: (self.server_core, self.client_core),
            look_inside: !self.no_white_box,
            within: self.within.or(match preset {
                Preset::Named => None,
                Preset::Quick => Some(QUICK),
                Preset::Full => Some(FULL),
            }),
        }
    }

    /// Where results go: a preset that was cut short goes on in its folder.
    fn folder(&self, wish: &Wish) -> PathBuf {
        const REPORTS: &str = "build/lab";
        let preset = wish.preset != Preset::Named;
        let begun = || cut_short(Path::new(REPORTS), wish).filter(|_| preset);
        self.report.clone().or_else(begun).unwrap_or_else(|| {
            let now = Environment::look().time;
            let name = now.chars().take(19).map(|c| if c == ' ' { '-' } else { c });
            PathBuf::from(REPORTS).join(name.collect::<String>().replace(':', ""))
        })
    }

    fn results(
        &self,
        wish: &Wish,
        plan: &Plan,
        servers: &[Box<dyn Server>],
        run: &Run<'_>,
        environment: Environment,
        brought: Brought,
    ) -> Results {
        let groups = || plan.groups.iter().chain(&plan.axes);
        let beds = groups().map(|group| (group.bed.name.clone(), group.bed.record()));
        let tasks = || plan.groups.iter().flat_map(|group| &group.tasks);
        let workloads = groups().flat_map(|group| &group.tasks).map(|task| {
            let workload = &task.workload;
            let record = WorkloadRecord {
                family: workload.family.clone(),
                title: workload.title.clone(),
                point: workload.point,
                about: workload.about.clone(),
            };
            (workload.name.clone(), record)
        });
        let generators = run.generators.names().filter_map(|name| {
            let generator = run.generators.named(name)?;
            let about = format!("{} ({})", generator.about(), generator.version());
            Some((name.to_owned(), about))
        });
        let mut left_out = plan.left_out.clone();
        left_out.extend(brought.left_out);
        let failures = brought.turns.iter().filter_map(Turn::failed).chain(brought.failures);
        left_out.extend(failures.map(|line| format!("{FAILED}{line}")));
        let mut records = brought.servers;
        let place = |name: &str| servers.iter().position(|server| server.name() == name);
        records.sort_by_key(|record| place(&record.name));
        Results {
            schema: SCHEMA,
            environment,
            method: Method {
                command: command_line(),
                beds: beds.collect(),
                rounds: plan.rounds,
                warm_up: wish.warm_up.as_secs_f64(),
                seconds: tasks()
                    .map(|t| t.load.duration.as_secs_f64())
                    .fold(f64::INFINITY, f64::min),
                additions: Vec::new(),
            },
            servers: records,
            workloads: workloads.collect(),
            generators: generators.collect(),
            turns: brought.turns,
            white_box: brought.white_box,
            left_out,
        }
    }
}

/// The command line as it was given, without the folders of this machine.
fn command_line() -> String {
    let name = |word: String| match Path::new(&word).file_name() {
        Some(name) if word.contains('/') => name.to_string_lossy().into_owned(),
        _ => word,
    };
    std::env::args().skip(1).map(name).fold("afpa-lab".into(), |line, word| line + " " + &word)
}

fn look_inside(
    run: &Run<'_>,
    plan: &Plan,
    progress: &mut Progress,
    brought: &mut Brought,
) -> Result<()> {
    let groups = if plan.look_inside { plan.white_box() } else { Vec::new() };
    for (place, group) in groups.iter().enumerate() {
        let left = plan.looks_last(&groups[place..]).as_secs_f64() / 60.0;
        let about = format!("[inside {}/{}, about {left:.0} min left]", place + 1, groups.len());
        progress.say(&format!("{about} {}, bed {}", group.title, group.bed.name));
        run.look_inside(group, progress, brought)?;
    }
    Ok(())
}

/// A quick run has this long, with a minute to spare, and a full one an hour with two.
const QUICK: Duration = Duration::from_secs(8 * 60);
const FULL: Duration = Duration::from_secs(58 * 60);

/// The machine as it was when the run began, also for a run that is continued.
fn environment_of(folder: &Path, now: &Environment) -> Result<Environment> {
    let path = folder.join("environment.json");
    if path.exists() {
        return Ok(serde_json::from_str(&fs::read_to_string(&path)?)?);
    }
    write_whole(&path, (serde_json::to_string_pretty(now)? + "\n").as_bytes())?;
    Ok(now.clone())
}

fn describe(plan: &Plan, folder: &Path) {
    for group in plan.groups.iter().chain(&plan.axes) {
        say!(
            "{}: {} loads on bed {}, {} servers: {}",
            group.title,
            group.tasks.len(),
            group.bed.name,
            group.servers.len(),
            group.servers.join(", ")
        );
    }
    plan.left_out.iter().for_each(|line| say!("left out: {line}"));
    let minutes = plan.lasts().as_secs_f64() / 60.0;
    say!("{} rounds, about {minutes:.0} min; results in {}", plan.rounds, folder.display());
}

fn finish(results: &Results, folder: &Path) -> Result<()> {
    results.write(folder)?;
    report::write(results, folder)?;
    remove_journals(folder);
    println!("{}", report::terminal(results));
    results.left_out.iter().for_each(|line| println!("left out: {line}"));
    println!("written: {0}/README.md, {0}/index.html, {0}/results.json", folder.display());
    report::last_lines(results).iter().for_each(|line| println!("{line}"));
    Ok(())
}
