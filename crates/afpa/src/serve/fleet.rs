//! The fleet in the life of a server: its thread, and what orders of other machines do here.

use std::sync::Arc;
use std::time::Duration;

use afpa_acme::{Answers, Challenges};
use afpa_config::{KeyError, fleet_credentials, fleet_secret};
use afpa_fleet::{
    Configure, Credentials, Fleet, FleetFolder, FleetSettings, FleetView, Kept, Machine, Order,
    Readings, Revision, Secret, Seeds,
};
use afpa_framework::{Arguments, Control as _, Refusal};
use afpa_police::{Police, Prefix};
use afpa_shared_cache::{Cause, PassOn, Purge, Responses};
use afpa_tls::ClientTls;
use anyhow::Context as _;
use arc_swap::ArcSwap;
use tokio::sync::{mpsc, oneshot};

use super::observe::{Observed, p99_us};
use super::peers;
use crate::folder::own_folder;
use crate::privileges::Identity;

/// How long answers of before wait for the orders that were given while this machine was away.
const CATCH_UP: Duration = Duration::from_secs(2);

/// Changes of rules that are tried for orders to deny that came together.
const MOST_TRIES: u32 = 64;

/// The part in a fleet, while there is one.
pub(super) struct FleetState {
    running: Option<Running>,
    in_force: Arc<ArcSwap<InForce>>,
    /// Orders about configurations of the fleet, for the thread that reloads.
    configures: mpsc::UnboundedSender<ToConfigure>,
    /// Where it gets them from.
    pub(super) to_configure: Option<mpsc::UnboundedReceiver<ToConfigure>>,
}

/// An order about a configuration of the fleet, and where the answer goes.
pub(super) type ToConfigure = (Configure, oneshot::Sender<Result<(), String>>);

impl Default for FleetState {
    fn default() -> Self {
        let (configures, to_configure) = mpsc::unbounded_channel();
        let in_force = Arc::default();
        Self { running: None, in_force, configures, to_configure: Some(to_configure) }
    }
}

/// The configuration in force, as the fleet hears of it. It comes from what was read, and changes when that is taken into use:
/// no other way leads to the revision that this machine reports.
#[derive(Default)]
pub(super) struct InForce {
    /// A check of its files.
    pub(super) check: String,
    /// The revision of the fleet's files that are in it.
    pub(super) revision: Option<Revision>,
}

struct Running {
    wanted: Wanted,
    fleet: Fleet,
}

#[derive(Clone, PartialEq, Eq)]
struct Wanted {
    settings: FleetSettings,
    credentials: Option<Credentials>,
    secret: Option<Secret>,
}

/// Folder and credentials, for a configuration with a fleet, and a check of that configuration.
pub(super) struct PreparedFleet {
    wanted: Option<Wanted>,
    /// The user that serves may not read one of its files, as root could at the start.
    denied: Option<(KeyError, &'static str)>,
    in_force: InForce,
}

impl PreparedFleet {
    /// Reads the credentials, and makes the folder ready for the user that serves.
    ///
    /// # Errors
    /// When one of them cannot be used.
    pub(super) fn new(
        settings: &FleetSettings,
        owner: Option<&Identity>,
        in_force: InForce,
    ) -> anyhow::Result<Self> {
        if !settings.is_on() {
            return Ok(Self { wanted: None, denied: None, in_force });
        }
        let mut denied = None;
        let credentials =
            readable(fleet_credentials(settings), "[fleet] credentials", &mut denied)?;
        let secret = readable(fleet_secret(settings), "[fleet] secret", &mut denied)?;
        if let Some(above) = settings.state.parent() {
            std::fs::create_dir_all(above).context("[fleet] state")?;
        }
        own_folder(&settings.state, owner).context("[fleet] state")?;
        let wanted = Some(Wanted { settings: settings.clone(), credentials, secret });
        Ok(Self { wanted, denied, in_force })
    }

