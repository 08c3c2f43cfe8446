//! Reload: builds the next configuration, which may fail, and then swaps it in, which may not.

use std::sync::Arc;

use afpa_config::{Config, FastPathMode, Hierarchy, Known, Loaded};
use afpa_fast_path::{AnswerSink, KernelScope, RunningFastPath, has_work, too_late};
use afpa_module_http::{Global, Http};
use afpa_server::{Address, BoundListener, HelperStart, Settings};

use super::build::{Next, Opened, Records};
use super::dns::{Moment, PreparedDns};
use super::listeners::{Listeners, Place, kernel_address};
use super::serving::Serving;
use super::start::{needs, update_prober};
use super::{Server, convert, police};
use crate::access_log::Sinks;
use crate::cli::Serve;
use crate::commands;
use crate::fast_path::settings as fast_path_settings;
use crate::privileges;
use crate::span_export::SpanExport;
use crate::upgrade::Inherited;

impl Server {
    /// Reads the configuration again. If it has an error, nothing changes.
    pub(super) fn reload(&mut self, options: &Serve) {
        self.notifier.reloading();
        match self.build(options) {
            Ok((next, dns)) => {
                self.swap(next, dns);
                tracing::info!("reloaded");
            }
            Err(error) => {
                afpa_say::error(&commands::words(&error));
                tracing::error!(
                    "the reload failed, the running configuration stays: mend the error above, and reload again"
                );
            }
        }
        self.notifier.ready();
    }

    fn build(&mut self, options: &Serve) -> anyhow::Result<(Next, PreparedDns)> {
        let loaded = options.configuration_by(Known {
            read: &|files| self.tls.read(files),
            listeners: self.numbers.clone(),
            datagrams: &|address| self.engine.takes_datagrams(address),
            ..Known::default()
        })?;
        if !loaded.warnings.is_empty() {
            afpa_say::error(&loaded.rendered_warnings());
        }
        let mut config = keep_what_stays(loaded.config, &self.config);
        let (new, old) = (&mut config.engine.confine, &self.config.engine.confine);
        keep("[engine] confine", new, old);
        if !self.has_rings {
            keep("[engine] io", &mut config.engine, &self.config.engine);
        }
        let bound: Vec<Address> = self.engine.addresses().cloned().collect();
        // There may be more document roots.
        privileges::raise_limits(needs(&config));
        let opening = (&mut self.handles, &mut self.tls);
        let place = Place { inherited: &mut Inherited::default(), owner: None };
        let opened = Opened::open(Loaded { config, ..loaded }, opening, &bound, place)?;
        let dns = PreparedDns::new(&opened.config, &self.dns.addresses(), Moment::Reload)?;
        let spans = self.observed.spans.load();
        let running = Some((&self.config, &**spans));
        let before = self.observed.serving.load();
        let (arena, before) = (self.arena.clone(), Some(&*before.global));
        let (watches, confinement) = (&self.watch_thread, &self.confinement);
        Ok((Next::build(opened, arena, watches, confinement, running, before)?, dns))
    }

    /// From the running configuration to the next one. Nothing here may fail.
    fn swap(&mut self, next: Next, dns: PreparedDns) {
        let bound = next.listeners.tcp();
        let Next { config, routes, listeners, tls, acme, content, records } = next;
        let tls = self.tls.adopt(tls);
        let before = self.observed.serving.load_full();
        // First of all: neither this thread nor a worker is to drop one of them, which takes long.
        self.drop_thread.add(before.global.roots.iter().cloned());
        police::configure(&self.observed.police, &config);
        let serving = Arc::new(content.serve(
            &config,
            tls,
            Some(&before.global),
            &self.observed.police,
            &self.responses,
            self.acme.responses(&config.acme),
        ));
        let (sinks, spans) = records.map(|records| self.swap_records(records)).unzip();
        // The kernel stops answering for the old sites before the workers know the new ones.
        self.swap_fast_path((&config, &routes.hierarchy), &serving, &bound, sinks.as_deref());
        self.observed.serving.store(Arc::clone(&serving));
        let helpers = self.helpers.start(&self.confinement, &serving, Some(&before));
        self.swap_workers(&config, &serving.global, sinks, helpers);
        drop_aside(spans);
        match update_prober(self.prober.take(), &config, &serving) {
            Ok(prober) => self.prober = prober,
            Err(error) => tracing::error!("servers are not probed: {error:#}"),
        }
        self.serve_sockets(&listeners.new);
        self.swap_listeners(listeners);
        let limits = self.engine.connection_limits();
        if let Err(error) = self.dns.adopt(dns, &config, limits, &self.confinement) {
            tracing::error!("DNS is not answered as configured: {error:#}");
        }
        self.observed.dns.store(Arc::new(self.dns.counters()));
        if let Err(error) = self.acme.adopt(acme) {
            tracing::error!("certificates are not renewed: {error:#}");
        }
        self.tls.wait_on_demand(self.acme.on_demand(&config.acme));
        self.tls.take_on_demand(self.acme.on_demand_files());
        self.numbers = routes.listeners;
        self.config = config;
    }

