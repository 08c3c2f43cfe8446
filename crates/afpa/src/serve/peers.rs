//! Other machines of the fleet, as the shared cache asks them for answers and is asked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use afpa_fleet::{ANSWER, Choice, Peer, PeersView, Proof, Secret, Serving};
use afpa_framework::steady_ms;
use afpa_proxy::exchange::Settings;
use afpa_proxy::pool::TlsToServers;
use afpa_proxy::select::{
    Address, Group, GroupSettings, QueueSettings, ServerAddress, ServerSettings,
};
use afpa_shared_cache::{FromPeer, PeerClient, PeerEnd, PeerQuestion, Peers, ToPeer};
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
    groups: Mutex<HashMap<String, Arc<Group>>>,
}

/// A question.
struct Question {
    view: PeersView,
    choice: Choice,
    place: [u8; 16],
    proof: Option<Proof>,
}

/// The machines of a fleet, for the shared cache, and how the others are reached.
pub(super) fn of(view: PeersView, tls: ClientTls) -> Arc<dyn Peers> {
    let (settings, groups) = (Arc::new(settings()), Mutex::default());
    Arc::new(OfFleet { view, settings, tls, groups })
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
    fn group(&self, peer: &Peer) -> Arc<Group> {
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(group) = groups.get(&peer.instance) {
            return Arc::clone(group);
        }
        if groups.len() >= MOST {
            groups.clear();
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
        groups.insert(peer.instance.clone(), Arc::clone(&group));
        group
    }
}

impl Peers for OfFleet {
    fn choose(&self, place: &[u8; 16], key: &[u8]) -> Option<ToPeer> {
        let choice = self.view.choose(place, key)?;
        let (group, settings) = (self.group(&choice.peer), Arc::clone(&self.settings));
        let (view, place, keeps) = (self.view.clone(), *place, choice.keeps);
        let question = Box::new(Question { view, choice, place, proof: None });
        Some(ToPeer { group, settings, keeps, question })
    }

    fn read(&self, head: &[u8]) -> Option<FromPeer> {
        let (question, proof) = self.view.read(head)?;
        let afpa_fleet::Question { place, key, client, secure, .. } = question;
        // It concerns the connection between the two machines alone.
        let lines = format!("Connection: {ANSWER}\r\n{}", proof.line());
        let client = PeerClient { address: client, secure };
        Some(FromPeer { place, key, client, proof: lines.into_bytes().into() })
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
            PeerEnd::Answered => afpa_fleet::Asking::Answered,
            PeerEnd::Refused => afpa_fleet::Asking::Refused,
            PeerEnd::Failed => afpa_fleet::Asking::Failed,
        });
    }
}
