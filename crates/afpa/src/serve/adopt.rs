//! A configuration is taken into use: the first one at the start, and the next one at a reload.

use std::sync::Arc;

use afpa_acme::OtherMachines;
use afpa_config::{Config, FastPathMode, Hierarchy};
use afpa_fast_path::{AnswerSink, KernelScope, RunningFastPath, has_work, too_late};
use afpa_module_http::{Global, Http};
use afpa_proxy::probe::HealthProber;
use afpa_server::{BoundListener, HelperStart, Settings};
use afpa_workers::access_log::Sinks;
use anyhow::Context as _;

use super::build::{Next, Records};
use super::dns::Moment;
use super::fleet_certificates::Machines;
use super::listeners::{Listeners, kernel_address};
use super::serving::Serving;
use super::{Server, convert, police};
use crate::fast_path::settings as fast_path_settings;

impl Server {
    /// From the configuration before, or from none, to the next one. An error does not end it: each is the error of a part
    /// that cannot be used as configured. The start fails with the first of them, and has not accepted a connection then.
    pub(super) fn adopt(&mut self, next: Next, moment: Moment) -> Vec<anyhow::Error> {
        let bound = next.listeners.tcp();
        let Next { config, routes, listeners, tls, acme, dns, fleet, content, records } = next;
        let mut failures = Vec::new();
        let mut note = |outcome: anyhow::Result<()>| failures.extend(outcome.err());
        let tls = self.tls.adopt(tls);
        let before = self.observed.serving.load_full();
        // First of all: neither this thread nor a worker is to drop one of them, which takes long.
        self.drop_thread.add(before.global.roots.iter().cloned());
        police::configure(&self.observed.police, &config);
        let serving = Arc::new(content.serve(
            &config,
            tls,
            &before.global,
            &self.observed.police,
            &self.responses,
            self.acme.responses(&config.acme),
        ));
        let sinks = records.map(|records| self.swap_records(records));
        // The kernel stops answering for the old sites before the workers know the new ones.
        let of_kernel = (&*config, &routes.hierarchy);
        note(self.swap_fast_path(of_kernel, &serving, &bound, sinks.as_deref()));
        self.serve_sockets(&listeners.new, &mut note);
        self.observed.serving.store(Arc::clone(&serving));
        let helpers = self.helpers.start(&self.confinement, &serving, &before);
        let swapped = self.swap_workers(&config, &serving.global, sinks, helpers);
        if swapped.is_err() {
            self.helpers.forget();
        }
        note(swapped);
        note(self.swap_prober(&config, &serving));
        let limits = self.engine.connection_limits();
        note(self.dns.adopt(dns, &config, limits, &self.confinement));
        self.observed.dns.store(Arc::new(self.dns.counters()));
        let parts = (&self.observed, &self.responses);
        note(self.fleet.adopt(fleet, parts, self.acme.answers()));
        let shares = config.fleet.is_on() && config.fleet.certificates;
        let others = || Box::new(Machines(Arc::clone(&self.observed))) as OtherMachines;
        note(self.acme.adopt(acme, shares.then(others)));
        self.tls.wait_on_demand(self.acme.on_demand(&config.acme));
        self.tls.take_on_demand(self.acme.on_demand_files());
        if moment == Moment::Reload || failures.is_empty() {
            failures.extend(self.swap_listeners(listeners));
            // An authority asks at once.
            self.acme.begin();
        }
        self.shield_datagrams(config.fast_path.mode);
        self.numbers = routes.listeners;
        self.config = config;
        failures
    }

    /// The kernel answers on the connections of those listeners alone for which it answers at all. One that it does not take
    /// says nothing about the others.
    fn serve_sockets(&self, new: &[BoundListener], note: &mut impl FnMut(anyhow::Result<()>)) {
        let Some(fast_path) = &self.fast_path else { return };
        for listener in self.engine.listeners().chain(new) {
            if let Some(address) = kernel_address(&listener.address, &listener.settings) {
                note(fast_path.serve(address, listener.tcp_sockets()));
            }
        }
    }

