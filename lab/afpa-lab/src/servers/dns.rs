//! Name servers: NSD, Knot and BIND of Debian alone and with `afpa attach --dns` beside them, Knot by AF_XDP, and the zones of
//! `afpa serve`. All have the same two zones, which lie in the document root.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use afpa_netlab::Bed;
use anyhow::{Context, Result, bail};

use super::running::Launch;
use super::{Programs, Running, Server, ServerSetup, afpa, control, installed, template};

/// Their names, in the order of tables. Each that has AFPA beside it comes before the one that has not.
pub const NAME_SERVERS: [&str; 8] =
    ["afpa-nsd", "nsd", "afpa-knot", "knot", "knot-xdp", "afpa-bind", "bind", "afpa-zones"];

/// Until AFPA is attached.
const PATIENCE: Duration = Duration::from_secs(30);

/// A name server.
#[derive(Debug)]
pub struct NameServer {
    name: &'static str,
    kind: Kind,
    /// AFPA answers before it.
    attached: bool,
    afpa: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Nsd,
    Knot { xdp: bool },
    Bind,
    Afpa,
}

impl NameServer {
    /// The server of that name.
    pub fn named(name: &str, programs: &Programs) -> Option<Self> {
        let name = NAME_SERVERS.into_iter().find(|known| *known == name)?;
        let kind = match name {
            "afpa-nsd" | "nsd" => Kind::Nsd,
            "afpa-bind" | "bind" => Kind::Bind,
            "afpa-zones" => Kind::Afpa,
            _ => Kind::Knot { xdp: name == "knot-xdp" },
        };
        let attached = name.starts_with("afpa-") && kind != Kind::Afpa;
        Some(Self { name, kind, attached, afpa: programs.afpa.clone() })
    }

    /// Whether AFPA answers before it, from the kernel.
    pub fn is_attached(&self) -> bool {
        self.attached
    }

    /// The control socket of the AFPA that is attached, once it is there.
    pub(crate) fn socket(folder: &Path) -> Option<PathBuf> {
        let run = folder.join("run");
        let below = fs::read_dir(&run).ok()?.flatten().map(|entry| entry.path());
        let folders = below.chain([run.clone()]).filter_map(|at| fs::read_dir(at).ok());
        let mut paths = folders.flatten().flatten().map(|entry| entry.path());
        paths.find(|path| path.extension().is_some_and(|name| name == "sock"))
    }

    /// Its program and the package of Debian; `None`: it is ours.
    fn program(&self) -> Option<(&'static str, &'static str)> {
        match self.kind {
            Kind::Nsd => Some(("nsd", "nsd")),
            Kind::Knot { .. } => Some(("knotd", "knot")),
            Kind::Bind => Some(("named", "bind9")),
            Kind::Afpa => None,
        }
    }

    fn launch(&self, setup: &ServerSetup<'_>) -> Result<(Launch, PathBuf)> {
        let program = match self.program() {
            None => self.afpa.clone(),
            Some((program, _)) => installed::find(program).context("it is not installed")?,
        };
        let launch = Launch::new(program);
        let ready = |name, text: &str| template::write(setup, name, text);
        Ok(match self.kind {
            Kind::Nsd => {
                let file = ready("nsd.conf", include_str!("../../../servers/dns-nsd.conf"))?;
                (launch.args(["-d", "-c"]).arg(&file), file)
            }
            Kind::Knot { xdp } => {
                let mut text = include_str!("../../../servers/dns-knot.conf").to_owned();
                if xdp {
                    text += &format!("xdp:\n    listen: {}@@port@\n", Bed::DEVICE);
                }
                fs::create_dir_all(setup.folder.join("db"))?;
                let file = ready("knot.conf", &text)?;
                (launch.arg("-c").arg(&file), file)
            }
            Kind::Bind => {
                let file = ready("named.conf", include_str!("../../../servers/dns-bind.conf"))?;
                (launch.args(["-f", "-n", "1", "-c"]).arg(&file), file)
            }
            Kind::Afpa => {
                let file = ready("afpa.toml", include_str!("../../../servers/dns-afpa.toml"))?;
                let launch = launch.args(["serve", "--config"]).arg(&file);
                (launch.args(["--user", "root"]), file)
            }
        })
    }
}

impl Server for NameServer {
    fn name(&self) -> &str {
        self.name
    }

    fn about(&self) -> &str {
        "a name server with two zones"
    }

    fn lacks(&self) -> Option<String> {
        let theirs =
            self.program().and_then(|(program, package)| installed::lacks(program, package));
        let ours = self.attached || self.kind == Kind::Afpa;
        theirs.or_else(|| afpa::lacks(&self.afpa).filter(|_| ours))
    }

    fn version(&self) -> String {
        let theirs = self.program().map(|(program, _)| {
            let argument = match self.kind {
                Kind::Nsd => "-v",
                _ => "-V",
            };
            installed::find(program)
                .map_or_else(String::new, |at| installed::version(&at, argument))
        });
        let ours = || installed::version(&self.afpa, "--version");
        match (self.attached, theirs) {
            (true, Some(theirs)) => format!("{}, {theirs}", ours()),
            (_, theirs) => theirs.unwrap_or_else(ours),
        }
    }

    fn start<'a>(&self, setup: &ServerSetup<'a>) -> Result<Running<'a>> {
        if let Some(why) = self.lacks() {
            bail!("{why}");
        }
        let (launch, file) = self.launch(setup)?;
        let running = Running::nothing(setup).with_configuration(file);
        let running = running.and(setup, launch, setup.address)?;
        if !self.attached {
            return Ok(running);
        }
        let run = setup.folder.join("run");
        fs::create_dir_all(&run).with_context(|| format!("cannot make {}", run.display()))?;
        let attach =
            Launch::new(&self.afpa).env("RUNTIME_DIRECTORY", &run).args(["attach", "--dns"]);
        let attach = attach.args(["--listen", &setup.address.to_string()]);
        // One client asks as fast as it can, and many names are learnt in little time.
        let attach = attach.args(["--rate", "0", "--ask-rate", "20000", "--settle", "1"]);
        running.and_until(setup, attach, PATIENCE, || {
            Self::socket(setup.folder).is_some_and(|at| control::statistics(&at).is_some())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_name_and_says_what_it_lacks() {
        let programs = Programs { afpa: "/nowhere/afpa".into(), lab: "/nowhere/lab".into() };
        for name in NAME_SERVERS {
            let server = NameServer::named(name, &programs).unwrap();
            assert_eq!(server.name(), name);
            assert_eq!(server.is_attached(), name.starts_with("afpa-") && name != "afpa-zones");
            if name.starts_with("afpa-") {
                assert!(server.lacks().is_some(), "{name}");
            }
        }
        assert!(NameServer::named("unbound", &programs).is_none());
    }
}
