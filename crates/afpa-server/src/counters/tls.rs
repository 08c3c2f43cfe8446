//! The results of handshakes of TLS.

use afpa_framework::Counter;
use afpa_tls::profile::CIPHERS;
use afpa_tls::{EarlyData, Facts, Reason};

/// Counters of one core.
#[derive(Debug, Default)]
pub struct TlsCounters {
    /// Handshakes in progress now.
    pub in_progress: Counter,
    /// Complete ones that made a session, by version: TLS 1.2, TLS 1.3.
    full: [Counter; 2],
    /// Complete ones that resumed a session, likewise.
    resumed: [Counter; 2],
    /// Complete ones by cipher suite, in the order of [`CIPHERS`].
    by_cipher: [Counter; CIPHERS.len()],
    /// Complete ones by the protocol that was chosen: none, `http/1.1`, `h2`, another.
    by_protocol: [Counter; PROTOCOLS.len()],
    failed: [Counter; Reason::ALL.len()],
    /// Connections whose early data was accepted, and refused.
    early_data: [Counter; EARLY_DATA.len()],
}

const VERSIONS: [&str; 2] = ["TLSv1.2", "TLSv1.3"];

/// Protocols as they are counted.
const PROTOCOLS: [&str; 4] = ["none", "http/1.1", "h2", "other"];

/// The fates of early data, as they are counted.
const EARLY_DATA: [&str; 2] = ["accepted", "refused"];

impl TlsCounters {
    /// Handshakes that failed for this reason.
    pub fn failed(&self, why: Reason) -> &Counter {
        &self.failed[why as usize]
    }

    pub(crate) fn complete(&self, facts: &Facts) {
        let version = usize::from(facts.version == VERSIONS[1]);
        let by_version = if facts.resumed { &self.resumed } else { &self.full };
        by_version[version].add(1);
        if let Some(at) = CIPHERS.iter().position(|cipher| *cipher == facts.cipher) {
            self.by_cipher[at].add(1);
        }
        let protocol = match facts.protocol.as_deref() {
            None => 0,
            Some(b"http/1.1") => 1,
            Some(b"h2") => 2,
            Some(_) => 3,
        };
        self.by_protocol[protocol].add(1);
    }

    /// Counts the fate of early data. If it was accepted, that is known before the handshake is complete.
    pub(crate) fn early_data(&self, what: EarlyData) {
        match what {
            EarlyData::None => {}
            EarlyData::Accepted => self.early_data[0].add(1),
            EarlyData::Refused => self.early_data[1].add(1),
        }
    }

    /// Complete handshakes: version, whether a session was resumed, how many.
    pub fn by_version(&self) -> impl Iterator<Item = (&'static str, bool, u64)> {
        let kinds = [(false, &self.full), (true, &self.resumed)];
        kinds.into_iter().flat_map(|(resumed, counters)| {
            let named = VERSIONS.into_iter().zip(counters);
            named.map(move |(version, counter)| (version, resumed, counter.get()))
        })
    }

    /// Complete handshakes by cipher suite.
    pub fn by_cipher(&self) -> impl Iterator<Item = (&'static str, u64)> {
        CIPHERS.into_iter().zip(self.by_cipher.iter().map(Counter::get))
    }

    /// Complete handshakes by protocol.
    pub fn by_protocol(&self) -> impl Iterator<Item = (&'static str, u64)> {
        PROTOCOLS.into_iter().zip(self.by_protocol.iter().map(Counter::get))
    }

    /// Connections with early data, by its fate.
    pub fn by_early_data(&self) -> impl Iterator<Item = (&'static str, u64)> {
        EARLY_DATA.into_iter().zip(self.early_data.iter().map(Counter::get))
    }

    /// Handshakes that failed, by reason.
    pub fn by_reason(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Reason::ALL.into_iter().map(|why| (why.name(), self.failed(why).get()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_is_counted_by_all_that_is_known_of_it() {
        let counters = TlsCounters::default();
        let facts = Facts {
            version: "TLSv1.3",
            cipher: "TLS13_AES_128_GCM_SHA256",
            resumed: true,
            protocol: Some(b"http/1.1"[..].into()),
            peer: None,
            authorities: None,
            early_data: EarlyData::Accepted,
        };
        counters.complete(&facts);
        counters.early_data(facts.early_data);
        counters.failed(Reason::Alert).add(1);
        let of = |list: Vec<(&'static str, u64)>| list.into_iter().find(|(_, count)| *count > 0);
        assert_eq!(
            counters.by_version().find(|(.., count)| *count > 0),
            Some(("TLSv1.3", true, 1))
        );
        assert_eq!(of(counters.by_cipher().collect()), Some(("TLS13_AES_128_GCM_SHA256", 1)));
        assert_eq!(of(counters.by_protocol().collect()), Some(("http/1.1", 1)));
        assert_eq!(of(counters.by_reason().collect()), Some(("alert", 1)));
        assert_eq!(counters.by_early_data().collect::<Vec<_>>(), [("accepted", 1), ("refused", 0)]);
    }
}
