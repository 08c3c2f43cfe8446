//! Proxies that answer small files from their cache and distribute what is below `/app/` to three servers:
//! AFPA, HAProxy and nginx, each with one core, one thread, and keep-alive on both sides.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;

use super::backends::BACKENDS;
use super::installed::Origin;
use super::running::Launch;
use super::{Programs, Running, Server, ServerSetup, files, installed, template};

/// Names of all of them. Those of AFPA with a second word take part only where they are asked for by name: always with epoll,
/// always with io_uring, and with its fast path, which answers cached files in the kernel and needs an interface to
/// answer on.
pub(crate) const BALANCERS: [&str; 8] = [
    "afpa",
    "haproxy",
    "nginx",
    "haproxy-debian13",
    "nginx-debian13",
    "afpa-readiness",
    "afpa-completion",
    "afpa-kernel",
];

/// A proxy that can be measured, before the servers that `backends` names.
pub(crate) struct Balancer {
    kind: Kind,
    afpa: PathBuf,
    backends: [SocketAddr; BACKENDS],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `io`: how it waits. `fast_path`: whether the kernel answers, too.
    Afpa {
        io: &'static str,
        fast_path: bool,
    },
    HaProxy(Origin),
    Nginx(Origin),
}

impl Balancer {
    /// The proxy of that name; `None` when there is none.
    pub(crate) fn named(
        name: &str,
        programs: &Programs,
        backends: [SocketAddr; BACKENDS],
    ) -> Option<Self> {
        let (_, origin) = Origin::of(name);
        let kind = match name {
            "afpa" => Kind::Afpa { io: "auto", fast_path: false },
            "afpa-readiness" => Kind::Afpa { io: "readiness", fast_path: false },
            "afpa-completion" => Kind::Afpa { io: "completion", fast_path: false },
            "afpa-kernel" => Kind::Afpa { io: "auto", fast_path: true },
            "haproxy" | "haproxy-debian13" => Kind::HaProxy(origin),
            "nginx" | "nginx-debian13" => Kind::Nginx(origin),
            _ => return None,
        };
        Some(Self { kind, afpa: programs.afpa.clone(), backends })
    }

    /// The configuration: its name, and the template.
    fn template(&self) -> (&'static str, &'static str) {
        match self.kind {
            Kind::Afpa { .. } => ("afpa.toml", include_str!("../../../servers/balancer-afpa.toml")),
            Kind::HaProxy(_) => {
                ("haproxy.cfg", include_str!("../../../servers/balancer-haproxy.cfg"))
            }
            Kind::Nginx(_) => ("nginx.conf", include_str!("../../../servers/balancer-nginx.conf")),
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
            Kind::HaProxy(Origin::Here) => "haproxy",
            Kind::HaProxy(Origin::Debian13) => "haproxy-debian13",
            Kind::Nginx(Origin::Here) => "nginx",
            Kind::Nginx(Origin::Debian13) => "nginx-debian13",
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
            Kind::HaProxy(_) => "HAProxy before three servers, small files in its cache",
            Kind::Nginx(_) => "nginx before three servers, small files by open_file_cache",
        }
    }

    fn lacks(&self) -> Option<String> {
        match self.kind {
            Kind::Afpa { .. } => super::afpa::lacks(&self.afpa),
            Kind::HaProxy(origin) => origin.lacks("haproxy", "haproxy"),
            Kind::Nginx(origin) => origin.lacks("nginx", "nginx"),
        }
    }

    fn version(&self) -> String {
        match self.kind {
            Kind::Afpa { .. } => installed::version(&self.afpa, "--version"),
            Kind::HaProxy(origin) => origin.version("haproxy", "-v"),
            Kind::Nginx(origin) => origin.version("nginx", "-v"),
        }
    }

    fn start<'a>(&self, setup: &ServerSetup<'a>) -> Result<Running<'a>> {
        let (launch, file) = self.prepare(setup)?;
        Running::nothing(setup).with_configuration(file).and(setup, launch, setup.address)
    }
}

impl Balancer {
    /// Its command, and its configuration, which is written.
    pub(super) fn prepare(&self, setup: &ServerSetup<'_>) -> Result<(Launch, PathBuf)> {
        let (name, text) = self.template();
        let text = template::with_backends(text, &self.backends);
        let text = match self.kind {
            Kind::Nginx(origin) => origin.configuration(&text),
            Kind::Afpa { .. } | Kind::HaProxy(_) => text,
        };
        let file = template::write(setup, name, &text)?;
        let launch = match self.kind {
            Kind::Afpa { io, fast_path } => Launch::new(&self.afpa)
                .args(["serve", "--config"])
                .arg(&file)
                .arg("--control")
                .arg(setup.folder.join("control.sock"))
                .args(["--io", io, "--fast-path", if fast_path { "on" } else { "off" }]),
            Kind::HaProxy(origin) => Launch::of(origin, "haproxy")?.args(["-db", "-f"]).arg(&file),
            Kind::Nginx(origin) => files::nginx(Launch::of(origin, "nginx")?, setup.folder, &file),
        };
        Ok((launch, file))
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
