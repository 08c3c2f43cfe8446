//! Reload: everything that can fail is done first; then nothing can, and it takes effect.

use std::sync::Arc;

use afpa_module_http::{Global, Http, Site};
use afpa_server::{Address, BoundListener, Settings};

use super::start::{Sinks, bind, open_root, open_site, start_log, tcp};
use super::{Server, convert};
use crate::access_log::{AccessLog, Sink};
use crate::cli::Serve;
use crate::config::Config;
use crate::fast_path::FastPath;

/// What a reload has made ready.
struct Prepared {
    config: Config,
    site: Arc<Site>,
    /// A new access log, if its settings are others.
    access_log: Option<(AccessLog, Vec<Sink>)>,
    listeners: Vec<BoundListener>,
    gone: Vec<Address>,
}

impl Server {
    /// Reads the configuration again. A bad one changes nothing.
    pub(super) fn reload(&mut self, options: &Serve) {
        self.notifier.reloading();
        match self.prepare(options) {
            Ok(prepared) => {
                self.commit(prepared);
                tracing::info!("reloaded");
            }
            Err(error) => {
                eprintln!("{error:#}");
                tracing::error!("the reload failed, the running configuration stays");
            }
        }
        self.notifier.ready();
    }

    fn prepare(&self, options: &Serve) -> anyhow::Result<Prepared> {
        let loaded = options.configuration()?;
        if !loaded.warnings.is_empty() {
            eprint!("{}", loaded.rendered_warnings());
        }
        let config = keep_what_stays(loaded.config, &self.config);
        let root = open_root(&config)?;
        let site = open_site(&config, root, self.arena.clone())?;

        let wanted = convert::addresses(&config);
        let bound: Vec<&Address> = self.engine.addresses().collect();
        let settings = convert::engine(&config);
        let listeners = wanted
            .iter()
            .filter(|address| !bound.contains(address))
            .map(|address| bind(address, settings.workers, settings.backlog, None))
            .collect::<anyhow::Result<_>>()?;
        let gone = bound.into_iter().filter(|address| !wanted.contains(address)).cloned().collect();

        let access_log =
            if config.log == self.config.log { None } else { Some(start_log(&config)?) };
        Ok(Prepared { config, site, access_log, listeners, gone })
    }

    fn commit(&mut self, prepared: Prepared) {
        let Prepared { config, site, access_log, listeners, gone } = prepared;
        let sinks = access_log.map(|(log, sinks)| {
            self.observed.access_log.store(Arc::new(log));
            Arc::new(Sinks::new(sinks))
        });
        // Before the workers know the new site: the kernel answers no more for the old one.
        if let Some(fast_path) = &mut self.fast_path {
            let going = |address: &&Address| !gone.contains(address);
            let staying = self.engine.addresses().filter(going);
            let bound = tcp(staying.chain(listeners.iter().map(|listener| &listener.address)));
            let sink = sinks.as_ref().map(|sinks| sinks.take(config.workers));
            fast_path.adopt(&config, &site, &bound, sink);
        }
        self.observed.site.store(Arc::clone(&site));
        let settings = Settings {
            elsewhere: self.fast_path.as_ref().map(FastPath::elsewhere),
            ..convert::engine(&config)
        };
        self.engine.reload(&settings, move |module: &mut Http, worker| {
            module.adopt(Global::alone(Arc::clone(&site)));
            if let Some(sinks) = &sinks {
                module.log_to(Box::new(sinks.take(worker)));
            }
        });
        for listener in listeners {
            if let Err(error) = self.engine.listen(listener) {
                tracing::error!(%error, "an address was bound but is not listened on");
            }
        }
        for address in gone {
            self.engine.unlisten(&address);
        }
        self.config = config;
    }
}

/// Some settings are used up at the start. They keep their value, and the log says so.
fn keep_what_stays(mut new: Config, old: &Config) -> Config {
    fn keep<T: PartialEq + Clone>(name: &str, new: &mut T, old: &T) {
        if new != old {
            tracing::warn!("{name} takes effect at the next start");
            *new = old.clone();
        }
    }
    keep("workers", &mut new.workers, &old.workers);
    keep("user", &mut new.user, &old.user);
    keep("group", &mut new.group, &old.group);
    keep("[limits] head", &mut new.limits.head, &old.limits.head);
    keep("[cache] pinned_limit", &mut new.cache.pinned_limit, &old.cache.pinned_limit);
    keep("[fast_path] objects", &mut new.fast_path.objects, &old.fast_path.objects);
    keep("[fast_path] memory", &mut new.fast_path.memory, &old.fast_path.memory);
    keep("[fast_path] flows", &mut new.fast_path.flows, &old.fast_path.flows);
    keep("[fast_path] keep", &mut new.fast_path.keep, &old.fast_path.keep);
    keep("[admin] listen", &mut new.admin, &old.admin);
    keep("[control] path", &mut new.control, &old.control);
    keep("[log] level", &mut new.log.level, &old.log.level);
    keep("[log] format", &mut new.log.format, &old.log.format);
    new
}
