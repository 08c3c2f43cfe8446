//! Settings of the fast path, from the configuration.

use afpa_fast_path::{Admission, FastPathSettings, FastPathUse, KernelSite, PinDirOwner};
use afpa_router::Action;

use crate::privileges::Identity;
use afpa_config::{
    AccessTarget, CacheMode, Choice as _, Config, Connections, FastPathMode, Hierarchy, KIB,
    Listen, SiteSettings,
};

/// Connections that the kernel keeps track of, 200 bytes each: those without a socket are in no limit.
const LEAST_FLOWS: usize = 65_536;

/// Where user mode would need a socket for one answer, longer ones still cost the kernel less, but from here on clearly
/// more than nginx without AFPA (`docs/decisions/answer-size.md`). An operator who wants answers of one segment gets no others.
fn last_answer_max(answer_max: usize) -> usize {
    if answer_max <= afpa_fast_path::ANSWER_MAX { answer_max } else { answer_max.max(34 * KIB) }
}

/// The settings of `afpa-fast-path`, from a configuration and its hierarchy.
pub(crate) fn settings(config: &Config, hierarchy: &Hierarchy) -> FastPathSettings {
    let wanted = &config.fast_path;
    let (socketless, admission) = admission(wanted.connections);
    FastPathSettings {
        mode: match wanted.mode {
            FastPathMode::Off => FastPathUse::Off,
            FastPathMode::Auto => FastPathUse::Auto,
            FastPathMode::On => FastPathUse::On,
        },
        objects: wanted.memory / memory_of_an_answer(socketless),
        answer_max: wanted.answer_max,
        last_answer_max: last_answer_max(wanted.answer_max),
        memory: wanted.memory,
        flows: LEAST_FLOWS.max(config.limits.connections),
        bypass_after: config.internals.bypass_after,
        firewall_interval: config.internals.firewall_interval,
        socketless,
        connections: config.limits.connections,
        connections_per_client: u32::try_from(config.limits.connections_per_client)
            .unwrap_or(u32::MAX),
        admission,
        idle: config.timeouts.idle,
        log_every: wanted.log_every,
        self_check: config.internals.self_check,
        access_log: config.log.access != AccessTarget::Off,
        survive_restart: wanted.survive_restart,
        watches_files: config.coherency.watch,
        request_limits: config.limits.of_requests(),
        sites: sites(config, hierarchy),
    }
}

/// Less than half of it is enough for answers of one segment; the rest is for those of several. An object has two where a
/// connection may begin without a socket: one goes on with it, the other one ends it.
fn memory_of_an_answer(socketless: bool) -> usize {
    if socketless { 5 * KIB } else { 8 * KIB }
}

/// Whether connections begin without a socket, and those of which clients.
pub(crate) fn admission(connections: Connections) -> (bool, Admission) {
    match connections {
        Connections::Kernel => (false, Admission::Recent),
        Connections::Known => (true, Admission::Recent),
        Connections::Flood => (true, Admission::Flood),
        Connections::Everyone => (true, Admission::Everyone),
    }
}

/// The owner of the pin folder, from which the next process takes over: the user that this process becomes.
pub(crate) fn pin_dir_owner(identity: &Identity) -> PinDirOwner {
    PinDirOwner { user: identity.uid.as_raw(), group: identity.gid.as_raw() }
}

fn sites(config: &Config, hierarchy: &Hierarchy) -> Vec<KernelSite> {
    let sites = config.sites.iter().zip(&hierarchy.table.sites);
    let sites = sites.map(|(site, routed)| KernelSite {
        caches: caches(routed),
        caches_answers: caches_answers(site, routed),
        name: routed.name.clone(),
        addresses: site.listen.iter().filter_map(tcp_address).collect(),
        hosts: site.hosts.clone(),
        proxy_protocol: !site.proxy_from.is_empty(),
        forwarded_from: site.forwarded_from.clone(),
    });
    sites.collect()
}

fn caches(site: &afpa_router::SiteEntry) -> bool {
    let mut contents = site.paths.iter().flat_map(|path| &path.contents);
    contents.any(|content| matches!(content.action, Action::Cached { .. }))
}