    /// Has the kernel shield the sockets of HTTP/3 that there are now, unless it is to have no part in anything.
    fn shield_datagrams(&mut self, mode: FastPathMode) {
        let (Some(shield), Some(keys)) = (&mut self.shield, self.engine.kernel_keys()) else {
            return;
        };
        let listeners = self.engine.listeners().filter(|_| mode != FastPathMode::Off);
        let sockets = listeners.flat_map(BoundListener::udp_sockets);
        if let Err(error) = shield.serve(keys, sockets) {
            tracing::warn!(%error, "floods of first packets of HTTP/3 are for the workers alone");
        }
    }

    /// Returns the sinks of the new records.
    fn swap_records(&self, records: Records) -> Arc<Sinks> {
        let Records { log, spans, sinks } = records;
        self.observed.access_log.store(Arc::new(log));
        self.observed.spans.swap(Arc::new(spans)).end_aside();
        Arc::new(sinks)
    }

    fn swap_fast_path(
        &mut self,
        (config, hierarchy): (&Config, &Hierarchy),
        serving: &Serving,
        bound: &[std::net::SocketAddr],
        sinks: Option<&Sinks>,
    ) -> anyhow::Result<()> {
        if self.fast_path.is_none() && config.fast_path.mode == FastPathMode::Off {
            self.had_kernel_work = false;
            return Ok(());
        }
        let settings = fast_path_settings(config, hierarchy);
        let had_work = std::mem::replace(&mut self.had_kernel_work, has_work(&settings));
        if let Some(fast_path) = &mut self.fast_path {
            let sink = sinks.map(|sinks| Box::new(sinks.take(config.workers)) as AnswerSink);
            let scope = KernelScope::of(&serving.global);
            return fast_path.adopt(&settings, &serving.cache, scope, bound, sink);
        }
        if let Some(why) = too_late(had_work, &settings) {
            tracing::warn!("the fast path is {why}");
            self.observed.fast_path.set_without(why);
        }
        Ok(())
    }

    fn swap_workers(
        &self,
        config: &Config,
        global: &Arc<Global>,
        sinks: Option<Arc<Sinks>>,
        helper_start: HelperStart,
    ) -> anyhow::Result<()> {
        let kernel_activity = self.fast_path.as_ref().map(RunningFastPath::kernel_activity);
        let global = Arc::clone(global);
        let settings = convert::engine(config, kernel_activity, &self.observed.police);
        let swapped = self.engine.reload(
            &Settings { helper_start, ..settings },
            move |module: &mut Http, worker| {
                module.adopt(Arc::clone(&global));
                if let Some(sinks) = &sinks {
                    module.log_to(Box::new(sinks.take(worker)));
                }
            },
        );
        swapped.context(
            "no thread can be started for new helpers: raise TasksMax of the unit, or ulimit -u",
        )
    }

    /// The prober of the groups that are served from now on; none while there never were any.
    fn swap_prober(&mut self, config: &Config, serving: &Serving) -> anyhow::Result<()> {
        let (groups, resolver) = (serving.groups(), config.resolver.clone());
        match &self.prober {
            Some(prober) => prober.replace(groups, resolver),
            None if groups.is_empty() => {}
            None => {
                // It waits for the first addresses on an event loop of its own, but this thread runs one already.
                let start = std::thread::spawn(move || HealthProber::start(groups, resolver));
                let prober = start.join().unwrap_or_else(|_| Err(std::io::ErrorKind::Other.into()));
                self.prober =
                    Some(prober.context("the thread that probes servers cannot be started")?);
            }
        }
        Ok(())
    }

    /// Workers accept at once.
    fn swap_listeners(&mut self, listeners: Listeners) -> Vec<anyhow::Error> {
        let Listeners { new, staying, gone } = listeners;
        for (address, taken) in staying {
            self.engine.relisten(&address, &taken);
        }
        let refused: Vec<_> =
            new.into_iter().filter_map(|listener| self.engine.listen(listener).err()).collect();
        for address in gone {
            self.engine.unlisten(&address);
        }
        refused.into_iter().map(Into::into).collect()
    }
}
