//! The record of a certificate that several machines share, as JSON. It comes from another machine, so it is read with bounds.

use serde::{Deserialize, Serialize};

/// Bytes of a record that are read.
const LONGEST: usize = 256 * 1024;

/// Names of a certificate.
const MOST_PROOFS: usize = 256;

/// Characters of an URL, a token, an answer or a reason.
const LONGEST_WORD: usize = 4096;

/// A certificate, or its order.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OrderRecord {
    /// The last certificate: its key and its chain, PEM.
    pub certificate: Option<String>,
    /// The order that is under way.
    pub order: Option<Begun>,
    /// Failures in a row, of all machines.
    pub failures: u32,
    /// No machine orders before this second of the Unix epoch.
    pub not_yet: u64,
    /// Why the last order failed.
    pub why: Option<String>,
}

/// An order that the authority has.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    /// Its URL.
    pub url: String,
    /// The key of the certificate, PEM.
    pub key: String,
    /// The answers to its challenges.
    #[serde(default)]
    pub proofs: Vec<Proof>,
}

/// The answer to a challenge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// Of which kind.
    pub kind: Kind,
    /// The token of a response; the name of a certificate; that of a record in the DNS.
    pub place: String,
    /// The response; the digest of a certificate, in base64url; the text of the record.
    pub answer: String,
}

/// The kind of a challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// A response on port 80.
    #[serde(rename = "http-01")]
    Response,
    /// A certificate on port 443.
    #[serde(rename = "tls-alpn-01")]
    Certificate,
    /// A record in the DNS.
    #[serde(rename = "dns-01")]
    Record,
}

/// Nobody sees the key.
impl std::fmt::Debug for Begun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Begun").field("url", &self.url).field("proofs", &self.proofs).finish()
    }
}

/// Nor that of a certificate.
impl std::fmt::Debug for OrderRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("OrderRecord");
        shown.field("has_certificate", &self.certificate.is_some()).field("order", &self.order);
        shown.field("failures", &self.failures).field("not_yet", &self.not_yet);
        shown.field("why", &self.why).finish_non_exhaustive()
    }
}

/// The text is not the record of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a record of the fleet is no certificate's: is another version of AFPA on one of the machines?"
)]
pub struct NotARecord;

impl OrderRecord {
    /// Reads one. No text is one that says nothing yet.
    ///
    /// # Errors
    /// When it is none, or too long.
    pub fn read(text: Option<&str>) -> Result<Self, NotARecord> {
        let Some(text) = text else { return Ok(Self::default()) };
        if text.len() > LONGEST {
            return Err(NotARecord);
        }
        let record: Self = serde_json::from_str(text).map_err(|_| NotARecord)?;
        let is_word = |word: &str| word.len() <= LONGEST_WORD && !word.contains(char::is_control);
        let is_fine = record.order.as_ref().is_none_or(|order| {
            let proofs = &order.proofs;
            let fit = |proof: &Proof| is_word(&proof.place) && is_word(&proof.answer);
            order.url.starts_with("https://")
                && is_word(&order.url)
                && proofs.len() <= MOST_PROOFS
                && proofs.iter().all(fit)
        });
        let why = record.why.as_deref().unwrap_or_default();
        if is_fine && is_word(why) { Ok(record) } else { Err(NotARecord) }
    }

    /// As text.
    pub fn write(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The record after one more failure.
    pub(crate) fn failed(&mut self, why: &str, not_yet: u64) {
        let mut line = why.split_whitespace().collect::<Vec<_>>().join(" ");
        line.retain(|c| !c.is_control());
        let end =
            (0..=line.len().min(LONGEST_WORD / 4)).rev().find(|at| line.is_char_boundary(*at));
        line.truncate(end.unwrap_or(0));
        self.failures = self.failures.saturating_add(1);
        (self.not_yet, self.why) = (not_yet, Some(line));
    }

    /// The record when a certificate has come.
    pub(crate) fn come(certificate: String) -> Self {
        Self { certificate: Some(certificate), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn full() -> OrderRecord {
        let place = "token".to_owned();
        let proof = Proof { kind: Kind::Response, place, answer: "token.thumb".to_owned() };
        let (url, key) = ("https://authority.test/order/1".to_owned(), "PEM".to_owned());
        OrderRecord {
            certificate: Some("PEM\nPEM\n".to_owned()),
            order: Some(Begun { url, key, proofs: vec![proof] }),
            failures: 2,
            not_yet: 7,
            why: Some("refused".to_owned()),
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        assert_eq!(OrderRecord::read(Some(&full().write())), Ok(full()));
        assert_eq!(OrderRecord::read(None), Ok(OrderRecord::default()));
        let mut failed = full();
        failed.failed(&format!("one\n\u{1b}[2J two {}", "\u{e9}".repeat(5000)), 9);
        assert_eq!(OrderRecord::read(Some(&failed.write())), Ok(failed.clone()));
        assert_eq!((failed.failures, failed.not_yet), (3, 9));
        assert!(failed.why.unwrap().starts_with("one [2J two \u{e9}"));
        assert!(!format!("{:?}", full()).contains("PEM"), "nobody sees a key");
    }

    #[test]
    fn hostile_records_are_refused() {
        let spoiled = |spoil: &dyn Fn(&mut Begun)| {
            let mut record = full();
            spoil(record.order.as_mut().unwrap());
            record.write()
        };
        let long = "x".repeat(LONGEST_WORD + 1);
        for text in [
            String::new(),
            "[1]".to_owned(),
            "{\"order\":{}}".to_owned(),
            "{\"failures\":-1}".to_owned(),
            "{\"why\":\"\\u001b[2J\"}".to_owned(),
            format!("{{\"certificate\":\"{}\"}}", "x".repeat(LONGEST)),
            spoiled(&|order| order.url = "http://authority.test/".to_owned()),
            spoiled(&|order| order.url = format!("https://{long}")),
            spoiled(&|order| order.proofs[0].place = "a\nb".to_owned()),
            spoiled(&|order| order.proofs[0].answer.clone_from(&long)),
            spoiled(&|order| order.proofs = vec![order.proofs[0].clone(); MOST_PROOFS + 1]),
            full().write().replace("http-01", "http-02"),
        ] {
            assert_eq!(OrderRecord::read(Some(&text)), Err(NotARecord), "{text:.80}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*") {
            if let Ok(record) = OrderRecord::read(Some(&text)) {
                prop_assert_eq!(OrderRecord::read(Some(&record.write())), Ok(record));
            }
        }
    }
}
