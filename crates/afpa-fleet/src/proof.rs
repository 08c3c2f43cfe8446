//! The parts of a heartbeat that decide about configurations, and about the machines that are asked for answers. They are sealed
//! with the secret of the fleet, so that nobody without it passes for a machine, and no reason of a refusal, which may quote a
//! configuration, is read at the servers.

use serde::{Deserialize, Serialize};

use crate::keyring::{hex, unhex};
use crate::load::Load;
use crate::message::{Heartbeat, NotUnderstood, PeerWord, Refused};
use crate::owners::MOST_TOLD;
use crate::seal::Secret;

#[derive(Serialize, Deserialize)]
struct Told {
    name: String,
    revision: Option<u64>,
    refused: Option<Refused>,
    load: Load,
    hands_over: bool,
    leaves: bool,
}

#[derive(Serialize, Deserialize)]
struct ToldOfPeer {
    name: String,
    peer: PeerWord,
    hands_over: bool,
    leaves: bool,
}

impl Heartbeat {
    /// Encodes it for the servers. A machine that takes configurations or answers peers has the secret.
    pub fn encode_by(&self, secret: Option<&Secret>) -> Vec<u8> {
        let Some(secret) = secret.filter(|_| self.takes || self.peer.is_some()) else {
            return Self { peer: None, ..self.clone() }.encode();
        };
        let sealed = self.takes.then(|| self.sealed_by(secret));
        let sealed_peer = self.peer.as_ref().map(|peer| {
            let (name, peer) = (self.name.clone(), peer.clone());
            let Self { hands_over, leaves, .. } = *self;
            let told = ToldOfPeer { name, peer, hands_over, leaves };
            let told = serde_json::to_vec(&told).unwrap_or_default();
            hex(&secret.seal(&self.purpose_of_peer(), &told))
        });
        Self { sealed, sealed_peer, ..self.without_claims() }.encode()
    }

    fn sealed_by(&self, secret: &Secret) -> String {
        let told = Told {
            name: self.name.clone(),
            revision: self.revision,
            refused: self.refused.clone(),
            load: self.load,
            hands_over: self.hands_over,
            leaves: self.leaves,
        };
        let told = serde_json::to_vec(&told).unwrap_or_default();
        hex(&secret.seal(&self.purpose(), &told))
    }

    /// Decodes bytes from the servers. Without a proof, what a heartbeat says about configurations and peers is left out.
    ///
    /// # Errors
    /// When they are no heartbeat, or the sealed part belongs to another machine.
    pub fn decode_by(bytes: &[u8], secret: Option<&Secret>) -> Result<Self, NotUnderstood> {
        let beat = Self::decode(bytes)?;
        let open = |sealed: &Option<String>, purpose: &str| {
            let sealed = sealed.as_deref().and_then(unhex);
            sealed.and_then(|sealed| secret?.open(purpose, &sealed))
        };
        let opened = open(&beat.sealed, &beat.purpose());
        let of_peer = open(&beat.sealed_peer, &beat.purpose_of_peer());
        let mut beat = beat.without_claims();
        if let Some(of_peer) = of_peer {
            let told: ToldOfPeer = serde_json::from_slice(&of_peer).map_err(|_| NotUnderstood)?;
            let ToldOfPeer { name, mut peer, hands_over, leaves } = told;
            if (&name, hands_over, leaves) != (&beat.name, beat.hands_over, beat.leaves) {
                return Err(NotUnderstood);
            }
            peer.hot.truncate(MOST_TOLD);
            (beat.peer, beat.proven) = (Some(peer), true);
        }
        let Some(opened) = opened else { return Ok(beat) };
        let told: Told = serde_json::from_slice(&opened).map_err(|_| NotUnderstood)?;
        if told.name != beat.name {
            return Err(NotUnderstood);
        }
        let Told { revision, refused, load, hands_over, leaves, .. } = told;
        let refused = refused.map(|refused| Refused::new(refused.revision, &refused.why));
        Ok(Self { takes: true, proven: true, revision, refused, load, hands_over, leaves, ..beat })
    }

    /// For this process and this number alone: nobody can repeat it as another one.
    fn purpose(&self) -> String {
        format!("heartbeat {} {}", self.instance, self.number)
    }

