//! Reload: builds the next configuration, which may fail, and then takes it into use.

use std::net::SocketAddr;

use afpa_config::{Config, Datagrams, Known, Loaded, Pushed};
use afpa_fleet::{Configure, Files, FleetFolder, KeptFiles, Revision};
use afpa_server::Address;
use anyhow::{Context as _, ensure};

use super::Server;
use super::build::{Bound, Next, Opened};
use super::dns::Moment;
use super::listeners::Place;
use super::start::needs;
use crate::cli::Serve;
use crate::commands;
use crate::privileges;
use crate::upgrade::Inherited;

impl Server {
    /// Reads the configuration again. If it has an error, nothing changes.
    pub(super) fn reload(&mut self, options: &Serve) {
        if let Err(error) = self.reload_with(options, Pushed::Kept, |_| Ok(())) {
            afpa_say::error(&commands::words(&error));
            tracing::error!(
                "the reload failed, the running configuration stays: mend the error above, and reload again"
            );
        }
    }

    /// Checks a configuration of the fleet, or takes it into use as at a reload. The error is for people.
    pub(super) fn configure(&mut self, options: &Serve, what: &Configure) -> Result<(), String> {
        let outcome = match what {
            Configure::Check(files) => {
                let revision = Revision::default();
                let files = KeptFiles { revision, files: Files::clone(files) };
                let loaded = self.load(options, Pushed::These(Some(&files)), false);
                loaded.and_then(|mut loaded| self.only_what_a_reload_takes(&mut loaded.config))
            }
            Configure::Take(kept) => {
                let files = kept.as_deref();
                // The next start has it, or this process does not take it.
                self.reload_with(options, Pushed::These(files), |next| {
                    let folder = FleetFolder::new(&next.fleet.state);
                    let folder_said = next.fleet.state.display();
                    let kept = folder.keep_configuration(kept.as_deref());
                    kept.with_context(|| format!("it cannot be kept in {folder_said}"))
                })
            }
        };
        outcome.map_err(|error| commands::words(&error).trim_end().to_owned())
    }

    /// `before`: the last thing that can fail, when all else is ready.
    fn reload_with(
        &mut self,
        options: &Serve,
        pushed: Pushed<'_>,
        before: impl FnOnce(&Config) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        self.notifier.reloading();
        let built = self.build(options, pushed);
        let built = built.and_then(|next| before(&next.config).map(|()| next));
        let reloaded = built.map(|next| {
            for failure in self.adopt(next, Moment::Reload) {
                tracing::error!("not everything is as configured: {failure:#}");
            }
            tracing::info!("reloaded");
        });
        self.notifier.ready();
        reloaded
    }

    fn load(&self, options: &Serve, pushed: Pushed<'_>, tells: bool) -> anyhow::Result<Loaded> {
        let known = Known {
            read: &|files| self.tls.read(files),
            listeners: self.numbers.clone(),
            datagrams: &|address| self.datagrams_at(address),
            before: Some(&*self.config),
            runs: true,
            pushed,
            ..Known::default()
        };
        // A check says nothing in the log: the reload does.
        if tells { super::load(options, known) } else { Ok(options.configuration_by(known)?) }
    }

    fn build(&mut self, options: &Serve, pushed: Pushed<'_>) -> anyhow::Result<Next> {
        let loaded = self.load(options, pushed, true)?;
        let mut config = loaded.config;
        let later = self.keep_what_stays(&mut config);
        if matches!(pushed, Pushed::These(Some(_))) {
            only_at_a_start(&later)?;
        }
        for name in later {
            tracing::warn!("{name} takes effect at the next start");
        }
        let listeners: Vec<Address> = self.engine.addresses().cloned().collect();
        let bound = Bound { listeners, dns: self.dns.addresses(), moment: Moment::Reload };
        // There may be more document roots.
        privileges::raise_limits(needs(&config));
        let opening = (&mut self.handles, &mut self.tls);
        let mut left = Inherited::of_udp(self.engine.left_datagrams());
        let place = Place { inherited: &mut left, owner: None };
        let opened = Opened::open(Loaded { config, ..loaded }, opening, &bound, place)?;
        let (spans, before) = (self.observed.spans.load(), self.observed.serving.load());
        let running = Some((&*self.config, &**spans));
        Next::build(opened, &self.frame(), running, &before.global)
    }

    /// For HTTP/3 at an address that gets TLS, and was bound without, a process has to bind it anew.
    fn datagrams_at(&self, address: SocketAddr) -> Datagrams {
        if self.engine.takes_datagrams(address) {
            Datagrams::Received
        } else if self.engine.addresses().any(|bound| *bound == Address::Tcp(address)) {
            Datagrams::Unbound
        } else {
            Datagrams::Refused
        }
    }

    fn only_what_a_reload_takes(&self, new: &mut Config) -> anyhow::Result<()> {
        only_at_a_start(&self.keep_what_stays(new))
    }

    /// Some settings take effect only at the start. They keep their value; their names.
    fn keep_what_stays(&self, new: &mut Config) -> Vec<&'static str> {
        let old = &*self.config;
        let mut stays = Stays::default();
        stays.keep("workers", &mut new.workers, &old.workers);
        stays.keep("user", &mut new.user, &old.user);
        stays.keep("group", &mut new.group, &old.group);
        stays.keep("[http3] enabled", &mut new.http3.enabled, &old.http3.enabled);
        stays.keep("[http3] key", &mut new.http3.key, &old.http3.key);
        stays.keep("[limits] head", &mut new.limits.head, &old.limits.head);
        let (now, before) = (&mut new.cache, &old.cache);
        stays.keep("[cache] pinned_limit", &mut now.pinned_limit, &before.pinned_limit);
        stays.keep("[shared_cache]", &mut new.shared_cache, &old.shared_cache);
        let (now, before) = (&mut new.fast_path, &old.fast_path);
        stays.keep("[fast_path] memory", &mut now.memory, &before.memory);
        stays.keep("[fast_path] answer_max", &mut now.answer_max, &before.answer_max);
        stays.keep(
            "[fast_path] survive_restart",
            &mut now.survive_restart,
            &before.survive_restart,
        );
        stays.keep("[admin] listen", &mut new.admin, &old.admin);
        stays.keep("[control] path", &mut new.control, &old.control);
        stays.keep("[log] level", &mut new.log.level, &old.log.level);
        stays.keep("[log] format", &mut new.log.format, &old.log.format);
        stays.keep("[engine] confine", &mut new.engine.confine, &old.engine.confine);
        if !self.has_rings {
            stays.keep("[engine] io", &mut new.engine, &old.engine);
        }
        stays.0
    }
}

/// A roll-out would not see the effect of such settings in a pushed configuration, and each machine would at its next start.
fn only_at_a_start(names: &[&str]) -> anyhow::Result<()> {
    let said = names.join(", ");
    ensure!(
        names.is_empty(),
        "{said} takes effect at a start: write it in each machine's own file, and start that machine again"
    );
    Ok(())
}

/// Names of settings that keep their value.
#[derive(Default)]
struct Stays(Vec<&'static str>);

impl Stays {
    fn keep<T: PartialEq + Clone>(&mut self, name: &'static str, new: &mut T, old: &T) {
        if new != old {
            self.0.push(name);
            *new = old.clone();
        }
    }
}
