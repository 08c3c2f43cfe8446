//! Reload: builds the next configuration, which may fail, and then takes it into use.

use std::net::SocketAddr;

use afpa_config::{Config, Datagrams, Known, Loaded, Pushed};
use afpa_fleet::{Configure, FleetFolder};
use afpa_server::Address;

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
        if let Err(error) = self.reload_with(options, Pushed::Kept) {
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
                self.load(options, Pushed::These(Some(files)), false).map(|_| ())
            }
            Configure::Take(kept) => {
                let files = kept.as_ref().map(|kept| &kept.files);
                self.reload_with(options, Pushed::These(files)).map(|()| {
                    let folder = FleetFolder::new(&self.config.fleet.state);
                    if let Err(error) = folder.keep_configuration(kept.as_deref()) {
                        tracing::error!(%error, "the next start has another configuration of the fleet than this process: is [fleet] state writable?");
                    }
                })
            }
        };
        outcome.map_err(|error| commands::words(&error).trim_end().to_owned())
    }

    fn reload_with(&mut self, options: &Serve, pushed: Pushed<'_>) -> anyhow::Result<()> {
        self.notifier.reloading();
        let built = self.build(options, pushed);
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
        let mut config = keep_what_stays(loaded.config, &self.config);
        let (new, old) = (&mut config.engine.confine, &self.config.engine.confine);
        keep("[engine] confine", new, old);
        if !self.has_rings {
            keep("[engine] io", &mut config.engine, &self.config.engine);
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
}

/// Some settings take effect only at the start. They keep their value, and the log says so.
fn keep_what_stays(mut new: Config, old: &Config) -> Config {
    keep("workers", &mut new.workers, &old.workers);
    keep("user", &mut new.user, &old.user);
    keep("group", &mut new.group, &old.group);
    keep("[http3] enabled", &mut new.http3.enabled, &old.http3.enabled);
    keep("[http3] key", &mut new.http3.key, &old.http3.key);
    keep("[limits] head", &mut new.limits.head, &old.limits.head);
    keep("[cache] pinned_limit", &mut new.cache.pinned_limit, &old.cache.pinned_limit);
    keep("[shared_cache]", &mut new.shared_cache, &old.shared_cache);
    let (now, before) = (&mut new.fast_path, &old.fast_path);
    keep("[fast_path] memory", &mut now.memory, &before.memory);
    keep("[fast_path] answer_max", &mut now.answer_max, &before.answer_max);
    keep("[fast_path] survive_restart", &mut now.survive_restart, &before.survive_restart);
    keep("[admin] listen", &mut new.admin, &old.admin);
    keep("[control] path", &mut new.control, &old.control);
    keep("[log] level", &mut new.log.level, &old.log.level);
    keep("[log] format", &mut new.log.format, &old.log.format);
    new
}

fn keep<T: PartialEq + Clone>(name: &str, new: &mut T, old: &T) {
    if new != old {
        tracing::warn!("{name} takes effect at the next start");
        *new = old.clone();
    }
}
