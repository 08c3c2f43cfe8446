//! The state functions of DNS.

use std::net::IpAddr;
use std::sync::Arc;

use afpa_dns::query::{Parsed, Query};
use afpa_dns::{Asker, Transport, answer, ask_by_tcp, refuse, rtype};
use afpa_framework::{Arrived, Datagram, DatagramModule, Datagrams, Looked, Now};

use crate::counters::DnsCounters;
use crate::store::{Serving, ZoneStore};

/// The part of DNS that one thread has.
#[derive(Debug)]
pub struct Dns {
    store: Arc<ZoneStore>,
    counters: Arc<DnsCounters>,
    /// Answers above the rate, of which each second one is given in short.
    above: u64,
}

/// A question, and who asks.
#[derive(Clone, Copy, Debug)]
pub struct Question<'d> {
    query: Query<'d>,
    asker: Asker,
}

impl Dns {
    /// The part of another thread.
    pub fn new(store: Arc<ZoneStore>, counters: Arc<DnsCounters>) -> Self {
        Self { store, counters, above: 0 }
    }

    /// The zone that a connection asks for as a whole, if it may have it.
    pub(crate) fn transfer<'m>(
        &self,
        message: &'m [u8],
        client: IpAddr,
    ) -> Option<(Query<'m>, Arc<afpa_dns::Zone>)> {
        let Parsed::Query(query) = Query::parse(message) else { return None };
        if !matches!(query.rtype, rtype::AXFR | rtype::IXFR) || query.class != 1 {
            return None;
        }
        let serving = self.store.serving();
        let lower = query.name.to_ascii_lowercase();
        let zone = serving.zones.exact(&lower)?;
        let allowed = serving.transfer.get(lower.as_slice())?;
        let client = client.to_canonical();
        if !allowed.iter().any(|network| network.contains(client)) {
            return None;
        }
        self.counters.transfers.add(1);
        Some((query, Arc::clone(zone)))
    }

    pub(crate) fn counters(&self) -> &DnsCounters {
        &self.counters
    }

    /// Whether a client that may have forged its address gets an answer; if not, whether it gets a short one.
    fn limit(&mut self, serving: &Serving, question: &Question<'_>, now: Now) -> Limited {
        let Question { query, asker } = question;
        let Some(limiter) = &serving.limiter else { return Limited::No };
        let cookie = query.edns.and_then(|edns| edns.cookie).unwrap_or_default();
        let secrets = &serving.settings.secrets;
        if asker.transport == Transport::Tcp
            || secrets.prove(cookie, asker.address, asker.now)
            || limiter.admits(asker.address, now.steady_us.saturating_mul(1000))
        {
            return Limited::No;
        }
        self.above = self.above.wrapping_add(1);
        if self.above % 2 == 1 { Limited::Short } else { Limited::Silent }
    }
}

enum Limited {
    No,
    Short,
    Silent,
}

impl DatagramModule for Dns {
    type Table = Datagrams;
    type Request<'d> = Question<'d>;

    fn derive_request<'d>(
        &mut self,
        now: Now,
        datagram: Datagram<'d>,
        out: &mut Vec<u8>,
    ) -> Arrived<Question<'d>> {
        let Datagram { client, is_connected, bytes } = datagram;
        let (transport, count) = match is_connected {
            true => (Transport::Tcp, &self.counters.tcp),
            false => (Transport::Udp, &self.counters.udp),
        };
        count.add(1);
        // Cookies have 32 bits for the time.
        let seconds = now.unix() as u32;
        let asker = Asker { address: client.ip().to_canonical(), transport, now: seconds };
        match Query::parse(bytes) {
            Parsed::Query(query) => Arrived::Request(Question { query, asker }),
            Parsed::Wrong(query, rcode) => {
                let store = Arc::clone(&self.store);
                let serving = store.serving();
                let question = Question { query, asker };
                // An answer to an invalid question is as long as it: forging has no gain, but must not be free.
                if !matches!(self.limit(&serving, &question, now), Limited::No) {
                    self.counters.dropped.add(1);
                    return Arrived::Deferred;
                }
                let answered = refuse(&serving.settings, asker, &query, rcode, out);
                self.counters.answered(&answered);
                Arrived::Refused
            }
            Parsed::Silence => {
                self.counters.ignored.add(1);
                Arrived::Deferred
            }
        }
    }

    fn derive_cached_response(
        &mut self,
        now: Now,
        question: Question<'_>,
        out: &mut Vec<u8>,
    ) -> Looked {
        let store = Arc::clone(&self.store);
        let serving = store.serving();
        let Question { query, asker } = &question;
        let answered = match self.limit(&serving, &question, now) {
            Limited::No => answer(&serving.zones, &serving.settings, *asker, query, out),
            Limited::Short => {
                self.counters.slipped.add(1);
                ask_by_tcp(&serving.settings, *asker, query, out)
            }
            Limited::Silent => {
                self.counters.dropped.add(1);
                return Looked::Miss;
            }
        };
        self.counters.answered(&answered);
        Looked::Hit
    }
}