    fn purpose_of_peer(&self) -> String {
        format!("peer {} {}", self.instance, self.number)
    }

    fn without_claims(&self) -> Self {
        let (load, refused) = (Load::default(), None);
        let mut beat = Self { takes: false, revision: None, refused, load, ..self.clone() };
        (beat.sealed, beat.proven) = (None, false);
        (beat.peer, beat.sealed_peer) = (None, None);
        beat
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beat() -> Heartbeat {
        Heartbeat {
            instance: "x1".to_owned(),
            number: 7,
            name: "a".to_owned(),
            takes: true,
            revision: Some(3),
            refused: Some(Refused::new(4, "line 1: password = \"p\"")),
            ..Heartbeat::default()
        }
    }

    fn secret(byte: u8) -> Secret {
        Secret::of(&[byte; 32]).expect("a secret")
    }

    #[test]
    fn a_heartbeat_decides_only_with_the_secret() {
        let sent = beat().encode_by(Some(&secret(1)));
        let text = String::from_utf8(sent.clone()).expect("JSON");
        assert!(!text.contains("password") && !text.contains("\"revision\":3"), "{text}");
        let heard = Heartbeat::decode_by(&sent, Some(&secret(1))).expect("a heartbeat");
        assert_eq!(heard, Heartbeat { proven: true, ..beat() });
        for other in [None, Some(&secret(2))] {
            let heard = Heartbeat::decode_by(&sent, other).expect("a heartbeat");
            assert!(!heard.takes && !heard.proven && heard.revision.is_none());
            assert!(heard.refused.is_none());
        }
    }

    #[test]
    fn a_machine_is_a_peer_only_with_the_secret() {
        let address = "10.0.0.1:8471".parse().expect("an address");
        let peer = PeerWord { address, rate: 7, shed: 3, hot: Vec::new() };
        let beat =
            Heartbeat { takes: false, refused: None, revision: None, peer: Some(peer), ..beat() };
        let sent = beat.encode_by(Some(&secret(1)));
        assert!(!String::from_utf8_lossy(&sent).contains("10.0.0.1"));
        let heard = Heartbeat::decode_by(&sent, Some(&secret(1))).expect("a heartbeat");
        assert_eq!(heard, Heartbeat { proven: true, ..beat.clone() });
        let strange = Heartbeat::decode_by(&sent, Some(&secret(2))).expect("a heartbeat");
        assert!(strange.peer.is_none() && !strange.proven);
        let plain = Heartbeat::decode_by(&beat.encode(), Some(&secret(1))).expect("a heartbeat");
        assert!(plain.peer.is_none() && !plain.proven, "a claim is nothing");
        let mut changed = Heartbeat::decode(&sent).expect("read");
        changed.leaves = true;
        assert!(Heartbeat::decode_by(&changed.encode(), Some(&secret(1))).is_err());
        let last = Heartbeat { leaves: true, hands_over: true, ..beat };
        let heard = Heartbeat::decode_by(&last.encode_by(Some(&secret(1))), Some(&secret(1)));
        assert!(heard.is_ok_and(|heard| heard.leaves && heard.hands_over && heard.proven));
        (changed.leaves, changed.number) = (false, 9);
        let repeated = Heartbeat::decode_by(&changed.encode(), Some(&secret(1))).expect("read");
        assert!(repeated.peer.is_none());
    }

    #[test]
    fn a_claim_without_a_proof_or_with_that_of_another_number_is_none() {
        let claimed = Heartbeat::decode_by(&beat().encode(), Some(&secret(1))).expect("read");
        assert!(!claimed.takes && claimed.revision.is_none());
        let sent = beat().encode_by(Some(&secret(1)));
        let mut repeated = Heartbeat::decode(&sent).expect("read");
        repeated.number = 8;
        let heard = Heartbeat::decode_by(&repeated.encode(), Some(&secret(1))).expect("read");
        assert!(!heard.takes && !heard.proven);
        repeated.number = 7;
        repeated.name = "b".to_owned();
        assert!(Heartbeat::decode_by(&repeated.encode(), Some(&secret(1))).is_err());
    }
}
