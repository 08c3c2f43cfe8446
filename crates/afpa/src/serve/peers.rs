//! Other machines of the fleet, as the shared cache asks them for answers and is asked.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use afpa_fleet::{
    ANSWER, Asking, Choice, Peer, PeersView, Proof, Refusal, Refusals, Secret, Serving,
};
use afpa_framework::steady_ms;
use afpa_proxy::exchange::Settings;
use afpa_proxy::pool::TlsToServers;
use afpa_proxy::select::{
    Address, Group, GroupSettings, QueueSettings, ServerAddress, ServerSettings,
};
use afpa_shared_cache::{FromPeer, NoQuestion, PeerClient, PeerEnd, PeerQuestion, Peers, ToPeer};
use afpa_tls::server::SettingsError;
use afpa_tls::{ClientTls, SharedKey};

/// A machine that does not answer so long has a server that does not; the client waits no longer for both.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// Machines of one fleet have short ways, but a handshake takes a turn of a processor there. One that hangs falls silent a moment
/// later.
const CONNECT: Duration = Duration::from_secs(2);

/// How often a machine that cannot be reached is tried, by one request.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// Processes of other machines that are remembered; those that ended are among them.
const MOST: usize = 128;

/// The machines of a fleet.
struct OfFleet {
    view: PeersView,
    settings: Arc<Settings>,
    tls: ClientTls,
    /// By the random words of their processes.
    others: Mutex<HashMap<String, Arc<Other>>>,
}

/// Another machine's process.
struct Other {
    group: Arc<Group>,
    refusals: Mutex<Refusals>,
}

/// A question.
struct Question {
    view: PeersView,
    choice: Choice,
    other: Arc<Other>,
    place: [u8; 16],
    proof: Option<Proof>,
    /// Whether the other machine has said something to it.
    is_heard: Cell<bool>,
}

/// The machines of a fleet, for the shared cache, and how the others are reached.
pub(super) fn of(view: PeersView, tls: ClientTls) -> Arc<dyn Peers> {
    let (settings, others) = (Arc::new(settings()), Mutex::default());
    Arc::new(OfFleet { view, settings, tls, others })
}

/// The key that machines with one secret show one another.
///
/// # Errors
/// When there is none.
pub(super) fn key(secret: &Secret) -> Result<SharedKey, SettingsError> {
    SharedKey::of_seed(&secret.derive("TLS of peers"))
}

/// How other machines are asked.
pub(super) fn settings() -> Settings {
    Settings {
        connect: CONNECT,
        first_byte: ANSWER_TIME,
        idle: ANSWER_TIME,
        repeats: 0,
        head_limit: Settings::MOST_HEAD,
        ..Settings::default()
    }
}

impl OfFleet {
    fn other(&self, peer: &Peer) -> Arc<Other> {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = others.get(&peer.instance) {
            return Arc::clone(other);
        }
        if others.len() >= MOST {
            others.clear();
        }
        let (tls, http2) = (self.tls.clone(), self.tls.clone());
        let mut settings = GroupSettings {
            tls: Some(TlsToServers { tls, http2, name: None }),
            name: format!("fleet:{}", peer.name),
            servers: vec![ServerSettings::at(ServerAddress::Fixed(Address::Tcp(peer.address)))],
            // A request that finds no room goes to a server.
            queue: QueueSettings { length: 0, ..QueueSettings::default() },
            client_share: 100,
            ..GroupSettings::default()
        };
        // The first failure is enough; from then on one request finds out whether it is over.
        (settings.health.refused, settings.health.timeouts) = (1, 1);
        settings.health.last_resort = TRY_AGAIN;
        let group = Group::new(settings, None, steady_ms());
        let other = Arc::new(Other { group, refusals: Mutex::default() });
        others.insert(peer.instance.clone(), Arc::clone(&other));
        other
    }
}

impl Other {
    fn refusals(&self) -> MutexGuard<'_, Refusals> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Peers for OfFleet {
    fn choose(&self, place: &[u8; 16], key: &[u8]) -> Option<ToPeer> {
        let choice = self.view.choose(place, key)?;
        let other = self.other(&choice.peer);
        if !other.refusals().may_ask(place, now()) {
            return None;
        }
        let (group, settings) = (Arc::clone(&other.group), Arc::clone(&self.settings));
        let (view, place, keeps) = (self.view.clone(), *place, choice.keeps);
        let is_heard = Cell::new(false);
        let question = Box::new(Question { view, choice, other, place, proof: None, is_heard });
        Some(ToPeer { group, settings, keeps, question })
    }

    fn read(&self, head: &[u8]) -> Result<FromPeer, NoQuestion> {
        let (question, proof) = self.view.read(head).map_err(|end| match end {
            Serving::TurnedAway => NoQuestion::Behind,
            Serving::Strange | Serving::Served => NoQuestion::Strange,
        })?;
        let afpa_fleet::Question { place, key, client, secure, .. } = question;
        // It concerns the connection between the two machines alone.
        let lines = format!("Connection: {ANSWER}\r\n{}", proof.line());
        let client = PeerClient { address: client, secure };
        Ok(FromPeer { place, key, client, proof: lines.into_bytes().into() })
    }

    fn key(&self, place: &[u8; 16], key: &[u8]) -> u64 {
        self.view.key(place, key)
    }

    fn served(&self, key: u64, is_answered: bool) {
        match is_answered {
            true => self.view.used(key),
            false => self.view.note_served(Serving::TurnedAway),
        }
    }
}

impl PeerQuestion for Question {
    fn put(&mut self, client: PeerClient, head: &mut Vec<u8>) -> bool {
        let Self { view, choice, place, .. } = self;
        self.proof = view.ask(choice, place, (client.address, client.secure), head);
        self.proof.is_some()
    }

    fn is_proof(&self, name: &[u8], value: &[u8]) -> bool {
        let is_line = name.eq_ignore_ascii_case(ANSWER.as_bytes());
        is_line && self.proof.as_ref().is_some_and(|proof| proof.is(value))
    }

    fn is_there(&self) -> bool {
        self.view.is_there(&self.choice.peer)
    }

    fn ended(&self, end: PeerEnd) {
        self.view.note_asked(match end {
            PeerEnd::Answered => Asking::Answered,
            PeerEnd::Differs | PeerEnd::Refused => Asking::Refused,
            PeerEnd::Failed => Asking::Failed,
        });
        self.is_heard.set(end != PeerEnd::Failed);
        let why = match end {
            PeerEnd::Answered => return self.other.refusals().answered(&self.place),
            PeerEnd::Failed => return,
            PeerEnd::Differs => Refusal::OtherRules,
            PeerEnd::Refused => Refusal::Now,
        };
        if self.other.refusals().refused(&self.place, why, now()) {
            let name = &self.choice.peer.name;
            tracing::warn!(
                "{name} has other rules for a site, so it is asked seldom for its answers, and servers more often: give both machines \
                 the same sections of sites, paths and server groups"
            );
        }
    }
}

/// One that was never sent, or that nobody has answered, finds nothing out.
impl Drop for Question {
    fn drop(&mut self) {
        if !self.is_heard.get() {
            self.other.refusals().not_asked(&self.place, now());
        }
    }
}

fn now() -> Duration {
    Duration::from_millis(steady_ms())
}
