//! Which certificate a client gets: that of the name it asks for (SNI, RFC 6066 section 3).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use arc_swap::{ArcSwap, ArcSwapOption};
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::certificate::Certificate;

/// The certificates of all listeners. They are replaced as a whole; handshakes in progress go on with what they have.
#[derive(Default)]
pub struct Certificates {
    table: ArcSwap<Table>,
    challenges: ArcSwapOption<ChallengeCertificates>,
    on_demand: ArcSwapOption<IsOrdered>,
    /// Handshakes that wait for a certificate.
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    last: u64,
    wakers: HashMap<u64, Waker>,
}

/// The place of a handshake among those that wait. Its drop gives the place up.
#[derive(Debug, Default)]
pub(crate) struct Waiter(Option<(Arc<Certificates>, u64)>);

/// The certificate by which the challenge for a name, in lower case, is answered (RFC 8737 section 3), and its key in
/// PKCS#8, both in DER; `None`: no challenge for that name is open.
pub type ChallengeCertificates = Box<dyn Fn(&str) -> Option<(Vec<u8>, Vec<u8>)> + Send + Sync>;

/// Told of a name, in lower case, that a client asks for, and whether there is a certificate for it. If not: whether one is
/// on its way, so that the client waits until it is seen here.
pub type IsOrdered = Box<dyn Fn(&str, bool) -> bool + Send + Sync>;

/// Handshakes that wait for certificates at a time; the others go on without.
pub(crate) const MOST_WAITING: usize = 4096;

/// The protocol by which an authority asks for such a certificate.
pub const CHALLENGE: &[u8] = b"acme-tls/1";

impl std::fmt::Debug for Certificates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Certificates({} names)", self.table.load().by_name.len())
    }
}

/// Several certificates may have a name in common, of ECDSA and of RSA: a client gets the first that it can use.
#[derive(Default)]
struct Table {
    /// By name; those for `*.example.org` by `.example.org`.
    by_name: HashMap<Box<str>, Vec<Arc<CertifiedKey>>>,
    /// For clients that ask for no name, or for an unknown one: the first certificate of the configuration, and the
    /// others that share a name with it.
    default: Vec<Arc<CertifiedKey>>,
}

impl Certificates {
    /// Replaces all of them. The first is the default.
    pub fn replace(&self, certificates: &[Certificate]) {
        self.replace_with(certificates, &[]);
    }

    /// As [`replace`](Self::replace); `others` are used for their own names alone, never as the default.
    pub fn replace_with(&self, certificates: &[Certificate], others: &[Certificate]) {
        let mut by_name: HashMap<Box<str>, Vec<Arc<CertifiedKey>>> = HashMap::new();
        for certificate in certificates.iter().chain(others) {
            for name in certificate.names() {
                let key = name.strip_prefix('*').unwrap_or(name).into();
                by_name.entry(key).or_default().push(Arc::clone(certificate.certified()));
            }
        }
        let default = match certificates.first() {
            None => Vec::new(),
            Some(first) => {
                let shares = |other: &&Certificate| {
                    std::ptr::eq(*other, first) || first.names().any(|name| has(other, name))
                };
                let same = certificates.iter().filter(shares);
                same.map(|other| Arc::clone(other.certified())).collect()
            }
        };
        self.table.store(Arc::new(Table { by_name, default }));
    }

    /// Has clients wait for certificates that are on their way from now on; `None`: not any more.
    pub fn wait_on_demand(&self, on_demand: Option<IsOrdered>) {
        self.on_demand.store(on_demand.map(Arc::new));
        self.settled();
    }

    /// Handshakes that wait look again: certificates were replaced, or are not going to come.
    pub fn settled(&self) {
        let wakers = std::mem::take(&mut self.waiting().wakers);
        wakers.into_values().for_each(Waker::wake);
    }

    /// Waits, at this place, for a certificate that is on its way, for a client that asks for this name, in lower case.
    /// `None`: there is nothing to wait for, or no room.
    fn wait(&self, place: Option<u64>, cx: &Context<'_>, name: &str) -> Option<u64> {
        let on_demand = self.on_demand.load();
        let is_coming = on_demand.as_ref()?;
        // Take the lock before the check, so that `settled` cannot run between check and registration.
        let mut waiting = self.waiting();
        let is_there = self.table.load().find(name).is_some();
        if !is_coming(name, is_there) || is_there {
            return None;
        }
        let place = place.unwrap_or_else(|| {
            waiting.last += 1;
            waiting.last
        });
        if waiting.wakers.len() >= MOST_WAITING && !waiting.wakers.contains_key(&place) {
            return None;
        }
        waiting.wakers.insert(place, cx.waker().clone());
        Some(place)
    }

    /// Whether a client may have to wait.
    pub(crate) fn waits_on_demand(&self) -> bool {
        self.on_demand.load().is_some()
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers the challenges of an authority from now on; `None`: not any more.
    pub fn answer_challenges(&self, challenges: Option<ChallengeCertificates>) {
        self.challenges.store(challenges.map(Arc::new));
    }

    /// The certificate for a client that asks for nothing but the answer to a challenge.
    fn challenge(&self, hello: &ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let challenges = self.challenges.load();
        let (certificate, key) = challenges.as_ref()?(hello.server_name()?)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key));
        let key = any_supported_type(&key).ok()?;
        Some(Arc::new(CertifiedKey::new(vec![CertificateDer::from(certificate)], key)))
    }
}

impl Waiter {
    /// Waits for a certificate that is on its way, for a client that asks for this name, in lower case.
    pub(crate) fn poll(
        &mut self,
        certificates: &Arc<Certificates>,
        cx: &Context<'_>,
        name: &str,
    ) -> Poll<()> {
        let place = self.0.as_ref().map(|(_, place)| *place);
        match certificates.wait(place, cx, name) {
            Some(place) => {
                self.0 = Some((Arc::clone(certificates), place));
                Poll::Pending
            }
            None => Poll::Ready(()),
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        if let Some((certificates, place)) = &self.0 {
            // The binding drops the waker after the lock is released: that drop may run code that takes the lock.
            let _waker = certificates.waiting().wakers.remove(place);
        }
    }
}

/// An authority offers nothing else (RFC 8737 section 4).
pub(crate) fn asks_for_challenge(hello: &ClientHello<'_>) -> bool {
    hello.alpn().is_some_and(|offered| offered.eq([CHALLENGE]))
}

fn has(certificate: &Certificate, name: &str) -> bool {
    certificate.names().any(|other| other == name)
}

impl Table {
    fn find(&self, name: &str) -> Option<&[Arc<CertifiedKey>]> {
        let exact = self.by_name.get(name);
        let found = exact.or_else(|| self.by_name.get(name.get(name.find('.')?..)?));
        found.map(Vec::as_slice)
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        if asks_for_challenge(&hello) {
            return self.challenge(&hello);
        }
        let table = self.table.load();
        // rustls gives the name in lower case.
        let found = hello.server_name().and_then(|name| table.find(name));
        let offered = hello.signature_schemes();
        let usable = |key: &&Arc<CertifiedKey>| key.key.choose_scheme(offered).is_some();
        let keys = found.unwrap_or(&table.default);
        keys.iter().find(usable).or(keys.first()).map(Arc::clone)
    }
}
