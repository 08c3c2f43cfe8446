//! TLS for QUIC (RFC 9001): the same certificates, groups, authorities of clients and keys of tickets, and the suites of
//! TLS 1.3 with the headers and packets of QUIC. Records are not QUIC's, so the machine is not needed.

mod tokens;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use aws_lc_rs::hmac::{self, HMAC_SHA256};
use aws_lc_rs::rand;
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::crypto::{HandshakeTokenKey, HmacKey, ServerConfig, Session};
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::cipher_suite as suite;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::{ProducesTickets, StoresServerSessions};

use crate::certificate::subject;
use crate::greeting::ListenerTls;
use crate::machine::{EarlyData, Facts};
use crate::server::{ServerTls, SettingsError};
use tokens::Tokens;
pub use tokens::{TOKEN_LIFE, make_token, period_of};

/// HTTP/3 in ALPN (RFC 9114 section 3.1).
pub const PROTOCOL: &[u8] = b"h3";

/// The settings of a listener for QUIC.
#[derive(Clone)]
pub struct QuicTls {
    tls: ServerTls,
    config: Arc<QuicServerConfig>,
    accepts_early_data: bool,
}

impl QuicTls {
    /// The settings; `None`: the name that a client asks for decides about them, and its first packet is not read for that.
    /// `limits`: those that the transport and HTTP/3 announce to a client, in some form. A client that sends early data relies on
    /// those of its session (RFC 9000 section 7.4.1, RFC 9114 section 7.2.4.2), so a session is good for the same ones.
    ///
    /// # Errors
    /// When the settings cannot be used.
    pub fn of(listener: &ListenerTls, limits: &[u8]) -> Result<Option<Self>, SettingsError> {
        let Some(tls) = listener.same_for_all() else { return Ok(None) };
        let provider = CryptoProvider {
            cipher_suites: vec![
                suite::TLS13_AES_128_GCM_SHA256,
                suite::TLS13_AES_256_GCM_SHA384,
                suite::TLS13_CHACHA20_POLY1305_SHA256,
            ],
            ..tls.provider()
        };
        let change = |settings: &mut crate::ServerSettings| {
            settings.profile = crate::Profile::Modern;
            settings.protocols = vec![PROTOCOL.to_vec()];
            if let Some(early_data) = &mut settings.early_data {
                // Windows bound it (RFC 9001 section 4.6.1).
                early_data.most = u32::MAX;
            }
        };
        let mut config = rustls::ServerConfig::clone(&*tls.again(change, provider)?);
        let accepts_early_data = config.max_early_data_size > 0;
        config.ticketer = match accepts_early_data {
            // Sessions are in the store, and each is good for one handshake.
            true => Arc::new(NoTickets),
            false => Arc::new(Tickets(config.ticketer)),
        };
        if accepts_early_data {
            let limits = [&b"quic"[..], limits].concat().into();
            config.session_storage =
                Arc::new(SameLimits { sessions: config.session_storage, limits });
        }
        let config = QuicServerConfig::try_from(config)
            .map_err(|error| SettingsError::from(error.to_string()))?;
        Ok(Some(Self { tls: tls.clone(), config: Arc::new(config), accepts_early_data }))
    }

    /// Whether early data may be accepted.
    pub fn accepts_early_data(&self) -> bool {
        self.accepts_early_data
    }

    /// For the transport.
    pub fn crypto(&self) -> Arc<dyn ServerConfig> {
        Arc::<QuicServerConfig>::clone(&self.config)
    }

    /// The results of a handshake, whose suite the transport does not tell; `None`: the certificate of the client is not
    /// valid any more, as that of a session that was resumed may be. `has_early`: early data was accepted. Of other
    /// handshakes the transport does not tell whether they resume a session.
    pub fn facts(&self, session: &dyn Session, has_early: bool) -> Option<Facts> {
        let chain = session.peer_identity();
        let chain = chain.and_then(|chain| chain.downcast::<Vec<CertificateDer<'static>>>().ok());
        if let Some(chain) = &chain {
            self.tls.verify(chain, UnixTime::now()).ok()?;
        }
        let peer = chain.as_ref().and_then(|chain| chain.first());
        Some(Facts {
            version: "TLSv1.3",
            cipher: "unknown",
            resumed: has_early,
            protocol: Some(PROTOCOL.into()),
            peer: peer.and_then(|peer| subject(peer)).map(Into::into),
            authorities: self.tls.authorities(),
            early_data: if has_early { EarlyData::Accepted } else { EarlyData::None },
        })
    }
}

impl std::fmt::Debug for QuicTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("QuicTls")
    }
}

/// Sessions in a store, each for the limits that its client learnt.
struct SameLimits {
    sessions: Arc<dyn StoresServerSessions>,
    limits: Box<[u8]>,
}