    /// The secret, if there is one and this user may read it.
    pub(super) fn secret(&self) -> Option<&Secret> {
        self.wanted.as_ref()?.secret.as_ref()
    }
}

/// The content of a file of the fleet; `None` as well if this user may not read it.
fn readable<T>(
    read: Result<Option<T>, KeyError>,
    what: &'static str,
    denied: &mut Option<(KeyError, &'static str)>,
) -> anyhow::Result<Option<T>> {
    match read {
        Ok(content) => Ok(content),
        Err(error) if error.is_denied() => {
            *denied = Some((error, what));
            Ok(None)
        }
        Err(error) => Err(error).context(what),
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
        (challenges, answers): (Challenges, Answers),
    ) -> anyhow::Result<()> {
        self.in_force.store(Arc::new(prepared.in_force));
        let running = self.running.as_ref().map(|running| &running.wanted);
        let settings = |wanted: &Wanted| wanted.settings.clone();
        let is_same = match &prepared.denied {
            // A file that this user cannot read is as it was at the start.
            Some(_) => running.map(settings) == prepared.wanted.as_ref().map(settings),
            None => running == prepared.wanted.as_ref(),
        };
        if is_same {
            return Ok(());
        }
        if let Some((denied, what)) = prepared.denied {
            return Err(denied).context(what);
        }
        observed.fleet.store(None);
        responses.pause_peers();
        if self.running.is_some() && prepared.wanted.is_some() {
            // Purges that come meanwhile are those of the next fleet, or nobody would ever hear of them.
            observed.purges.wait();
        }
        let begun = self.exchange(prepared.wanted, (observed, responses), (challenges, answers));
        let view = self.running.as_ref().map(|running| running.fleet.view());
        responses.pass_purges_on(view.as_ref().map(|_| observed.purges.pass_on()));
        // They wait in its queue before another machine is asked for anything.
        observed.purges.go_to(view.clone().map(pass_on));
        let to_peers = begun.as_ref().ok().cloned().flatten();
        let views = view.as_ref().and_then(FleetView::peers).zip(to_peers);
        responses.set_peers(views.map(|(view, tls)| peers::of(view, tls)));
        observed.fleet.store(view.map(Arc::new));
        begun.map(drop)
    }

    /// Ends the fleet, and begins the one of a configuration. Returns how other machines are reached, if they are asked.
    fn exchange(
        &mut self,
        wanted: Option<Wanted>,
        (observed, responses): (&Arc<Observed>, &Arc<Responses>),
        (challenges, answers): (Challenges, Answers),
    ) -> anyhow::Result<Option<ClientTls>> {
        let before = self.running.take();
        let is_first = before.is_none();
        let place = before.and_then(|running| running.fleet.stop());
        let shares_keys = wanted.as_ref().is_some_and(|wanted| wanted.secret.is_some());
        if !shares_keys {
            observed.seeds.store(None);
        }
        let Some(wanted) = wanted else { return Ok(None) };
        let folder = FleetFolder::new(&wanted.settings.state);
        let left = folder.take_place().context("[fleet] state")?;
        let kept: Option<Kept> = if is_first { left } else { place };
        let machine = Local {
            observed: Arc::clone(observed),
            responses: Arc::clone(responses),
            in_force: Arc::clone(&self.in_force),
            configures: self.configures.clone(),
            challenges,
            answers,
        };
        let settings = wanted.settings.clone();
        let key = wanted.secret.as_ref().map(|secret| peers::key(secret)?.client());
        let to_peers = key.transpose().context("[fleet] peers")?;
        let proofs = (wanted.credentials.clone(), wanted.secret.clone());
        let (host, machine) = (host_name(), Arc::new(machine));
        let fleet = Fleet::start(settings, proofs, (folder, kept), &host, machine)
            .context("the thread of the fleet cannot be started")?;
        self.running = Some(Running { wanted, fleet });
        Ok(to_peers)
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
    in_force: Arc<ArcSwap<InForce>>,
    configures: mpsc::UnboundedSender<ToConfigure>,
    challenges: Challenges,
    answers: Answers,
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
                let police = &self.observed.police;
                let known = prefix.parse::<Prefix>();
                if known.is_ok_and(|prefix| police.has_ordered(prefix)) == *denied {
                    // It was given here, or has come before.
                    return Ok(());
                }
                let done = police.order(Some(prefix), *denied)?;
                tracing::info!("{done}, by an order of the fleet");
                Ok(())
            }
        }
    }

