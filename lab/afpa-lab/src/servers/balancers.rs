//! Proxies that answer small files from their cache and distribute what is below `/app/` to three servers:
//! AFPA, HAProxy and nginx, each with one core, one thread, and keep-alive on both sides.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::backends::BACKENDS;
use super::running::Launch;
use super::{Programs, Running, Server, ServerSetup, files, installed, template};

/// Names of all of them. The last three take part only where they are asked for by name: AFPA always with epoll, AFPA
/// always with io_uring, and AFPA with its fast path, which answers cached files in the kernel and needs an interface to
/// answer on.
pub(crate) const BALANCERS: [&str; 6] =
    ["afpa", "haproxy", "nginx", "afpa-readiness", "afpa-completion", "afpa-kernel"];

/// A proxy that can be measured, before the servers that `backends` names.
pub(crate) struct Balancer {
    kind: Kind,
    program: Option<PathBuf>,
    backends: [SocketAddr; BACKENDS],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `io`: how it waits. `fast_path`: whether the kernel answers, too.
    Afpa {
        io: &'static str,
        fast_path: bool,
    },
    HaProxy,
    Nginx,
}

impl Balancer {
    /// The proxy of that name; `None` when there is none.
    pub(crate) fn named(
        name: &str,
        programs: &Programs,
        backends: [SocketAddr; BACKENDS],
    ) -> Option<Self> {
        let kind = match name {
            "afpa" => Kind::Afpa { io: "auto", fast_path: false },
            "afpa-readiness" => Kind::Afpa { io: "readiness", fast_path: false },
            "afpa-completion" => Kind::Afpa { io: "completion", fast_path: false },
            "afpa-kernel" => Kind::Afpa { io: "auto", fast_path: true },
            "haproxy" => Kind::HaProxy,
            "nginx" => Kind::Nginx,
            _ => return None,
        };
        let program = match kind {
            Kind::Afpa { .. } => Some(programs.afpa.clone()).filter(|program| program.is_file()),
            Kind::HaProxy => installed::find("haproxy"),
            Kind::Nginx => installed::find("nginx"),
        };
        Some(Self { kind, program, backends })
    }

    /// The configuration: its name, and the template.
    fn template(&self) -> (&'static str, &'static str) {
        match self.kind {
            Kind::Afpa { .. } => ("afpa.toml", include_str!("../../../servers/balancer-afpa.toml")),
            Kind::HaProxy => ("haproxy.cfg", include_str!("../../../servers/balancer-haproxy.cfg")),
            Kind::Nginx => ("nginx.conf", include_str!("../../../servers/balancer-nginx.conf")),
        }
    }
}

impl Server for Balancer {
    fn name(&self) -> &str {
        match self.kind {
            Kind::Afpa { fast_path: true, .. } => "afpa-kernel",
            Kind::Afpa { io: "readiness", .. } => "afpa-readiness",
            Kind::Afpa { io: "completion", .. } => "afpa-completion",
            Kind::Afpa { .. } => "afpa",
            Kind::HaProxy => "haproxy",
            Kind::Nginx => "nginx",
        }
    }

    fn about(&self) -> &str {
        match self.kind {
            Kind::Afpa { fast_path: true, .. } => {
                "AFPA before three servers, cached files answered in softirq"
            }
            Kind::Afpa { io: "readiness", .. } => "AFPA before three servers, waiting by epoll",
            Kind::Afpa { io: "completion", .. } => "AFPA before three servers, waiting by io_uring",
            Kind::Afpa { .. } => "AFPA in user mode, before three servers",
            Kind::HaProxy => "HAProxy before three servers, small files in its cache",
            Kind::Nginx => "nginx before three servers, small files by open_file_cache",
        }
    }

    fn lacks(&self) -> Option<String> {
        self.program.is_none().then(|| match self.kind {
            Kind::Afpa { .. } => "afpa is not built".to_owned(),
            Kind::HaProxy => "haproxy is not installed (Debian package haproxy)".to_owned(),
            Kind::Nginx => "nginx is not installed (Debian package nginx)".to_owned(),
        })
    }

    fn version(&self) -> String {
        let argument = match self.kind {
            Kind::Afpa { .. } => "--version",
            Kind::HaProxy | Kind::Nginx => "-v",
        };
        let program = self.program.as_deref();
        program.map_or_else(String::new, |program| installed::version(program, argument))
    }

    fn start<'a>(&self, setup: &ServerSetup<'a>) -> Result<Running<'a>> {
        let program = self.program.as_ref().with_context(|| self.lacks().unwrap_or_default())?;
        let (name, text) = self.template();
        let file = template::write(setup, name, &template::with_backends(text, &self.backends))?;
        let launch = Launch::new(program);
        let launch = match self.kind {
            Kind::Afpa { io, fast_path } => launch
                .args(["serve", "--config"])
                .arg(&file)
                .arg("--control")
                .arg(setup.folder.join("control.sock"))
                .args(["--io", io, "--fast-path", if fast_path { "on" } else { "off" }]),
            Kind::HaProxy => launch.args(["-db", "-f"]).arg(&file),
            Kind::Nginx => files::nginx(launch, setup.folder, &file),
        };
        Running::nothing(setup).with_configuration(file).and(setup, launch, setup.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_proxy_s() {
        let programs = Programs { afpa: "/nowhere/afpa".into(), lab: "/nowhere/afpa-lab".into() };
        let backends = [1, 2, 3].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        for name in BALANCERS {
            let found = Balancer::named(name, &programs, backends).expect(name);
            assert_eq!(found.name(), name);
            assert!(!name.starts_with("afpa") || found.lacks().is_some());
            let filled = template::with_backends(found.template().1, &backends);
            assert!(filled.contains("127.0.0.1:3") && !filled.contains("@server"), "{name}");
        }
        assert!(Balancer::named("varnish", &programs, backends).is_none());
    }
}