impl std::fmt::Debug for SameLimits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SameLimits")
    }
}

impl StoresServerSessions for SameLimits {
    fn put(&self, id: Vec<u8>, state: Vec<u8>) -> bool {
        self.sessions.put(id, [&*self.limits, &state].concat())
    }

    fn get(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn take(&self, id: &[u8]) -> Option<Vec<u8>> {
        self.sessions.take(id)?.strip_prefix(&*self.limits).map(Into::into)
    }

    fn can_cache(&self) -> bool {
        false
    }
}

/// The tickets of a listener. A handshake of TCP that the thread worked on before does not say whether there are some.
#[derive(Debug)]
struct Tickets(Arc<dyn ProducesTickets>);

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        crate::tickets::begin_step(false);
        self.0.enabled()
    }

    fn lifetime(&self) -> u32 {
        self.0.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.0.encrypt(plain)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        self.0.decrypt(ticket)
    }
}

#[derive(Debug)]
struct NoTickets;

impl ProducesTickets for NoTickets {
    fn enabled(&self) -> bool {
        false
    }

    fn lifetime(&self) -> u32 {
        0
    }

    fn encrypt(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn decrypt(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

/// Bytes of a [`Secret`].
pub const SECRET: usize = 32;

/// The secret from which the keys of a server's transport come. Processes and machines that share it know each other's
/// connection ids, tokens and stateless resets.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; SECRET]);

impl Secret {
    /// A new one.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn new() -> Result<Self, SettingsError> {
        let mut bytes = [0; SECRET];
        rand::fill(&mut bytes).map_err(|_| SettingsError::from("no random numbers".to_owned()))?;
        Ok(Self(bytes))
    }

    /// Of these bytes.
    pub fn of(bytes: [u8; SECRET]) -> Self {
        Self(bytes)
    }

    /// The first line of a file: 64 hexadecimal digits. `None`: it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let line = text.lines().next()?.trim();
        let digits = line.as_bytes();
        if digits.len() != 2 * SECRET || !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let mut bytes = [0; SECRET];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// Its bytes, for the next process.
    pub fn bytes(&self) -> &[u8; SECRET] {
        &self.0
    }

    /// The keys.
    pub fn keys(&self) -> QuicKeys {
        let all = Salt::new(HKDF_SHA256, b"afpa quic 1").extract(&self.0);
        let (mut ids, mut retry_ids, mut tokens) = ([0; 16], [0; 16], [0; 32]);
        expand(&all, &[b"ids"], &mut ids);
        expand(&all, &[b"ids of retry"], &mut retry_ids);
        expand(&all, &[b"tokens"], &mut tokens);
        let sealed = Arc::new(Salt::new(HKDF_SHA256, &[]).extract(&tokens));
        QuicKeys { ids, retry_ids, sealed, tokens: all.clone(), all }
    }

    /// The keys, with those of tokens from another secret: machines that share that one accept each other's tokens, and nobody
    /// takes an id or a reset of another machine for one of its own.
    pub fn keys_with_tokens_of(&self, tokens: &Self) -> QuicKeys {
        let QuicKeys { sealed, tokens, .. } = tokens.keys();
        QuicKeys { sealed, tokens, ..self.keys() }
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// The keys of a server's transport.
#[derive(Clone)]
pub struct QuicKeys {
    /// Of its connection ids, for SipHash.
    pub ids: [u8; 16],
    /// Of the ids that a Retry of the kernel's gives. A client can change the place in an id, and as these have a key of their
    /// own, nothing that is made of them is an id under [`ids`](Self::ids).
    pub retry_ids: [u8; 16],
    /// Of tokens that only user mode opens (RFC 9000 section 8.1).
    sealed: Arc<dyn HandshakeTokenKey>,
    /// From which those of tokens come that the kernel makes.
    tokens: Prk,
    /// From which further ones come.
    all: Prk,
}

impl QuicKeys {
    /// The key of the stateless resets at an address (RFC 9000 section 10.3). Each has one of its own: a packet of a
    /// connection that somebody sends to another address of the server is answered, and the answer ends nothing (section
    /// 21.11).
    pub fn reset_at(&self, address: SocketAddr) -> Arc<dyn HmacKey> {
        let ip = match address.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let mut key = [0; 32];
        expand(&self.all, &[b"reset", &ip.octets(), &address.port().to_be_bytes()], &mut key);
        Arc::new(hmac::Key::new(HMAC_SHA256, &key))
    }
}

impl QuicKeys {
    /// The keys of tokens at an address: for those that the kernel makes, and for sealed ones.
    pub fn tokens_at(&self, address: SocketAddr) -> Arc<dyn HandshakeTokenKey> {
        Arc::new(Tokens::new(self.clone(), address.is_ipv4()))
    }

    /// The key of the tokens that the kernel makes in a [period](period_of), for SipHash. All who have the secret have it.
    pub fn token_key(&self, period: u64) -> [u8; 16] {
        let mut key = [0; 16];
        expand(&self.tokens, &[b"retry", &period.to_be_bytes()], &mut key);
        key
    }
}

impl std::fmt::Debug for QuicKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("QuicKeys")
    }
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

fn expand(all: &Prk, name: &[&[u8]], to: &mut [u8]) {
    // So short a key can always be had.
    if let Ok(key) = all.expand(name, Length(to.len())) {
        let _ = key.fill(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_good_for_the_limits_that_its_client_has_learnt() {
        let sessions = Arc::new(crate::sessions::Sessions::default());
        sessions.limit(100, 60);
        let with = |limits: &[u8]| SameLimits {
            sessions: Arc::<crate::sessions::Sessions>::clone(&sessions),
            limits: limits.into(),
        };
        for id in [b"a", b"b"] {
            assert!(with(b"100").put(id.to_vec(), b"state".to_vec()));
        }
        assert_eq!(with(b"100").take(b"a").as_deref(), Some(&b"state"[..]));
        assert_eq!(with(b"99 ").take(b"b"), None);
        assert_eq!(with(b"100").take(b"b"), None, "it was taken");
    }

    #[test]
    fn a_secret_is_64_hexadecimal_digits() {
        let digits = "00112233445566778899aabbccddeeffFFEEDDCCBBAA99887766554433221100";
        let secret = Secret::parse(&format!("{digits}\nmore\n")).expect("a secret");
        assert_eq!((secret.bytes()[1], secret.bytes()[16]), (0x11, 0xff));
        let cut = &digits[1..];
        for wrong in ["", "\n", cut, &format!("+{cut}"), &format!("g{cut}"), &format!("{digits}0")]
        {
            assert_eq!(Secret::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn keys_follow_from_the_secret_and_differ() {
        let (one, other) = (Secret::of([1; SECRET]), Secret::of([2; SECRET]));
        assert_eq!(one.keys().ids, one.keys().ids);
        assert_ne!(one.keys().ids, other.keys().ids);
        assert_ne!(one.keys().ids, one.keys().retry_ids);
        assert_ne!(one.keys().retry_ids, other.keys().retry_ids);
        let sign = |secret: &Secret, address: &str| {
            let mut signature = [0; 32];
            let address = address.parse().expect("an address");
            secret.keys().reset_at(address).sign(b"an id", &mut signature);
            signature
        };
        let here = "192.0.2.1:443";
        assert_eq!(sign(&one, here), sign(&one, here));
        assert_ne!(sign(&one, here), sign(&other, here));
        for elsewhere in ["192.0.2.1:444", "192.0.2.2:443", "[2001:db8::1]:443", "0.0.0.0:443"] {
            assert_ne!(sign(&one, here), sign(&one, elsewhere), "{elsewhere}");
        }
        let mut sealed = b"a token".to_vec();
        let tokens = |secret: &Secret| secret.keys().tokens_at(here.parse().expect("an address"));
        tokens(&one).aead_from_hkdf(b"salt").seal(&mut sealed, &[]).expect("sealed");
        let open = |secret: &Secret| {
            let mut sealed = sealed.clone();
            let key = tokens(secret).aead_from_hkdf(b"salt");
            key.open(&mut sealed, &[]).map(|opened| opened.to_vec()).ok()
        };
        assert_eq!(open(&one), Some(b"a token".to_vec()));
        assert_eq!(open(&other), None);
    }

    #[test]
    fn machines_that_share_a_secret_of_tokens_share_tokens_alone() {
        let tokens = Secret::of([3; SECRET]);
        let [one, other] = [1, 2].map(|n| Secret::of([n; SECRET]).keys_with_tokens_of(&tokens));
        assert_eq!(one.token_key(5), other.token_key(5));
        assert_ne!(one.token_key(5), one.token_key(6));
        assert_ne!(one.token_key(5), Secret::of([1; SECRET]).keys().token_key(5));
        assert_ne!((one.ids, one.retry_ids), (other.ids, other.retry_ids));
        let address = "192.0.2.1:443".parse().expect("an address");
        let reset = |keys: &QuicKeys| {
            let mut signature = [0; 32];
            keys.reset_at(address).sign(b"an id", &mut signature);
            signature
        };
        assert_ne!(reset(&one), reset(&other));
        assert_eq!(reset(&one), reset(&Secret::of([1; SECRET]).keys()));
        let mut sealed = b"a token".to_vec();
        one.tokens_at(address).aead_from_hkdf(b"salt").seal(&mut sealed, &[]).expect("sealed");
        let key = other.tokens_at(address).aead_from_hkdf(b"salt");
        assert_eq!(key.open(&mut sealed, &[]).expect("opened"), b"a token");
    }
}
