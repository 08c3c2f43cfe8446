//! The state functions of DNS.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use afpa_dns::query::{Parsed, Query, Rcode};
use afpa_dns::tsig::Signer;
use afpa_dns::{Asker, Transport, answer, ask_by_tcp, check, refuse, rtype};
use afpa_dnstap::{Sample, Tap};
use afpa_framework::{Arrived, Datagram, DatagramModule, Datagrams, Looked, Now, Protocol};

use crate::counters::DnsCounters;
use crate::held::Held;
use crate::store::{Serving, Transferable, ZoneStore};

/// The part of DNS that one thread has.
#[derive(Debug)]
pub struct Dns {
    store: Arc<ZoneStore>,
    counters: Arc<DnsCounters>,
    /// Answers above the rate, of which each second one is given in short.
    above: u64,
    /// Answers since the last sample.
    passed: u32,
    /// Where the answer that was just given goes as a sample.
    due: Option<Arc<Tap>>,
}

/// A question, and who asks.
#[derive(Debug)]
pub struct Question<'d> {
    query: Query<'d>,
    asker: Asker,
    signer: Option<Signer>,
}

/// A zone that a connection asks for as a whole, or for what has changed.
pub(crate) struct Transfer<'m> {
    pub(crate) query: Query<'m>,
    pub(crate) zone: Transferable,
    pub(crate) signer: Option<Signer>,
}

impl Dns {
    /// The part of another thread.
    pub fn new(store: Arc<ZoneStore>, counters: Arc<DnsCounters>) -> Self {
        Self { store, counters, above: 0, passed: 0, due: None }
    }

    /// The zone that a connection asks for as a whole, if it may have it.
    pub(crate) fn transfer<'m>(
        &self,
        now: Now,
        message: &'m [u8],
        client: IpAddr,
    ) -> Option<Transfer<'m>> {
        let Parsed::Query(query) = Query::parse(message) else { return None };
        if !matches!(query.rtype, rtype::AXFR | rtype::IXFR) || query.class != 1 {
            return None;
        }
        let serving = self.store.serving();
        let zone = serving.transfer.get(query.name.to_ascii_lowercase().as_slice())?;
        // A wrong signature is answered as that of any other question.
        let signer = check(&serving.settings, message, &query, now.unix()).ok()?;
        if !zone.is_for(client.to_canonical(), signer.as_ref()) {
            return None;
        }
        self.counters.transfers.add(1);
        Some(Transfer { query, zone: zone.clone(), signer })
    }

    /// Takes a sample of the answer that was just given, if one is due.
    #[inline]
    pub(crate) fn sample(&mut self, now: Now, datagram: Datagram<'_>, response: &[u8]) {
        if let Some(tap) = self.due.take() {
            let Datagram { client, is_connected: is_tcp, bytes: query } = datagram;
            let unix = Duration::from_micros(now.unix_us);
            let sample = Sample { client, server: None, is_tcp, unix, query, response };
            tap.take(concat!("afpa ", env!("CARGO_PKG_VERSION")), &sample);
        }
    }

    /// The transfers that are going on.
    pub(crate) fn held(&self) -> Arc<Held> {
        Arc::clone(self.store.held())
    }

    pub(crate) fn counters(&self) -> &DnsCounters {
        &self.counters
    }

    /// Whether a client that may have forged its address gets an answer; if not, whether it gets a short one.
    fn limit(&mut self, serving: &Serving, question: &Question<'_>, now: Now) -> Limited {
        let Question { query, asker, .. } = question;
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

impl Dns {
    /// An answer to an invalid question is about as long as it: forging has no gain, but must not be free.
    fn refuse<'d>(
        &mut self,
        now: Now,
        question: Question<'d>,
        rcode: Rcode,
        out: &mut Vec<u8>,
    ) -> Arrived<Question<'d>> {
        let store = Arc::clone(&self.store);
        let serving = store.serving();
        if !matches!(self.limit(&serving, &question, now), Limited::No) {
            self.counters.dropped.add(1);
            return Arrived::Deferred;
        }
        let start = out.len();
        let Question { query, asker, signer } = question;
        let answered = refuse(&serving.settings, asker, &query, rcode, out);
        self.counters.answered(&answered);
        if let Some(mut signer) = signer {
            signer.sign(out, start, now.unix());
        }
        Arrived::Refused
    }
}

enum Limited {
    No,
    Short,
    Silent,
}

impl Protocol for Dns {
    type Table = Datagrams;
}

impl DatagramModule for Dns {
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
        let query = match Query::parse(bytes) {
            Parsed::Query(query) => query,
            Parsed::Wrong(query, rcode) => {
                return self.refuse(now, Question { query, asker, signer: None }, rcode, out);
            }
            Parsed::Silence => {
                self.counters.ignored.add(1);
                return Arrived::Deferred;
            }
        };
        if query.signature.is_none() {
            return Arrived::Request(Question { query, asker, signer: None });
        }
        let checked = check(&self.store.serving().settings, bytes, &query, now.unix());
        match checked {
            Ok(signer) => Arrived::Request(Question { query, asker, signer }),
            Err((rcode, signer)) => self.refuse(now, Question { query, asker, signer }, rcode, out),
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
        let start = out.len();
        let Question { query, asker, .. } = &question;
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
        if let Some(tap) = &serving.tap {
            self.passed += 1;
            if self.passed >= tap.one_in {
                self.passed = 0;
                self.due = Some(Arc::clone(tap));
            }
        }
        if let Some(mut signer) = question.signer {
            signer.sign(out, start, now.unix());
        }
        Looked::Hit
    }
}
