//! Reload: everything that can fail is done first; then nothing can, and it takes effect.

use std::sync::Arc;

use afpa_fast_path::{AnswerSink, KernelScope, RunningFastPath, too_late};
use afpa_module_http::Http;
use afpa_server::{Address, BoundListener, ListenerSettings, Settings};

use super::serving::{Draft, open_roots};
use super::start::{Sinks, bind, keep, start_log, tcp};
use super::{Server, convert};
use crate::access_log::{AccessLog, Sink};
use crate::cli::Serve;
use crate::config::Config;
use crate::fast_path::settings as fast_path_settings;

/// What a reload has made ready.
struct Prepared {
    config: Config,
    draft: Draft,
    /// A new access log, if its settings are others.
    access_log: Option<(AccessLog, Vec<Sink>)>,
    listeners: Vec<BoundListener>,
    /// Addresses that stay, and how their connections are taken.
    staying: Vec<(Address, ListenerSettings)>,
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

    fn prepare(&mut self, options: &Serve) -> anyhow::Result<Prepared> {
        let loaded = options.configuration()?;
        if !loaded.warnings.is_empty() {
            eprint!("{}", loaded.rendered_warnings());
        }
        let config = keep_what_stays(loaded.config, &self.config);
        let hierarchy = self.numbers.hierarchy(&config);
        let roots = open_roots(&config, &hierarchy)?;
        let draft = Draft::new(&config, &hierarchy, roots, self.arena.clone())?;
        let roots = draft.roots();
        let prepared = self.prepare_around(config, draft);
        if prepared.is_err() {
            self.leaving.add(roots);
        }
        prepared
    }

    /// What else there is to a reload.
    fn prepare_around(&mut self, config: Config, draft: Draft) -> anyhow::Result<Prepared> {
        let wanted = convert::addresses(&config);
        let settings = convert::engine(&config);
        let (mut listeners, mut staying) = (Vec::new(), Vec::new());
        for (listen, address) in &wanted {
            let taken = self.numbers.settings(&config, listen);
            if self.engine.addresses().any(|bound| bound == address) {
                staying.push((address.clone(), taken));
            } else {
                let bound = bind(address, settings.workers, settings.backlog, None)?;
                listeners.push(bound.with(taken));
            }
        }
        let is_wanted = |bound: &&Address| wanted.iter().any(|(_, address)| address == *bound);
        let gone = self.engine.addresses().filter(|bound| !is_wanted(bound)).cloned().collect();

        let access_log =
            if config.log == self.config.log { None } else { Some(start_log(&config)?) };
        Ok(Prepared { config, draft, access_log, listeners, staying, gone })
    }

    fn commit(&mut self, prepared: Prepared) {
        let Prepared { config, draft, access_log, listeners, staying, gone } = prepared;
        let before = self.observed.serving.load_full();
        // From now on: neither this thread nor a worker is to wait for the end of one.
        self.leaving.add(before.global.roots.iter().cloned());
        let serving = Arc::new(draft.adopt(&config, Some(&before.global)));
        let sinks = access_log.map(|(log, sinks)| {
            self.observed.access_log.store(Arc::new(log));
            Arc::new(Sinks::new(sinks))
        });
        // Before the workers know the new site: the kernel answers no more for the old one.
        if let Some(fast_path) = &mut self.fast_path {
            let new = listeners.iter().map(|listener| &listener.address);
            let bound = tcp(staying.iter().map(|(address, _)| address).chain(new));
            let sink = sinks.as_ref().map(|sinks| sinks.take(config.workers));
            let sink = sink.map(|sink| Box::new(sink) as AnswerSink);
            let scope = KernelScope::of(&serving.global);
            fast_path.adopt(&fast_path_settings(&config), &serving.cache, scope, &bound, sink);
        }
        if self.fast_path.is_none()
            && let Some(why) =
                too_late(&fast_path_settings(&self.config), &fast_path_settings(&config))
        {
            tracing::warn!("the fast path is {why}");
            self.observed.fast_path.set_without(why);
        }
        self.observed.serving.store(Arc::clone(&serving));
        let settings = Settings {
            elsewhere: self.fast_path.as_ref().map(RunningFastPath::elsewhere),
            ..convert::engine(&config)
        };
        let global = Arc::clone(&serving.global);
        self.engine.reload(&settings, move |module: &mut Http, worker| {
            module.adopt(Arc::clone(&global));
            if let Some(sinks) = &sinks {
                module.log_to(Box::new(sinks.take(worker)));
            }
        });
        match keep(self.keeper.take(), &config, &serving) {
            Ok(keeper) => self.keeper = keeper,
            Err(error) => tracing::error!("servers are not probed: {error:#}"),
        }
        for (address, taken) in staying {
            self.engine.relisten(&address, &taken);
        }
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
    keep("[fast_path] answer_max", &mut new.fast_path.answer_max, &old.fast_path.answer_max);
    keep("[fast_path] memory", &mut new.fast_path.memory, &old.fast_path.memory);
    keep("[fast_path] retired", &mut new.fast_path.retired, &old.fast_path.retired);
    keep("[fast_path] flights", &mut new.fast_path.flights, &old.fast_path.flights);
    keep("[fast_path] flows", &mut new.fast_path.flows, &old.fast_path.flows);
    keep("[fast_path] keep", &mut new.fast_path.keep, &old.fast_path.keep);
    keep("[admin] listen", &mut new.admin, &old.admin);
    keep("[control] path", &mut new.control, &old.control);
    keep("[log] level", &mut new.log.level, &old.log.level);
    keep("[log] format", &mut new.log.format, &old.log.format);
    new
}
