//! The papers' proxy run: everything is distributed to three back-end servers, and nothing kept. They
//! are the lab's own `sped`, on the same core as the proxy: a request costs that of both.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::{Result, bail};

use super::backends::BACKENDS;
use super::running::Launch;
use super::{Programs, Running, Server, ServerSetup, installed, reference, template};

/// How a proxy's name ends.
const PROXY: &str = "-proxy";

/// AFPA, nginx and HAProxy.
pub(super) fn proxies(programs: &Programs) -> Vec<Box<dyn Server>> {
    let proxy = |kind| Box::new(Proxy { kind, programs: programs.clone() }) as Box<dyn Server>;
    vec![proxy(Kind::Afpa), proxy(Kind::Nginx), proxy(Kind::HaProxy)]
}

/// Whether that server is a proxy, and of no use in a comparison of servers of content.
pub(crate) fn is_proxy(name: &str) -> bool {
    name.ends_with(PROXY)
}

struct Proxy {
    kind: Kind,
    programs: Programs,
}

enum Kind {
    Afpa,
    Nginx,
    HaProxy,
}

impl Server for Proxy {
    fn name(&self) -> &str {
        match self.kind {
            Kind::Afpa => "afpa-proxy",
            Kind::Nginx => "nginx-proxy",
            Kind::HaProxy => "haproxy-proxy",
        }
    }

    fn about(&self) -> &str {
        match self.kind {
            Kind::Afpa => "AFPA in user mode, everything distributed to three servers on its core",
            Kind::Nginx => "nginx as a proxy before three servers on its core",
            Kind::HaProxy => "HAProxy before three servers on its core",
        }
    }

    fn lacks(&self) -> Option<String> {
        let program = match self.kind {
            Kind::Afpa => super::afpa::lacks(&self.programs.afpa),
            Kind::Nginx => installed::lacks("nginx", "nginx"),
            Kind::HaProxy => installed::lacks("haproxy", "haproxy"),
        };
        program.or_else(|| reference::lacks(&self.programs))
    }

    fn version(&self) -> String {
        let of = |name, argument| {
            installed::find(name)
                .map_or_else(String::new, |path| installed::version(&path, argument))
        };
        match self.kind {
            Kind::Afpa => installed::version(&self.programs.afpa, "--version"),
            Kind::Nginx => of("nginx", "-v"),
            Kind::HaProxy => of("haproxy", "-v"),
        }
    }

    fn start<'a>(&self, setup: &ServerSetup<'a>) -> Result<Running<'a>> {
        let mut running = Running::nothing(setup);
        let backends = servers(setup);
        for server in backends {
            let launch = reference::launch(&self.programs, "sped", server, setup);
            running = running.and(setup, launch, server)?;
        }
        let (launch, file) = match self.kind {
            Kind::Afpa => (self.afpa(setup), None),
            Kind::Nginx => {
                let text = include_str!("../../../servers/nginx-proxy.conf");
                let file = template::write(
                    setup,
                    "nginx-proxy.conf",
                    &template::with_backends(text, &backends),
                )?;
                let launch = program("nginx")?.arg("-p").arg(setup.folder).arg("-c").arg(&file);
                (launch.arg("-e").arg(setup.folder.join("errors.txt")), Some(file))
            }
            Kind::HaProxy => {
                let text = include_str!("../../../servers/haproxy-proxy.cfg");
                let file = template::write(
                    setup,
                    "haproxy-proxy.cfg",
                    &template::with_backends(text, &backends),
                )?;
                (program("haproxy")?.arg("-db").arg("-f").arg(&file), Some(file))
            }
        };
        let running = match file {
            Some(file) => running.with_configuration(file),
            None => running,
        };
        running.and(setup, launch, setup.address)
    }
}

impl Proxy {
    fn afpa(&self, setup: &ServerSetup<'_>) -> Launch {
        let to = servers(setup).map(|server| server.to_string()).join(",");
        Launch::new(&self.programs.afpa)
            .args(["proxy", "--to", &to, "--listen", &setup.address.to_string()])
            .args(["--workers", "1", "--fast-path", "off", "--user", "root"])
            .arg("--control")
            .arg(setup.folder.join("control.sock"))
    }
}

/// Where the back-end servers listen: reached from the server's namespace only.
pub(super) fn servers(setup: &ServerSetup<'_>) -> [SocketAddr; BACKENDS] {
    let port = setup.address.port();
    [1, 2, 3].map(|number| (IpAddr::V4(Ipv4Addr::LOCALHOST), port.wrapping_add(number)).into())
}

fn program(name: &str) -> Result<Launch> {
    match installed::find(name) {
        Some(program) => Ok(Launch::new(program)),
        None => bail!("{name} is not installed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_told_by_its_name() {
        let programs = Programs { afpa: "afpa".into(), lab: "afpa-lab".into() };
        assert!(proxies(&programs).iter().all(|proxy| is_proxy(proxy.name())));
        assert!(!is_proxy("haproxy") && !is_proxy("afpa"));
    }
}
