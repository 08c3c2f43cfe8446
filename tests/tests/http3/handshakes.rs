//! Clients whose packets are changed before they are sealed, so that the server opens them and finds nonsense: in the handshake, and
//! behind it.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use afpa_testkit::{Random, eventually};
use afpa_tests::tls::Authority;
use bytes::{Bytes, BytesMut};
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::crypto::{
    ClientConfig, CryptoError, ExportKeyingMaterialError, KeyPair, Keys, PacketKey, Session,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{
    ConnectError, ConnectionId, DatagramEvent, Dir, Endpoint, EndpointConfig, Event, Side,
    StreamEvent, TransportError,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{RootCertStore, version};
use serde_json::{Value, json};

use crate::{both, site};

/// Changes packets of one connection.
struct Changes {
    random: Random,
    /// Of so many packets one is changed.
    each: usize,
}

impl Changes {
    /// Changes the frames of a packet, or not.
    fn change(&mut self, frames: &mut [u8]) {
        let random = &mut self.random;
        if frames.is_empty() || !random.one_in(self.each) {
            return;
        }
        for _ in 0..=random.below(4) {
            let at = random.below(frames.len());
            let length = 1 + random.below((frames.len() - at).min(16));
            let Some(place) = frames.get_mut(at..at + length) else { continue };
            match random.below(5) {
                0 => place[0] ^= 1 << random.below(8),
                1 => place.fill(0),
                2 => place.fill(0xff),
                3 => place.copy_from_slice(&random.bytes(length)),
                _ => {
                    let from = random.below(frames.len() - length + 1);
                    frames.copy_within(from..from + length, at);
                }
            }
        }
    }
}

type Shared = Arc<Mutex<Changes>>;

struct Changed(Arc<QuicClientConfig>, Shared);

impl ClientConfig for Changed {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        name: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        let inner = Arc::clone(&self.0).start_session(version, name, parameters)?;
        Ok(Box::new(ChangedSession(inner, Arc::clone(&self.1))))
    }
}

struct ChangedSession(Box<dyn Session>, Shared);

impl ChangedSession {
    fn keys(&self, keys: Keys) -> Keys {
        Keys { packet: self.packets(keys.packet), ..keys }
    }

    fn packets(
        &self,
        KeyPair { local, remote }: KeyPair<Box<dyn PacketKey>>,
    ) -> KeyPair<Box<dyn PacketKey>> {
        KeyPair { local: Box::new(ChangedKey(local, Arc::clone(&self.1))), remote }
    }
}

impl Session for ChangedSession {
    fn initial_keys(&self, id: &ConnectionId, side: Side) -> Keys {
        self.keys(self.0.initial_keys(id, side))
    }

    fn handshake_data(&self) -> Option<Box<dyn std::any::Any>> {
        self.0.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn std::any::Any>> {
        self.0.peer_identity()
    }

    fn early_crypto(
        &self,
    ) -> Option<(Box<dyn quinn_proto::crypto::HeaderKey>, Box<dyn PacketKey>)> {
        self.0.early_crypto()
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.0.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.0.is_handshaking()
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        self.0.read_handshake(bytes)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.0.transport_parameters()
    }

    fn write_handshake(&mut self, bytes: &mut Vec<u8>) -> Option<Keys> {
        let keys = self.0.write_handshake(bytes)?;
        Some(self.keys(keys))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.0.next_1rtt_keys()?;
        Some(self.packets(keys))
    }

    fn is_valid_retry(&self, id: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.0.is_valid_retry(id, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.0.export_keying_material(output, label, context)
    }
}

struct ChangedKey(Box<dyn PacketKey>, Shared);

impl PacketKey for ChangedKey {
    fn encrypt(&self, packet: u64, bytes: &mut [u8], header: usize) {
        let end = bytes.len().saturating_sub(self.0.tag_len());
        let mut changes = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        changes.change(bytes.get_mut(header..end).unwrap_or_default());
        self.0.encrypt(packet, bytes, header);
    }

    fn decrypt(
        &self,
        packet: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        self.0.decrypt(packet, header, payload)
    }

    fn tag_len(&self) -> usize {
        self.0.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.0.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.0.integrity_limit()
    }
}

/// The TLS settings of a client.
fn tls_of(authority: &Authority) -> Arc<QuicClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(authority.path()).expect("a file") {
        roots.add(certificate.expect("a certificate")).expect("an authority");
    }
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let mut tls = rustls::ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&version::TLS13])
        .expect("a version")
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    Arc::new(QuicClientConfig::try_from(tls).expect("settings"))
}

/// How far a client came.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Came {
    through: bool,
    answered: bool,
}

