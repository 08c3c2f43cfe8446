//! The servers, each with a worker on each of its cores.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use afpa_netlab::Star;
use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::Value;

use crate::bench::fetch;
use crate::servers::control;

/// A server that can be measured.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Its name in the results.
    pub name: String,
    program: PathBuf,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    User,
    Kernel,
    Nginx,
    /// The lab's pool of threads, which share a cache with one lock, or a lock for each entry.
    Pool {
        one_lock: bool,
    },
}

impl Candidate {
    /// Those whose programs are here; `lab` is this program.
    pub fn all(afpa: &Path, before: Option<&Path>, nginx: &Path, lab: &Path) -> Vec<Self> {
        let one = |name: &str, program: &Path, kind| Self {
            name: name.to_owned(),
            program: program.to_owned(),
            kind,
        };
        let mut all = vec![one("user", afpa, Kind::User)];
        all.extend(before.map(|before| one("before", before, Kind::User)));
        all.push(one("kernel", afpa, Kind::Kernel));
        all.extend(before.map(|before| one("kernel-before", before, Kind::Kernel)));
        all.push(one("nginx", nginx, Kind::Nginx));
        all.push(one("pool", lab, Kind::Pool { one_lock: false }));
        all.push(one("pool-one-lock", lab, Kind::Pool { one_lock: true }));
        all.retain(|candidate| candidate.program.is_file());
        all
    }
}

/// A server that runs; ended when dropped.
pub(super) struct Process {
    kind: Kind,
    child: Child,
    folder: PathBuf,
    address: SocketAddr,
}

const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(10);

impl Process {
    /// Starts it in the server's namespace, on these cores and no others, for so many connections of each client.
    pub(super) fn start(
        candidate: &Candidate,
        star: &Star,
        (cores, connections): (&[usize], u32),
        root: &Path,
        folder: &Path,
        port: u16,
    ) -> Result<Self> {
        let configuration = folder.join("configuration");
        let mut command = Command::new(&candidate.program);
        match candidate.kind {
            Kind::Nginx => {
                fs::write(&configuration, nginx(cores, root, folder, port))?;
                command.arg("-c").arg(&configuration).arg("-p").arg(folder);
            }
            Kind::User | Kind::Kernel => {
                let text = afpa(candidate.kind, cores.len(), root, folder, port);
                fs::write(&configuration, text)?;
                command.args(["serve", "--user", "root", "--config"]).arg(&configuration);
            }
            Kind::Pool { one_lock } => {
                let threads = (cores.len() as u32).saturating_mul(connections);
                command.args(["serve", "--architecture", "thread-pool"]).arg(root);
                command.args(["--pool", &threads.to_string()]);
                command.args(["--listen", &format!("0.0.0.0:{port}")]);
                command.args(one_lock.then_some("--one-lock"));
            }
        }
        let log = File::create(folder.join(LOG))?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        // From a thread inside, on those cores: a process inherits both.
        let spawned = star.server().run(|| {
            let mut set = CpuSet::new();
            cores.iter().for_each(|&core| set.set(core));
            sched_setaffinity(None, &set).context("the cores of the server")?;
            command.spawn().with_context(|| format!("{}", candidate.program.display()))
        })?;
        let address = SocketAddr::from((Star::server_address(0), port));
        Ok(Self { kind: candidate.kind, child: spawned?, folder: folder.to_owned(), address })
    }

    /// Waits until it answers a path, and by the kernel if it is to.
    pub(super) fn until_ready(&self, star: &Star, path: &str) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        let control = self.folder.join(CONTROL);
        let client = star.clients().first().context("there is a lane")?;
        loop {
            let before = control::kernel_answers(&control);
            let answered = client.run(|| fetch(self.address, path).is_ok())?;
            let by_kernel = control::kernel_answers(&control) > before;
            if answered && (by_kernel || self.kind != Kind::Kernel) {
                return Ok(());
            }
            if Instant::now() > deadline {
                let said = fs::read_to_string(self.folder.join(LOG)).unwrap_or_default();
                bail!("it is not ready within {PATIENCE:?}: {}", said.trim());
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Connections that each worker has accepted, and those that it has passed on, if it is AFPA.
    pub(super) fn workers(&self) -> Vec<(u64, u64)> {
        let told = control::statistics(&self.folder.join(CONTROL)).unwrap_or_default();
        let workers = told["workers"].as_array().cloned().unwrap_or_default();
        let count = |worker: &Value, name: &str| worker[name].as_u64().unwrap_or(0);
        workers.iter().map(|one| (count(one, "accepted"), count(one, "passed"))).collect()
    }

    pub(super) fn stop(mut self) -> Result<()> {
        ensure!(self.child.try_wait()?.is_none(), "it has ended by itself");
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // nginx ends its workers itself; the namespace ends what does not obey.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let deadline = Instant::now() + Duration::from_secs(3);
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(PAUSE);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const CONTROL: &str = "control.sock";
const LOG: &str = "output.txt";

fn afpa(kind: Kind, workers: usize, root: &Path, folder: &Path, port: u16) -> String {
    format!(
        r#"workers = {workers}

[limits]
connections = 200000
connections_per_client = 200000

[timeouts]
idle = "10m"

[fast_path]
mode = "{mode}"

[compression]
enabled = false

[control]
path = "{control}"

[[site]]
listen = ["0.0.0.0:{port}"]
root = "{root}"
"#,
        mode = if kind == Kind::Kernel { "on" } else { "off" },
        control = folder.join(CONTROL).display(),
        root = root.display(),
    )
}

/// As the lab's nginx for one core, with a listening socket for each worker.
fn nginx(cores: &[usize], root: &Path, folder: &Path, port: u16) -> String {
    let masks = cores.iter().map(|core| format!("{:b}", 1_u64 << core));
    let masks: Vec<String> = masks.collect();
    format!(
        r"user root;
daemon off;
pid {folder}/pid;
worker_processes {workers};
worker_cpu_affinity {masks};
worker_rlimit_nofile 65536;
error_log {folder}/errors.txt error;
events {{ worker_connections 16384; use epoll; multi_accept on; }}
http {{
    access_log off;
    sendfile on; tcp_nopush on; tcp_nodelay on;
    open_file_cache max=32768 inactive=10m; open_file_cache_valid 10m; open_file_cache_min_uses 1; open_file_cache_errors on;
    keepalive_timeout 300s; keepalive_requests 2000000000; reset_timedout_connection on;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    server {{ listen 0.0.0.0:{port} backlog=4096 reuseport; root {root}; }}
}}
",
        workers = cores.len(),
        masks = masks.join(" "),
        folder = folder.display(),
        root = root.display(),
    )
}
