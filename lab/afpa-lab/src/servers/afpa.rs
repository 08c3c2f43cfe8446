//! AFPA in each of its modes.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::files::NGINX;
use super::running::Launch;
use super::{Programs, Running, Server, ServerSetup, control, installed, template};

/// AFPA in user mode, in the kernel, attached to nginx; and, to compare sending with and without a copy, in
/// user mode with everything pinned and with nothing pinned.
pub(super) fn modes(programs: &Programs) -> Vec<Box<dyn Server>> {
    let program = programs.afpa.clone();
    let serve = |name, about, arguments| {
        Box::new(Serve { name, about, arguments, program: program.clone() }) as Box<dyn Server>
    };
    vec![
        serve("afpa", "AFPA in user mode", &["--fast-path", "off"]),
        serve("afpa-readiness", "AFPA in user mode, waiting by epoll", READINESS),
        serve("afpa-completion", "AFPA in user mode, waiting by io_uring", COMPLETION),
        Box::new(Configured {
            name: "afpa-kernel",
            about: "AFPA with small objects in softirq",
            file: "afpa-kernel.toml",
            text: include_str!("../../../servers/afpa-kernel.toml"),
            program: program.clone(),
        }),
        Box::new(Configured {
            name: "afpa-socketless",
            about: "AFPA with small objects, and connections, in softirq",
            file: "afpa-socketless.toml",
            text: include_str!("../../../servers/afpa-socketless.toml"),
            program: program.clone(),
        }),
        Box::new(Attached { program: program.clone() }),
        serve("afpa-copy", "AFPA in user mode, all objects pinned: sent with a copy", COPY),
        serve("afpa-sendfile", "AFPA in user mode, none pinned: sent without a copy", SENDFILE),
    ]
}

const READINESS: &[&str] = &["--fast-path", "off", "--io", "readiness"];
const COMPLETION: &[&str] = &["--fast-path", "off", "--io", "completion"];
const COPY: &[&str] = &["--fast-path", "off", "--pin-threshold", "64MiB", "--pinned-limit", "1GiB"];
const SENDFILE: &[&str] = &["--fast-path", "off", "--pin-threshold", "0B"];

/// How long `afpa attach` may take to ask nginx for all its files.
const SETTLE_PATIENCE: Duration = Duration::from_secs(120);
/// The extensions of the files that `afpa attach` asks nginx for: those of all workloads.
const EXTENSIONS: &str = "html,htm,css,js,txt,png,gif,jpg,bin,dat,svg,webp,woff2,json";

struct Serve {
    name: &'static str,
    about: &'static str,
    arguments: &'static [&'static str],
    program: PathBuf,
}

impl Server for Serve {
    fn name(&self) -> &str {
        self.name
    }

    fn about(&self) -> &str {
        self.about
    }

    fn lacks(&self) -> Option<String> {
        lacks(&self.program)
    }

    fn version(&self) -> String {
        installed::version(&self.program, "--version")
    }

    fn start<'a>(&self, setup: &ServerSetup<'a>) -> Result<Running<'a>> {
        let mut launch = Launch::new(&self.program)
            .arg("serve")
            .arg(setup.root)
            .args(["--listen", &setup.address.to_string(), "--workers", "1"])
            .arg("--control")
            .arg(setup.folder.join("control.sock"))
            .args(self.arguments);
        if template::is_root() {
            launch = launch.args(["--user", "root"]); // as the others
        }
        Running::nothing(setup).and(setup, launch, setup.address)
    }
}

/// AFPA with a file of settings.
struct Configured {
    name: &'static str,
    about: &'static str,
    file: &'static str,
    text: &'static str,
    program: PathBuf,
}

impl Server for Configured {
    fn name(&self) -> &str {
        self.name
    }

    fn about(&self) -> &str {
        self.about
    }

    fn lacks(&self) -> Option<String> {
        lacks(&self.program)
    }

    fn version(&self) -> String {
        installed::version(&self.program, "--version")
    }

    fn start<'a>(&self, setup: &ServerSetup<'a>) -> Result<Running<'a>> {
        let file = template::write(setup, self.file, self.text)?;
        let mut launch = Launch::new(&self.program).args(["serve", "--config"]).arg(&file);
        if template::is_root() {
            launch = launch.args(["--user", "root"]); // as the others
        }
        Running::nothing(setup).with_configuration(file).and(setup, launch, setup.address)
    }
}

/// nginx as it is measured alone, with `afpa attach` beside it.
struct Attached {
    program: PathBuf,
}

impl Server for Attached {
    fn name(&self) -> &str {
        "afpa-attach"
    }

    fn about(&self) -> &str {
        "nginx, with small objects answered by AFPA in softirq"
    }

    fn lacks(&self) -> Option<String> {
        lacks(&self.program).or_else(|| NGINX.lacks())
    }

    fn version(&self) -> String {
        format!("{}, {}", installed::version(&self.program, "--version"), NGINX.version())
    }

    fn start<'a>(&self, setup: &ServerSetup<'a>) -> Result<Running<'a>> {
        let folder = setup.folder.join("run");
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let listen = setup.address.to_string();
        let afpa = || Launch::new(&self.program).env("RUNTIME_DIRECTORY", &folder);
        let attach = afpa().args(["attach", "--listen", &listen, "--root"]).arg(setup.root).args([
            "--server-timeout",
            "300",
            "--ext",
            EXTENSIONS,
            "--user",
            ATTACH_USER,
        ]);
        // The server ends next, so `detach` need not wait for its connections.
        let detach = afpa().args(["detach", "--listen", &listen, "--wait", "0", "--force"]);
        let socket = attach_socket(setup, &folder)?;
        let running = NGINX.start(setup)?.with_farewell(detach);
        running.and_until(setup, attach, SETTLE_PATIENCE, || has_settled(&socket))
    }
}

/// The reason why AFPA cannot run; `None` if it can.
pub(super) fn lacks(program: &Path) -> Option<String> {
    (!program.is_file()).then(|| format!("{} is not built", program.display()))
}

/// The user that `afpa attach` becomes.
pub(super) const ATTACH_USER: &str = "nobody";

/// `afpa attach` has a folder for its user, and names its socket by namespace and port.
pub(super) fn attach_socket(setup: &ServerSetup<'_>, folder: &Path) -> Result<PathBuf> {
    let namespace = setup.namespace.context("attaching needs a namespace")?;
    let namespace = Path::new("/run/netns").join(namespace.name());
    let inode = fs::metadata(namespace).context("the server's namespace")?.ino();
    Ok(folder.join(ATTACH_USER).join(format!("attach-{inode}-{}.sock", setup.address.port())))
}

/// Whether nothing is being asked for any more.
fn has_settled(socket: &Path) -> bool {
    control::statistics(socket).is_some_and(|statistics| statistics["busy"] == false)
}
