//! The servers that can be compared: AFPA in its modes, peers of today, the papers' architectures.
//!
//! Each is started in the server's namespace, pinned to the server's core, with a configuration that
//! was filled in for this run and stays with the results. It is ready when [`Server::start`] returns,
//! and gone, with everything it started, when its [`Running`] is stopped or dropped.

mod afpa;
mod backends;
mod balancers;
mod caches;
pub(crate) mod control;
pub mod dns;
pub(crate) mod fast_path;
mod files;
mod fronts;
pub mod http3;
mod installed;
mod proxies;
mod reference;
mod running;
pub(crate) mod rush;
mod server;
mod template;

pub(crate) use backends::BACKENDS;
pub use backends::Backend;
pub(crate) use balancers::{BALANCERS, Balancer};
pub(crate) use fronts::{FRONTS, is_front};
pub(crate) use proxies::is_proxy;
pub use running::Running;
pub use server::{Programs, Server, ServerSetup};

/// The reason why a program of Debian's cannot run here; `None` if it can.
pub(crate) fn lacks_program(name: &str) -> Option<String> {
    installed::lacks(name, name)
}

/// Every server there is, those that this machine lacks included.
pub fn all(programs: &Programs) -> Vec<Box<dyn Server>> {
    let mut servers = afpa::modes(programs);
    servers.extend(files::peers());
    servers.extend(caches::caches(programs));
    servers.extend(proxies::proxies(programs));
    servers.extend(fronts::fronts(programs));
    servers.extend(reference::contexts(programs));
    servers.extend(reference::architectures(programs));
    servers
}

/// The server of that name, or a variant of an architecture: `thread-pool:pool=6`,
/// `sped:without=lazy-date:without=gather-write`. Options of `afpa-lab serve` follow the name; an
/// option that the command does not know makes the server fail at its start.
pub fn find(name: &str, programs: &Programs) -> Option<Box<dyn Server>> {
    let known = all(programs).into_iter().find(|server| server.name() == name);
    known.or_else(|| reference::variant(name, programs))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn everyone() -> Vec<Box<dyn Server>> {
        all(&Programs { afpa: "/nowhere/afpa".into(), lab: "/nowhere/afpa-lab".into() })
    }

    #[test]
    fn every_server_has_a_name_of_its_own_that_finds_it() {
        let mut names: Vec<String> = everyone().iter().map(|one| one.name().to_owned()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for name in [
            "afpa",
            "afpa-kernel",
            "afpa-socketless",
            "afpa-attach",
            "nginx",
            "varnish",
            "howl",
            "amped",
        ] {
            assert!(names.iter().any(|known| known == name), "{name} is missing");
        }
    }

    #[test]
    fn who_lacks_a_program_says_which() {
        for server in everyone() {
            let name = server.name();
            if name.starts_with("afpa") {
                assert!(server.lacks().is_some_and(|what| what.contains("/nowhere/")), "{name}");
            }
        }
    }

    #[test]
    fn an_architecture_has_variants_and_other_servers_have_none() {
        let programs = Programs { afpa: "afpa".into(), lab: "afpa-lab".into() };
        let found = |name| find(name, &programs).map(|server| server.name().to_owned());
        for name in ["sped", "nginx", "thread-pool:pool=6", "sped:without=lazy-date:close"] {
            assert_eq!(found(name).as_deref(), Some(name));
        }
        for name in ["nginx:pool=6", "sped:", "sped:listen=0.0.0.0:80", "sped:-x", "no-such"] {
            assert_eq!(found(name), None, "{name}");
        }
        let closing = find("sped:close", &programs).expect("a variant");
        assert!(!closing.keeps_connections());
    }

    #[test]
    fn only_howl_closes_each_connection() {
        for server in everyone() {
            assert_eq!(server.keeps_connections(), server.name() != "howl", "{}", server.name());
        }
    }
}
