//! The servers of `afpa-lab fast-path`: AFPA with its whole configuration in a file, alone and attached to nginx,
//! and the reflector.
//!
//! Where the kernel is to answer, a server is ready when the kernel has answered each path: earlier connections, on
//! which bytes passed before that, belong to user mode.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Resource, getrlimit};

use super::afpa::{ATTACH_USER, attach_socket, lacks};
use super::files::NGINX;
use super::running::{Launch, inside};
use super::{Programs, Running, Server, ServerSetup, control, installed};
use crate::bench::{fetch, fetch_head};

/// After how many consecutive requests that the kernel cannot answer it leaves a connection to user mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bypass {
    /// AFPA's default.
    Usual,
    /// Never: each request of each connection is read.
    Never,
}

/// AFPA's settings besides those of every server.
#[derive(Debug, Clone)]
pub(crate) struct FastPathOptions {
    /// The programs that are this repository's own.
    pub(crate) programs: Programs,
    /// Whether connections may be left to user mode.
    pub(crate) bypass: Bypass,
    /// Whether connections of known clients begin without a socket.
    pub(crate) socketless: bool,
    /// Connections that the kernel's table has room for.
    pub(crate) flows: u32,
    /// Whether a client's requests have to get through the host's firewall now and then. Requests on connections
    /// that other processes hold would get no answer there.
    pub(crate) firewall: bool,
    /// The longest response that the kernel gives, head and content.
    pub(crate) longest: u64,
    /// Paths that the kernel has to have answered; of a server without the kernel the first one is asked for.
    pub(crate) paths: Vec<String>,
}

/// AFPA in user mode or with the kernel's half.
pub(crate) struct Serve {
    pub(crate) name: String,
    pub(crate) kernel: bool,
    pub(crate) options: FastPathOptions,
}

/// nginx, with AFPA's programs before it. Requests below `/plain` are left to nginx.
pub(crate) struct Attached {
    pub(crate) name: String,
    pub(crate) options: FastPathOptions,
}

/// The bound: a program in TC that answers every request by the same bytes.
pub(crate) struct Reflector {
    pub(crate) programs: Programs,
    pub(crate) body: u64,
    /// It answers one request a connection, and opens and closes the connections as well.
    pub(crate) once: bool,
}

/// The name of AFPA's control socket in the folder of a server.
pub(crate) const CONTROL: &str = "control.sock";
/// How long a server may take until it is ready.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// Chance gives some processes more connections than others, and each has descriptors of its own.
const SPARE_DESCRIPTORS: u64 = 4000;

impl Bypass {
    fn requests(self) -> u32 {
        match self {
            Self::Usual => 64,
            Self::Never => 0,
        }
    }
}

impl Server for Serve {
    fn name(&self) -> &str {
        &self.name
    }

    fn about(&self) -> &str {
        if self.kernel { "AFPA with the kernel's half" } else { "AFPA in user mode" }
    }

    fn lacks(&self) -> Option<String> {
        lacks(&self.options.programs.afpa)
    }

    fn version(&self) -> String {
        installed::version(&self.options.programs.afpa, "--version")
    }

    fn start<'a>(&self, setup: &ServerSetup<'a>) -> Result<Running<'a>> {
        let (file, socket) = (setup.folder.join("afpa.toml"), setup.folder.join(CONTROL));
        fs::write(&file, self.configuration(setup, &socket))
            .with_context(|| format!("cannot write {}", file.display()))?;
        let launch =
            Launch::new(&self.options.programs.afpa).args(["serve", "--config"]).arg(&file);
        let running = Running::nothing(setup).with_configuration(file);
        let paths = &self.options.paths;
        let running = running.and_until(setup, launch, START_PATIENCE, || match self.kernel {
            true => kernel_answers_all(setup, paths, &socket),
            false => paths.first().is_some_and(|path| answers(setup, path)),
        })?;
        self.with_holders(setup, running)
    }
}