    fn carry_out_all(&self, orders: &[Order]) -> usize {
        let alone = |order: &Order| {
            let outcome = self.carry_out(order);
            outcome.inspect_err(|why| {
                tracing::debug!(why, ?order, "an order of the fleet changes nothing here");
            })
        };
        let denial = |order: &Order| match order {
            Order::Deny { prefix, denied } => Some((prefix.parse::<Prefix>().ok()?, *denied)),
            Order::Purge { .. } => None,
        };
        let denials: Vec<_> = orders.iter().filter_map(denial).collect();
        if denials.len() > 1 {
            let failed = order_all(&self.observed.police, &denials, &mut { MOST_TRIES });
            tracing::info!("{} prefixes, by orders of the fleet", denials.len() - failed);
            let others = orders.iter().filter(|order| denial(order).is_none());
            return failed + others.filter(|order| alone(order).is_err()).count();
        }
        orders.iter().filter(|order| alone(order).is_err()).count()
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

    fn take_seeds(&self, seeds: &Seeds) {
        self.observed.seeds.store(Some(Arc::new(seeds.clone())));
    }

    fn take_record(&self, key: &str, value: Option<&str>) {
        self.answers.note(&self.challenges, key, value);
    }

    fn readings(&self) -> Readings {
        let configuration = self.in_force.load().check.clone();
        Readings { configuration, ..self.observed.readings() }
    }

    fn runs(&self) -> Option<Revision> {
        self.in_force.load().revision
    }

    fn p99_us(&self, times: &[u64]) -> u64 {
        p99_us(times)
    }

    fn configure(&self, what: Configure, answer: oneshot::Sender<Result<(), String>>) {
        // When nobody is there any more, the answer is dropped, which is one.
        let _ = self.configures.send((what, answer));
    }
}

/// Sends purges of the method PURGE to all machines, and what other requests have made invalid. One line while too many
/// orders wait: any client can ask for more of them.
/// Has orders to deny carried out in one change; if the kernel refuses that, in two halves: one of them may be at fault. If it refuses
/// all, it is not asked for ever. Returns how many failed.
fn order_all(police: &Police, denials: &[(Prefix, bool)], tries: &mut u32) -> usize {
    let Some(left) = tries.checked_sub(1) else { return denials.len() };
    *tries = left;
    match police.order_all(denials) {
        Ok(left_out) => left_out,
        Err(why) if denials.len() < 2 => {
            tracing::debug!(%why, ?denials, "an order of the fleet changes nothing here");
            denials.len()
        }
        Err(_) => {
            let (former, latter) = denials.split_at(denials.len() / 2);
            order_all(police, former, tries) + order_all(police, latter, tries)
        }
    }
}

fn pass_on(view: FleetView) -> PassOn {
    Arc::new(move |what, cause| {
        let soft = cause == Cause::Ordered { soft: true };
        let Some(arguments) = arguments(what, soft) else { return };
        let order = Order::Purge { arguments };
        let (sent, kind) = match cause {
            Cause::Ordered { .. } => (view.send(order).map(drop), "purges by PURGE"),
            Cause::Changed => (view.send_change(order), "invalidations by POST, PUT or DELETE"),
        };
        if let Err(error) = sent
            && !error.again
        {
            tracing::warn!(%error, "{kind} are done here alone until orders are sent again");
        }
    })
}

/// A purge of a client as the operation `purge` takes it; `None`: no client can order it.
fn arguments(what: &Purge, soft: bool) -> Option<String> {
    let mut given = match what {
        Purge::Url { host, path, query } => {
            let (host, query) = (host.as_deref(), query.as_deref());
            vec![("path", Some(&**path)), ("host", host), ("query", query)]
        }
        Purge::Tag(tag) => vec![("tag", Some(&**tag))],
        Purge::Group { host, name } => vec![("group", Some(&**name)), ("host", Some(&**host))],
        Purge::Prefix { host, path } => {
            vec![("path", Some(&**path)), ("below", Some(&b"yes"[..])), ("host", host.as_deref())]
        }
        Purge::Host(_) | Purge::All => return None,
    };
    given.push(("soft", soft.then_some(&b"yes"[..])));
    let pair = |(name, value): (&str, Option<&[u8]>)| Some(format!("{name}={}", escape(value?)));
    Some(given.into_iter().filter_map(pair).collect::<Vec<_>>().join("&"))
}

fn escape(value: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(byte);
    let escaped = |byte: &u8| match plain(byte) {
        true => char::from(*byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    value.iter().map(escaped).collect()
}

fn host_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    name.split('.').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purge_of_a_client_is_the_operation_that_does_the_same() {
        let url = |query: Option<&[u8]>| Purge::Url {
            host: Some(b"www.example.org".to_vec()),
            path: b"/a%2Fb&c".to_vec(),
            query: query.map(<[u8]>::to_vec),
        };
        let text = arguments(&url(Some(b"x=1")), true).unwrap();
        assert_eq!(text, "path=/a%252Fb%26c&host=www.example.org&query=x%3D1&soft=yes");
        let read = Arguments::new(Some(text.as_bytes()));
        assert_eq!(read.bytes("path").as_deref(), Some(&b"/a%2Fb&c"[..]));
        assert_eq!(read.bytes("query").as_deref(), Some(&b"x=1"[..]));
        let text = arguments(&url(None), false).unwrap();
        assert_eq!(text, "path=/a%252Fb%26c&host=www.example.org");
        let tag = arguments(&Purge::Tag(b"a=b".to_vec()), false);
        assert_eq!(tag.as_deref(), Some("tag=a%3Db"));
        let below = Purge::Prefix { host: None, path: b"/".to_vec() };
        assert_eq!(arguments(&below, false).as_deref(), Some("path=/&below=yes"));
        assert_eq!(arguments(&Purge::All, false), None);
    }
}