/// Connects, asks for a file if that succeeds, and goes.
fn connect(tls: &Arc<QuicClientConfig>, to: SocketAddr, changes: Changes) -> Came {
    const PATIENCE: Duration = Duration::from_millis(300);
    let socket = UdpSocket::bind("127.0.0.1:0").expect("bound");
    socket.set_read_timeout(Some(Duration::from_millis(20))).expect("a time-out");
    let mut endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), None, false, None);
    let crypto = Arc::new(Changed(Arc::clone(tls), Arc::new(Mutex::new(changes))));
    let config = quinn_proto::ClientConfig::new(crypto);
    let began = Instant::now();
    let (_, mut quic) = endpoint.connect(began, config, to, "localhost").expect("begun");
    let (mut room, mut packets, mut came) = (vec![0; 2048], Vec::new(), Came::default());
    let mut is_over = false;
    loop {
        let now = Instant::now();
        while let Some(event) = quic.poll_endpoint_events() {
            endpoint
                .handle_event(quinn_proto::ConnectionHandle(0), event)
                .into_iter()
                .for_each(|event| quic.handle_event(event));
        }
        while let Some(event) = quic.poll() {
            match event {
                Event::Connected => {
                    came.through = true;
                    // The control stream, and `GET https://localhost/hello.txt`.
                    if let Some(id) = quic.streams().open(Dir::Uni) {
                        let _ = quic.send_stream(id).write(&[0, 4, 0]);
                    }
                    if let Some(id) = quic.streams().open(Dir::Bi) {
                        let section = [
                            &[0, 0, 0xd1, 0xd7, 0x50, 9][..],
                            b"localhost",
                            &[0x51, 10],
                            b"/hello.txt",
                        ];
                        let section = section.concat();
                        let frame = [&[1, section.len() as u8][..], &section].concat();
                        let _ = quic.send_stream(id).write(&frame);
                        let _ = quic.send_stream(id).finish();
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) if id.dir() == Dir::Bi => {
                    if let Ok(mut chunks) = quic.recv_stream(id).read(true) {
                        came.answered |= matches!(chunks.next(1024), Ok(Some(_)));
                        let _ = chunks.finalize();
                    }
                }
                Event::ConnectionLost { .. } => return came,
                _ => {}
            }
        }
        if !is_over && (came.answered || now - began > PATIENCE) {
            is_over = true;
            quic.close(now, 0x100_u32.into(), Bytes::new());
        }
        packets.clear();
        while let Some(sent) = quic.poll_transmit(now, 1, &mut packets) {
            let _ = socket.send_to(packets.get(..sent.size).unwrap_or_default(), to);
            packets.clear();
        }
        if is_over {
            return came;
        }
        if let Ok((n, from)) = socket.recv_from(&mut room) {
            let datagram = BytesMut::from(room.get(..n).unwrap_or_default());
            let now = Instant::now();
            if let Some(DatagramEvent::ConnectionEvent(_, event)) =
                endpoint.handle(now, from, None, None, datagram, &mut packets)
            {
                quic.handle_event(event);
            }
        }
        if quic.poll_timeout().is_some_and(|timeout| timeout <= Instant::now()) {
            quic.handle_timeout(Instant::now());
        }
    }
}

/// `AFPA_SECONDS` wants more than a few hundred; `AFPA_SEED` repeats them.
#[test]
fn clients_with_changed_packets_harm_nobody() {
    let seconds: Option<u64> =
        std::env::var("AFPA_SECONDS").ok().and_then(|text| text.parse().ok());
    let limits =
        "[limits]\nconnections_per_client = 100000\n[timeouts]\nhead = \"2s\"\nidle = \"2s\"\n";
    let (tree, authority) = (site(), Authority::new());
    let Some((server, mut client)) = both(&authority, &tree, limits, "", |_| {}) else { return };
    let tls = tls_of(&authority);
    let seed = Random::seed_or(9_000);
    eprintln!("seed {seed}");
    let unchanged = connect_until_answered(&tls, server.tls, seed);
    assert_eq!(unchanged, Came { through: true, answered: true }, "without a change");
    let before = server.server.process().resident().expect("its memory");
    let began = Instant::now();
    let (number, through, answered) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let has_enough = || match seconds {
        Some(seconds) => began.elapsed() > Duration::from_secs(seconds),
        None => number.load(Relaxed) >= 200,
    };
    std::thread::scope(|scope| {
        // Most of their time they wait for answers to nonsense.
        for _ in 0..8 {
            scope.spawn(|| {
                while !has_enough() {
                    let number = number.fetch_add(1, Relaxed);
                    let random = Random::new(seed.wrapping_add(number));
                    // Where each packet is changed, none comes far.
                    let changes = Changes { random, each: 1 + (number % 5) as usize };
                    let came = connect(&tls, server.tls, changes);
                    through.fetch_add(came.through.into(), Relaxed);
                    answered.fetch_add(came.answered.into(), Relaxed);
                }
            });
        }
    });
    let (number, through) = (number.into_inner(), through.into_inner());
    eprintln!(
        "{number} clients, {through} through the handshake, {} answered",
        answered.into_inner()
    );
    let ask: Value = json!({"do": "ask", "on": "last", "path": "/hello.txt"});
    assert_eq!(client.one(&ask)["status"], 200, "seed {seed}");
    client.one(&json!({"do": "close", "on": "last"}));
    eventually("all are gone", || server.number("/connections/open") == 0);
    let more = server.server.process().resident().expect("its memory").saturating_sub(before);
    assert!(more < 40_000_000, "{more} bytes are left of {number} clients, seed {seed}");
}

/// A machine may be busy: a client that changes nothing is tried again.
fn connect_until_answered(tls: &Arc<QuicClientConfig>, to: SocketAddr, seed: u64) -> Came {
    let mut came = Came::default();
    eventually("a client is answered", || {
        let changes = Changes { random: Random::new(seed), each: usize::MAX };
        came = connect(tls, to, changes);
        came.answered
    });
    came
}