impl Serve {
    /// For more connections than a process may have descriptors, other processes listen beside the server and hold the
    /// rest. The kernel spreads connections over all listening sockets. AFPA's programs do not ask which process has
    /// accepted a connection, only whether the socket that listened is marked as served. The holders begin when the
    /// server has answered: a request on one of their connections has to be answered in the kernel.
    fn with_holders<'a>(
        &self,
        setup: &ServerSetup<'_>,
        mut running: Running<'a>,
    ) -> Result<Running<'a>> {
        let most = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        let connections = u64::from(setup.connections);
        if connections <= most {
            return Ok(running);
        }
        // Of this namespace: all of them may come before one is accepted.
        inside(setup.namespace, || fs::write("/proc/sys/net/core/somaxconn", "65535"))?
            .context("net.core.somaxconn")?;
        let server = running.main_process().context("AFPA runs")?;
        let processes = connections.div_ceil(most.saturating_sub(SPARE_DESCRIPTORS).max(1));
        for number in 1..processes {
            let mark = setup.folder.join(format!("holds-{number}"));
            let launch = Launch::new(&self.options.programs.lab)
                .args(["hold", "--listen", &setup.address.to_string()])
                .args(["--of", &server.to_string(), "--mark"])
                .arg(&mark);
            running = running.beside(setup, launch, START_PATIENCE, || mark.exists())?;
        }
        Ok(running)
    }

    /// The configuration, with limits that no case reaches, whose connections come from few addresses.
    fn configuration(&self, setup: &ServerSetup<'_>, control: &Path) -> String {
        let FastPathOptions { bypass, flows, firewall, longest, socketless, .. } = &self.options;
        format!(
            r#"workers = 1

[limits]
connections = {flows}
connections_per_client = 1000000

[timeouts]
idle = "10m"

[fast_path]
mode = "{mode}"
answer_max = "{longest}B"
connections = "{connections}"

[internals]
bypass_after = {requests}
firewall_interval = "{firewall_interval}"

[compression]
enabled = false

[control]
path = "{control}"

[[site]]
listen = ["{address}"]
root = "{root}"
"#,
            mode = if self.kernel { "on" } else { "off" },
            connections = if *socketless { "known" } else { "kernel" },
            requests = bypass.requests(),
            firewall_interval = if *firewall { "1s" } else { "0s" },
            control = control.display(),
            address = setup.address,
            root = setup.root.display(),
        )
    }
}

impl Server for Attached {
    fn name(&self) -> &str {
        &self.name
    }

    fn about(&self) -> &str {
        "nginx, with small objects answered by AFPA in softirq"
    }

    fn lacks(&self) -> Option<String> {
        lacks(&self.options.programs.afpa).or_else(|| NGINX.lacks())
    }

    fn version(&self) -> String {
        NGINX.version()
    }

    fn start<'a>(&self, setup: &ServerSetup<'a>) -> Result<Running<'a>> {
        let folder = setup.folder.join("run");
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let FastPathOptions { programs, bypass, longest, socketless, paths, .. } = &self.options;
        let listen = setup.address.to_string();
        let launch = Launch::new(&programs.afpa)
            .env("RUNTIME_DIRECTORY", &folder)
            .args(["attach", "--listen", &listen, "--exclude", "/plain"])
            .args(["--user", ATTACH_USER])
            .args(if *socketless { &["--connections", "known"][..] } else { &[] })
            .args(["--server-timeout", "300", "--answer-max", &longest.to_string()])
            .args(["--bypass-after", &bypass.requests().to_string(), "--root"])
            .arg(setup.root);
        let socket = attach_socket(setup, &folder)?;
        let running = NGINX.start(setup)?;
        running
            .and_until(setup, launch, START_PATIENCE, || kernel_answers_all(setup, paths, &socket))
    }
}

impl Server for Reflector {
    fn name(&self) -> &str {
        "reflector"
    }

    fn about(&self) -> &str {
        "a program in TC that answers every request by the same bytes: the bound"
    }

    fn lacks(&self) -> Option<String> {
        lacks(&self.program())
    }

    fn version(&self) -> String {
        installed::version(&self.program(), "--version")
    }

    fn start<'a>(&self, setup: &ServerSetup<'a>) -> Result<Running<'a>> {
        let launch = Launch::new(self.program())
            .args(["reflect", "--listen", &setup.address.to_string()])
            .args(["--body", &self.body.to_string()])
            .args(self.once.then_some("--once"));
        Running::nothing(setup).and(setup, launch, setup.address)
    }
}

impl Reflector {
    fn program(&self) -> PathBuf {
        self.programs.lab.with_file_name("afpa-netlab")
    }
}

fn answers(setup: &ServerSetup<'_>, path: &str) -> bool {
    inside(setup.namespace, || fetch(setup.address, path).is_ok()).unwrap_or(false)
}

/// Asks twice for each path: the first request may be the one that brings the object into the kernel. The second one wants
/// the head alone, which is one segment: several of them the kernel does not send by loopback.
fn kernel_answers_all(setup: &ServerSetup<'_>, paths: &[String], socket: &Path) -> bool {
    let answered = |address: SocketAddr, path: &String| {
        let before = control::kernel_answers(socket);
        let asked = fetch(address, path).and_then(|_| fetch_head(address, path));
        asked.is_ok() && control::kernel_answers(socket) > before
    };
    inside(setup.namespace, || paths.iter().all(|path| answered(setup.address, path)))
        .unwrap_or(false)
}
