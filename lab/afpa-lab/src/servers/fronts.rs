//! Servers of files that pass what is below `/app/` on to an application: three of the lab's own `sped`, on the same core. A
//! request of the application costs both.

use anyhow::{Context, Result};

use super::balancers::Balancer;
use super::{Programs, Running, Server, ServerSetup, proxies, reference};

/// Names of all of them, in the order of tables.
pub(crate) const FRONTS: &[&str] =
    &["afpa-kernel-front", "afpa-front", "nginx-front", "nginx-debian13-front"];
/// How their names end, behind that of the [`Balancer`].
const FRONT: &str = "-front";

/// AFPA with its fast path and without, nginx of this Debian and of Debian 13.
pub(super) fn fronts(programs: &Programs) -> Vec<Box<dyn Server>> {
    let front = |name: &&'static str| {
        let front = Front { name, programs: programs.clone() };
        Box::new(front) as Box<dyn Server>
    };
    FRONTS.iter().map(front).collect()
}

/// Whether that server has an application behind it, and is of no use in a comparison of servers of files.
pub(crate) fn is_front(name: &str) -> bool {
    name.ends_with(FRONT)
}

struct Front {
    name: &'static str,
    programs: Programs,
}

impl Front {
    /// `None` for a name that no balancer has.
    fn balancer(&self, setup: Option<&ServerSetup<'_>>) -> Option<Balancer> {
        let nowhere = [([127, 0, 0, 1], 1).into(); super::BACKENDS];
        let application = setup.map_or(nowhere, proxies::servers);
        Balancer::named(self.name.strip_suffix(FRONT)?, &self.programs, application)
    }
}

impl Server for Front {
    fn name(&self) -> &str {
        self.name
    }

    fn about(&self) -> &str {
        match self.name {
            "afpa-kernel-front" => {
                "AFPA, files in softirq, before an application of three servers on its core"
            }
            "afpa-front" => "AFPA in user mode before an application of three servers on its core",
            _ => "nginx with its files before an application of three servers on its core",
        }
    }

    fn lacks(&self) -> Option<String> {
        let balancer = self.balancer(None)?.lacks();
        balancer.or_else(|| reference::lacks(&self.programs))
    }

    fn version(&self) -> String {
        self.balancer(None).map(|balancer| balancer.version()).unwrap_or_default()
    }

    fn start<'a>(&self, setup: &ServerSetup<'a>) -> Result<Running<'a>> {
        let balancer = self.balancer(Some(setup)).context("no such server")?;
        let mut running = Running::nothing(setup);
        for server in proxies::servers(setup) {
            let launch = reference::launch(&self.programs, "sped", server, setup);
            running = running.and(setup, launch, server)?;
        }
        let (launch, file) = balancer.prepare(setup)?;
        running.with_configuration(file).and(setup, launch, setup.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_a_balancer_before_an_application() {
        let programs = Programs { afpa: "/nowhere/afpa".into(), lab: "/nowhere/afpa-lab".into() };
        for name in FRONTS {
            let front = Front { name, programs: programs.clone() };
            assert!(front.balancer(None).is_some() && is_front(name), "{name}");
        }
        assert!(!is_front("afpa") && !is_front("nginx-proxy"));
    }
}
