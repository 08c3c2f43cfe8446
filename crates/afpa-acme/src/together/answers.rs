//! The answers to challenges of orders that any of the machines has placed: all machines show them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair};

use super::record::{Kind, OrderRecord, Proof};
use crate::challenges::{AlpnCertificate, Challenges, Shown};
use crate::error::AcmeError;
use crate::zone::RecordInZone;

/// An answer that is shown until this is dropped.
#[derive(Debug)]
pub(crate) enum Showing {
    Shown(#[expect(dead_code, reason = "held until the order has ended")] Shown),
    InZone(#[expect(dead_code, reason = "held until the order has ended")] RecordInZone),
}

/// The answers of all orders, by the key of the record. They outlive a reload, because orders of other machines do.
#[derive(Clone, Debug, Default)]
pub struct Answers(Arc<Mutex<BTreeMap<String, Open>>>);

#[derive(Debug)]
struct Open {
    proofs: Vec<Proof>,
    #[expect(dead_code, reason = "held until the order has ended")]
    showing: Vec<Showing>,
}

impl Answers {
    /// A record has changed: its new answers replace those that are shown.
    pub fn note(&self, challenges: &Challenges, key: &str, value: Option<&str>) {
        if !key.starts_with(super::CERTIFICATE) {
            return;
        }
        let record = OrderRecord::read(value).unwrap_or_default();
        let proofs = record.order.map(|order| order.proofs).unwrap_or_default();
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.get(key).map(|open| &*open.proofs).unwrap_or_default() == proofs {
            return;
        }
        // The old answers go first: dropped behind the new ones, they would remove those with the same name.
        drop(open.remove(key));
        if proofs.is_empty() {
            return;
        }
        let mut showing = Vec::new();
        for proof in &proofs {
            match show(challenges, proof) {
                Ok(one) => showing.push(one),
                Err(error) => {
                    tracing::warn!("a challenge to the fleet is not answered here: {error}");
                }
            }
        }
        open.insert(key.to_owned(), Open { proofs, showing });
    }
}

/// Shows an answer on this machine.
pub(crate) fn show(challenges: &Challenges, proof: &Proof) -> Result<Showing, AcmeError> {
    let Proof { kind, place, answer } = proof;
    Ok(match kind {
        Kind::Response => Showing::Shown(challenges.show_response(place, answer)),
        Kind::Certificate => {
            let digest = BASE64_URL_SAFE_NO_PAD.decode(answer).ok();
            let digest = digest.filter(|digest| digest.len() == 32);
            let digest =
                digest.ok_or_else(|| AcmeError::Certificate("its digest is none".to_owned()))?;
            let made = alpn_certificate(place, &digest)
                .map_err(|error| AcmeError::Certificate(error.to_string()))?;
            Showing::Shown(challenges.show_certificate(place, made))
        }
        Kind::Record => {
            let none = || AcmeError::Zone {
                name: place.clone(),
                why: "this machine serves no zone".to_owned(),
            };
            let zones = challenges.zones().ok_or_else(none)?;
            Showing::InZone(RecordInZone::set(zones, place.clone(), answer.clone())?)
        }
    })
}

/// The certificate of RFC 8737 section 3: signed by itself, for the name, with the digest of the proof.
fn alpn_certificate(name: &str, digest: &[u8]) -> Result<AlpnCertificate, rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut wanted = CertificateParams::new(vec![name.to_owned()])?;
    wanted.distinguished_name = DistinguishedName::new();
    wanted.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let certificate = wanted.self_signed(&key)?;
    Ok(AlpnCertificate { certificate: certificate.der().to_vec(), key: key.serialize_der() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::together::Begun;

    const KEY: &str = "certificate a.test";

    fn record(proofs: &[Proof]) -> String {
        let (url, key) = ("https://authority.test/".to_owned(), String::new());
        let order = Some(Begun { url, key, proofs: proofs.to_vec() });
        OrderRecord { order, ..OrderRecord::default() }.write()
    }

    fn proof(kind: Kind, place: &str, answer: &str) -> Proof {
        Proof { kind, place: place.to_owned(), answer: answer.to_owned() }
    }

    #[test]
    fn answers_are_shown_as_long_as_the_record_has_them() {
        let (answers, challenges) = (Answers::default(), Challenges::default());
        let digest = BASE64_URL_SAFE_NO_PAD.encode([7; 32]);
        let [one, other] = ["one", "two"].map(|token| proof(Kind::Response, token, "proof"));
        let alpn = proof(Kind::Certificate, "a.test", &digest);
        answers.note(&challenges, KEY, Some(&record(&[one.clone(), alpn.clone()])));
        assert_eq!(challenges.response("one").as_deref(), Some("proof"));
        let made = challenges.certificate("a.test").expect("it is shown");
        answers.note(&challenges, KEY, Some(&record(&[one, alpn.clone()])));
        assert_eq!(challenges.certificate("a.test"), Some(made.clone()), "it is the same one");
        answers.note(&challenges, KEY, Some(&record(&[other, alpn])));
        assert_eq!(challenges.response("one"), None);
        assert!(challenges.response("two").is_some());
        assert_ne!(challenges.certificate("a.test"), Some(made), "made anew, and still there");
        answers.note(&challenges, KEY, Some(&OrderRecord::default().write()));
        assert_eq!((challenges.response("two"), challenges.certificate("a.test")), (None, None));
    }

    #[test]
    fn what_cannot_be_shown_is_left_out() {
        let (answers, challenges) = (Answers::default(), Challenges::default());
        let bad = [
            proof(Kind::Certificate, "a.test", "AAAA"),
            proof(Kind::Certificate, "a.test", "*"),
            proof(Kind::Record, "_acme-challenge.a.test", "text"),
            proof(Kind::Response, "one", "proof"),
        ];
        answers.note(&challenges, KEY, Some(&record(&bad)));
        assert!(challenges.response("one").is_some());
        assert_eq!(challenges.certificate("a.test"), None);
        for (key, value) in [("account x", None), (KEY, Some("nonsense")), (KEY, None)] {
            answers.note(&challenges, key, value);
        }
        assert_eq!(challenges.response("one"), None);
        answers.note(&challenges, "account x", Some(&record(&bad)));
        assert_eq!(challenges.response("one"), None);
    }
}