    /// The kernel answers on the connections of those listeners alone for which it answers at all.
    fn serve_sockets(&self, new: &[BoundListener]) {
        let Some(fast_path) = &self.fast_path else { return };
        for listener in self.engine.listeners().chain(new) {
            if let Some(address) = kernel_address(&listener.address, &listener.settings) {
                fast_path.serve(address, listener.tcp_sockets());
            }
        }
    }

    /// Returns the new sinks, and the export of spans that has ended.
    fn swap_records(&self, records: Records) -> (Arc<Sinks>, Arc<SpanExport>) {
        let Records { log, spans, sinks } = records;
        self.observed.access_log.store(Arc::new(log));
        (Arc::new(sinks), self.observed.spans.swap(Arc::new(spans)))
    }

    fn swap_fast_path(
        &mut self,
        (config, hierarchy): (&Config, &Hierarchy),
        serving: &Serving,
        bound: &[std::net::SocketAddr],
        sinks: Option<&Sinks>,
    ) {
        if self.fast_path.is_none() && config.fast_path.mode == FastPathMode::Off {
            self.had_kernel_work = false;
            return;
        }
        let settings = fast_path_settings(config, hierarchy);
        if let Some(fast_path) = &mut self.fast_path {
            let sink = sinks.map(|sinks| Box::new(sinks.take(config.workers)) as AnswerSink);
            let scope = KernelScope::of(&serving.global);
            fast_path.adopt(&settings, &serving.cache, scope, bound, sink);
        } else if let Some(why) = too_late(self.had_kernel_work, &settings) {
            tracing::warn!("the fast path is {why}");
            self.observed.fast_path.set_without(why);
        }
        self.had_kernel_work = has_work(&settings);
    }

    fn swap_workers(
        &self,
        config: &Config,
        global: &Arc<Global>,
        sinks: Option<Arc<Sinks>>,
        helper_start: HelperStart,
    ) {
        let kernel_activity = self.fast_path.as_ref().map(RunningFastPath::kernel_activity);
        let global = Arc::clone(global);
        let settings = convert::engine(config, kernel_activity, &self.observed.police);
        self.engine.reload(
            &Settings { helper_start, ..settings },
            move |module: &mut Http, worker| {
                module.adopt(Arc::clone(&global));
                if let Some(sinks) = &sinks {
                    module.log_to(Box::new(sinks.take(worker)));
                }
            },
        );
    }

    fn swap_listeners(&mut self, listeners: Listeners) {
        let Listeners { new, staying, gone } = listeners;
        for (address, taken) in staying {
            self.engine.relisten(&address, &taken);
        }
        for listener in new {
            if let Err(error) = self.engine.listen(listener) {
                tracing::error!(
                    %error,
                    "an address was bound but is not listened on: restart afpa to use it"
                );
            }
        }
        for address in gone {
            self.engine.unlisten(&address);
        }
    }
}

/// Drops the export of spans of before on a thread: it waits for a collector.
fn drop_aside(spans: Option<Arc<SpanExport>>) {
    let thread = std::thread::Builder::new().name("afpa-otlp-end".to_owned());
    if let Some(spans) = spans
        && let Err(error) = thread.spawn(move || drop(spans))
    {
        tracing::warn!(%error, "the last spans of before may be lost");
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
