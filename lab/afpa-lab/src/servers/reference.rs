//! The papers' architectures: `afpa-lab serve`, as a process like every other server. Beside them, AFPA's own engine with answers
//! in each of the papers' contexts: the example `contexts` of the crate `afpa`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use afpa_architectures::{ALL, Architecture, Concurrency};
use anyhow::Result;

use super::running::{Launch, accepts};
use super::{Programs, Running, Server, ServerSetup, installed, template};

/// Each architecture as a server.
pub(super) fn architectures(programs: &Programs) -> Vec<Box<dyn Server>> {
    let server = |architecture: &'static Architecture| {
        let name = architecture.name.to_owned();
        Reference { name, architecture, options: Vec::new(), programs: programs.clone() }
    };
    ALL.iter().map(server).map(|server| Box::new(server) as Box<dyn Server>).collect()
}

/// An architecture with other options than its own: `NAME:OPTION=VALUE:OPTION`.
pub(super) fn variant(name: &str, programs: &Programs) -> Option<Box<dyn Server>> {
    let (base, settings) = name.split_once(':')?;
    let architecture = Architecture::named(base)?;
    let options: Option<Vec<String>> = settings.split(':').map(option).collect();
    let (name, options) = (name.to_owned(), options?);
    Some(Box::new(Reference { name, architecture, options, programs: programs.clone() }))
}

/// An option of `afpa-lab serve` that does not change what is served, or where.
fn option(text: &str) -> Option<String> {
    let (name, _) = text.split_once('=').unwrap_or((text, ""));
    VARIED.contains(&name).then(|| format!("--{text}"))
}

const VARIED: &[&str] = &[
    "close",
    "concurrency",
    "helpers",
    "io",
    "pin-threshold",
    "pinned-limit",
    "pool",
    "recheck",
    "without",
];

/// The reason why none of them can run; `None` if they can.
pub(super) fn lacks(programs: &Programs) -> Option<String> {
    super::afpa::lacks(&programs.lab)
}

/// `afpa-lab serve` with an architecture, on an address.
pub(super) fn launch(
    programs: &Programs,
    architecture: &str,
    address: SocketAddr,
    setup: &ServerSetup<'_>,
) -> Launch {
    Launch::new(&programs.lab)
        .args(["serve", "--architecture", architecture, "--listen", &address.to_string()])
        .arg(setup.root)
}

struct Reference {
    name: String,
    architecture: &'static Architecture,
    /// Options behind the common ones.
    options: Vec<String>,
    programs: Programs,
}

impl Server for Reference {
    fn name(&self) -> &str {
        &self.name
    }

    fn about(&self) -> &str {
        self.architecture.about
    }

    fn lacks(&self) -> Option<String> {
        lacks(&self.programs).or_else(|| self.architecture.lacks())
    }

    fn version(&self) -> String {
        format!("afpa-lab {}", env!("CARGO_PKG_VERSION"))
    }

    fn keeps_connections(&self) -> bool {
        self.architecture.keeps_connections() && !self.options.iter().any(|one| one == "--close")
    }

    fn start<'a>(&self, setup: &ServerSetup<'a>) -> Result<Running<'a>> {
        let pool = self.value("pool").and_then(|text| text.parse().ok());
        let pool = pool.unwrap_or_else(|| template::workers(setup));
        let launch = launch(&self.programs, self.architecture.name, setup.address, setup)
            .args(self.options.iter().filter(|option| !option.starts_with("--pool=")))
            .args(["--pool", &pool.to_string()]);
        // The first processes of a pool accept while the last ones are still being started, so all must be there.
        let processes = if self.has_processes() { pool as usize + 1 } else { 1 };
        let namespace = setup.namespace;
        Running::nothing(setup).and_until(setup, launch, START_PATIENCE, || {
            let count = namespace.map(|inside| inside.processes().map_or(0, |found| found.len()));
            count.is_none_or(|count| count >= processes) && accepts(setup, setup.address)
        })
    }
}

impl Reference {
    fn has_processes(&self) -> bool {
        match self.value("concurrency") {
            Some(strategy) => strategy == "processes",
            None => self.architecture.concurrency == Concurrency::Processes,
        }
    }

    /// The value that a variant gives to an option.
    fn value(&self, option: &str) -> Option<&str> {
        let values = self.options.iter().filter_map(|text| text.strip_prefix("--"));
        let mut values = values.filter_map(|text| text.split_once('='));
        values.find_map(|(name, value)| (name == option).then_some(value))
    }
}

/// How long a large pool of processes may take to be there.
const START_PATIENCE: Duration = Duration::from_secs(30);

/// AFPA's engine and module under two tables of states: the same program, whose answers leave in the deferred-interrupt
/// context, or in a thread.
pub(super) fn contexts(programs: &Programs) -> Vec<Box<dyn Server>> {
    let program = programs.afpa.with_file_name("examples").join("contexts");
    let server = |name, about, context| {
        Box::new(InContext { name, about, context, program: program.clone() }) as Box<dyn Server>
    };
    vec![
        server("afpa-interrupt", "AFPA's engine alone, as it is", "interrupt"),
        server("afpa-threads", "the same, a helper thread sends each answer", "thread"),
    ]
}

struct InContext {
    name: &'static str,
    about: &'static str,
    context: &'static str,
    program: PathBuf,
}

impl Server for InContext {
    fn name(&self) -> &str {
        self.name
    }

    fn about(&self) -> &str {
        self.about
    }

    fn lacks(&self) -> Option<String> {
        super::afpa::lacks(&self.program)
    }

    fn version(&self) -> String {
        installed::version(&self.program, "--version")
    }

    fn start<'a>(&self, setup: &ServerSetup<'a>) -> Result<Running<'a>> {
        let launch = Launch::new(&self.program)
            .args([self.context, "--listen", &setup.address.to_string()])
            .arg(setup.root);
        Running::nothing(setup).and(setup, launch, setup.address)
    }
}