fn caches_answers(site: &SiteSettings, routed: &afpa_router::SiteEntry) -> bool {
    let paths = routed.paths.iter().enumerate();
    let mut contents = paths.flat_map(|(path, entry)| {
        entry.contents.iter().enumerate().map(move |(number, content)| (path, number, content))
    });
    let kept = contents.any(|(path, number, content)| {
        matches!(content.action, Action::Distributed { .. })
            && site.cache_mode(path, number) != CacheMode::Off
    });
    kept && site.cache.in_kernel
}

fn tcp_address(listen: &Listen) -> Option<std::net::SocketAddr> {
    match listen {
        Listen::Tcp(address) => Some(*address),
        Listen::Unix(_) => None,
    }
}

/// The choice of `--connections`.
///
/// # Errors
/// When there is no such choice.
pub(crate) fn connections(text: &str) -> Result<Connections, String> {
    let found = Connections::ALL.iter().find(|known| known.word() == text);
    found.copied().ok_or_else(|| "write kernel, known, flood or everyone".to_owned())
}

#[cfg(test)]
mod tests {
    use afpa_fast_path::Eligibility;

    use super::*;
    use afpa_config::{Machine, Overrides, Source, parse_text};

    #[test]
    fn sites_are_told_with_what_decides_whether_the_kernel_answers() {
        let text = r#"
            [[site]]
            listen = ["10.0.0.1:80", "unix:/run/x"]
            hosts = ["a.org"]
            root = "/a"
            [[site]]
            listen = ["10.0.0.1:80"]
            hosts = ["b.org"]
            to = "127.0.0.1:3000"
            cache = { mode = "off" }
            [[site]]
            listen = ["10.0.0.1:80"]
            root = "/any"
            to = "127.0.0.1:3000"
            [[site]]
            listen = ["unix:/run/y"]
            root = "/c"
            [[site]]
            listen = ["[::]:90"]
            root = "/c"
            proxy_from = ["10.0.0.0/8"]
            [[site]]
            listen = ["10.0.0.1:80"]
            hosts = ["d.org"]
            to = "127.0.0.1:3000"
            [[site]]
            listen = ["10.0.0.1:80"]
            hosts = ["e.org"]
            to = "127.0.0.1:3000"
            cache = { in_kernel = false }
        "#;
        let source = Source::new("f", text);
        let loaded = parse_text(source, &Overrides::default(), &Machine::probe()).unwrap();
        let sites = settings(&loaded.config, &loaded.routes.hierarchy).sites;
        let said: Vec<String> = Eligibility::of(&sites).iter().map(ToString::to_string).collect();
        let expected = [
            "yes",
            "no: nothing of it is cached",
            "yes",
            "no: it listens on no TCP address for plain HTTP",
            "no: connections begin with the PROXY protocol",
            "yes",
            "no: nothing of it is cached",
        ];
        assert_eq!(said, expected);
        assert_eq!((&*sites[0].name, sites[0].addresses.len()), ("a.org", 1));
    }
    #[test]
    fn sizes_follow_from_memory_and_limits_and_connections_are_one_choice() {
        let read = |lines: &str| {
            let source = Source::new("f", format!("{lines}[[site]]\nroot = \"/a\"\n"));
            let loaded = parse_text(source, &Overrides::default(), &Machine::probe()).unwrap();
            settings(&loaded.config, &loaded.routes.hierarchy)
        };
        let sizes = |of: FastPathSettings| (of.objects, of.last_answer_max, of.flows);
        assert_eq!(sizes(read("")), (13_107, 34 * KIB, 65_536));
        let kernel = read("[fast_path]\nconnections = \"kernel\"\n");
        assert_eq!(sizes(kernel), (8192, 34 * KIB, 65_536));
        let more = "[fast_path]\nmemory = \"256MiB\"\nanswer_max = \"68KiB\"\n[limits]\nconnections = 100000\n";
        assert_eq!(sizes(read(more)), (52_428, 68 * KIB, 100_000));
        let one = read("[fast_path]\nanswer_max = \"1460B\"\n");
        assert_eq!(
            one.last_answer_max,
            afpa_fast_path::ANSWER_MAX,
            "one segment means one segment"
        );
        for (word, socketless, admission) in [
            ("kernel", false, Admission::Recent),
            ("known", true, Admission::Recent),
            ("flood", true, Admission::Flood),
            ("everyone", true, Admission::Everyone),
        ] {
            let read = read(&format!("[fast_path]\nconnections = \"{word}\"\n"));
            assert_eq!((read.socketless, read.admission), (socketless, admission), "{word}");
        }
    }
}
