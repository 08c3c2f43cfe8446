//! The fleet in the life of a server: its thread, and what orders of other machines do here.

use std::sync::Arc;
use std::time::Duration;

use afpa_config::{KeyError, fleet_credentials};
use afpa_fleet::{
    Credentials, Fleet, FleetFolder, FleetSettings, FleetView, Kept, Machine, Order, Readings,
};
use afpa_framework::{Arguments, Control as _, Refusal};
use afpa_shared_cache::{Purge, Responses};
use anyhow::Context as _;
use arc_swap::ArcSwap;

use super::observe::Observed;
use crate::folder::own_folder;
use crate::privileges::Identity;

/// How long answers of before wait for the orders that were given while this machine was away.
const CATCH_UP: Duration = Duration::from_secs(2);

/// The part in a fleet, while there is one.
#[derive(Default)]
pub(super) struct FleetState {
    running: Option<Running>,
    /// A check of the configuration in force.
    configuration: Arc<ArcSwap<String>>,
}

struct Running {
    wanted: Wanted,
    fleet: Fleet,
}

#[derive(Clone, PartialEq, Eq)]
struct Wanted {
    settings: FleetSettings,
    credentials: Option<Credentials>,
}

/// Folder and credentials, for a configuration with a fleet, and a check of that configuration.
pub(super) struct PreparedFleet {
    wanted: Option<Wanted>,
    /// The user that serves may not read the credentials, as root could at the start.
    denied: Option<KeyError>,
    configuration: String,
}

impl PreparedFleet {
    /// Reads the credentials, and makes the folder ready for the user that serves.
    ///
    /// # Errors
    /// When one of them cannot be used.
    pub(super) fn new(
        settings: &FleetSettings,
        owner: Option<&Identity>,
        configuration: String,
    ) -> anyhow::Result<Self> {
        if !settings.is_on() {
            return Ok(Self { wanted: None, denied: None, configuration });
        }
        let (credentials, denied) = match fleet_credentials(settings) {
            Ok(credentials) => (credentials, None),
            Err(error) if error.is_denied() => (None, Some(error)),
            Err(error) => return Err(error).context("[fleet] credentials"),
        };
        if let Some(above) = settings.state.parent() {
            std::fs::create_dir_all(above).context("[fleet] state")?;
        }
        own_folder(&settings.state, owner).context("[fleet] state")?;
        let wanted = Some(Wanted { settings: settings.clone(), credentials });
        Ok(Self { wanted, denied, configuration })
    }
}

impl FleetState {
    /// Takes part in the fleet of a configuration.
    ///
    /// # Errors
    /// When its thread cannot be started.
    pub(super) fn adopt(
        &mut self,
        prepared: PreparedFleet,
        (observed, responses): (&Arc<Observed>, &Arc<Responses>),
    ) -> anyhow::Result<()> {
        self.configuration.store(Arc::new(prepared.configuration));
        let running = self.running.as_ref().map(|running| &running.wanted);
        let settings = |wanted: &Wanted| wanted.settings.clone();
        let is_same = match &prepared.denied {
            // Those of the start go on.
            Some(_) => running.map(settings) == prepared.wanted.as_ref().map(settings),
            None => running == prepared.wanted.as_ref(),
        };
        if is_same {
            return Ok(());
        }
        if let Some(denied) = prepared.denied {
            return Err(denied).context("[fleet] credentials");
        }
        observed.fleet.store(None);
        let before = self.running.take();
        let is_first = before.is_none();
        let place = before.and_then(|running| running.fleet.stop());
        let Some(wanted) = prepared.wanted else { return Ok(()) };
        let folder = FleetFolder::new(&wanted.settings.state);
        let left = folder.take_place().context("[fleet] state")?;
        let kept: Option<Kept> = if is_first { left } else { place };
        let machine = Local {
            observed: Arc::clone(observed),
            responses: Arc::clone(responses),
            configuration: Arc::clone(&self.configuration),
        };
        let (settings, credentials) = (wanted.settings.clone(), wanted.credentials.clone());
        let (host, machine) = (host_name(), Arc::new(machine));
        let fleet = Fleet::start(settings, credentials, (folder, kept), &host, machine)
            .context("the thread of the fleet cannot be started")?;
        observed.fleet.store(Some(Arc::new(fleet.view())));
        self.running = Some(Running { wanted, fleet });
        Ok(())
    }

    /// Waits for the orders that were given while this machine was away, if it is in a fleet: answers of before may be older.
    pub(super) fn catching_up(&self) -> impl FnOnce() + Send + use<> {
        let view: Option<FleetView> = self.running.as_ref().map(|running| running.fleet.view());
        move || {
            if view.is_some_and(|view| !view.catch_up(CATCH_UP)) {
                tracing::warn!(
                    "answers of before are used, though the fleet cannot be asked what was purged since"
                );
            }
        }
    }

    /// The next process takes part in its place, and has its queue.
    pub(super) fn begin_drain_for_next(&self) {
        if let Some(running) = &self.running {
            running.fleet.hand_over();
        }
    }

    /// Ends, when nothing is served any more. With a snapshot, the next process goes on from this place.
    pub(super) fn end(self, has_successor: bool) {
        let Some(Running { fleet, .. }) = self.running else { return };
        if has_successor {
            return drop(fleet);
        }
        if let Err(error) = fleet.leave() {
            tracing::warn!(%error, "the place in the fleet is lost: the next process drops all kept answers");
        }
    }
}

/// This machine.
struct Local {
    observed: Arc<Observed>,
    responses: Arc<Responses>,
    configuration: Arc<ArcSwap<String>>,
}

impl Machine for Local {
    fn carry_out(&self, order: &Order) -> Result<(), String> {
        match order {
            Order::Purge { arguments } => {
                let global = Arc::clone(&self.observed.serving.load().global);
                let arguments = Arguments::new(Some(arguments.as_bytes()));
                let outcome = global.call("purge", &arguments);
                outcome.map(|_| ()).map_err(|refusal| match refusal {
                    Refusal::Invalid(why) | Refusal::Absent(why) => why,
                    Refusal::Failed => "it failed".to_owned(),
                })
            }
            Order::Deny { prefix, denied } => {
                let done = self.observed.police.order(Some(prefix), *denied)?;
                tracing::info!("{done}, by an order of the fleet");
                Ok(())
            }
        }
    }

    fn flush(&self) {
        self.responses.purge(&Purge::All, false);
        // Files are compared with the disk: one that no watch reports may have been purged.
        let global = Arc::clone(&self.observed.serving.load().global);
        global.roots.iter().for_each(|root| root.cache().suspect_all());
    }

    fn soften(&self) {
        self.responses.purge(&Purge::All, true);
    }

    fn readings(&self) -> Readings {
        let (answers, hits, connections) = self.observed.readings();
        Readings {
            answers,
            hits,
            connections,
            configuration: self.configuration.load().to_string(),
        }
    }
}

fn host_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    name.split('.').next().unwrap_or_default().to_owned()
}
