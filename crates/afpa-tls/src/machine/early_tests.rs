//! Early data (0-RTT), between our server and rustls' own client, which can send some.

use std::io::{Read, Write};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use super::tests::Bed;
use super::*;
use crate::failure::Reason;
use crate::profile::Profile;
use crate::server::{AcceptEarlyData, ClientAuthorities, ServerSettings, ServerTls};
use crate::sessions::Sessions;

fn sessions() -> Arc<Sessions> {
    let sessions = Arc::new(Sessions::default());
    sessions.limit(1000, 3600);
    sessions
}

fn accepting(most: u32, sessions: &Arc<Sessions>) -> impl Fn(&mut ServerSettings) {
    let early_data = Some(AcceptEarlyData { most, sessions: Arc::clone(sessions) });
    move |settings| settings.early_data.clone_from(&early_data)
}

/// A bed, and a client that sends early data where it may.
fn bed(most: u32, sessions: &Arc<Sessions>) -> (Bed, Arc<ClientConfig>) {
    let bed = Bed::new(|settings, _| accepting(most, sessions)(settings));
    let client = client(&bed, Profile::Modern);
    (bed, client)
}

fn client(bed: &Bed, profile: Profile) -> Arc<ClientConfig> {
    let client = bed.authority.client(|settings| {
        settings.protocols = vec![b"http/1.1".to_vec()];
        settings.profile = profile;
    });
    let mut config = ClientConfig::clone(client.config());
    config.enable_early_data = true;
    Arc::new(config)
}

struct Pair {
    server: ServerMachine,
    client: ClientConnection,
    /// The plaintext that the server has received, and the bytes for the client.
    plain: Vec<u8>,
    out: Vec<u8>,
}

impl Pair {
    /// A client that sends `early` with its first message if it may, and the bytes of that message.
    fn begin(server: &ServerTls, client: &Arc<ClientConfig>, early: &[u8]) -> (Self, Vec<u8>) {
        let name = ServerName::try_from("www.example.org").unwrap();
        let mut client = ClientConnection::new(Arc::clone(client), name).unwrap();
        if let Some(mut data) = client.early_data() {
            // As much as the server said that it takes.
            let _ = data.write(early).unwrap();
        }
        let server = ServerMachine::new(server).unwrap();
        let mut pair = Self { server, client, plain: Vec::new(), out: Vec::new() };
        let sent = pair.sent();
        (pair, sent)
    }

    fn sent(&mut self) -> Vec<u8> {
        let mut sent = Vec::new();
        while self.client.wants_write() {
            self.client.write_tls(&mut sent).unwrap();
        }
        sent
    }

    fn serve(&mut self, mut sent: Vec<u8>) -> Result<Progress, Failure> {
        self.server.process(&mut sent, &mut self.plain, &mut self.out)
    }

    /// Gives the client the bytes that the server has sent, and returns their plaintext.
    fn receive(&mut self) -> Vec<u8> {
        let out = std::mem::take(&mut self.out);
        let (mut rest, mut plain) = (&out[..], Vec::new());
        while !rest.is_empty() {
            self.client.read_tls(&mut rest).unwrap();
            self.client.process_new_packets().unwrap();
            let mut room = [0; 4096];
            while let Ok(n @ 1..) = self.client.reader().read(&mut room) {
                plain.extend_from_slice(&room[..n]);
            }
        }
        plain
    }

    fn finish(&mut self) {
        for _ in 0..3 {
            self.receive();
            let sent = self.sent();
            self.serve(sent).unwrap();
        }
        self.receive();
        assert!(!self.server.is_handshaking() && !self.client.is_handshaking());
    }

    /// A whole handshake, which leaves the client a session.
    fn connect(server: &ServerTls, client: &Arc<ClientConfig>) -> Facts {
        let (mut pair, sent) = Self::begin(server, client, b"");
        pair.serve(sent).unwrap();
        pair.finish();
        pair.server.agreed(server).unwrap()
    }
}

#[test]
fn early_data_is_answered_before_the_end_of_the_handshake() {
    let (bed, client) = bed(1000, &sessions());
    assert_eq!(Pair::connect(&bed.server, &client).early_data, EarlyData::None);
    for round in 0..5 {
        let (mut pair, sent) = Pair::begin(&bed.server, &client, b"GET early");
        assert!(pair.serve(sent).unwrap().handshaking);
        assert_eq!(pair.plain, b"GET early");
        let facts = pair.server.agreed(&bed.server).unwrap();
        assert_eq!((facts.resumed, facts.early_data), (true, EarlyData::Accepted));
        assert_eq!(facts.protocol.as_deref(), Some(&b"http/1.1"[..]));
        pair.server.encrypt(b"an answer", &mut pair.out).unwrap();
        assert_eq!(pair.receive(), b"an answer", "{round}");
        assert!(pair.client.is_early_data_accepted());
        // Other keys and another answer behind the handshake.
        let sent = pair.sent();
        assert!(!pair.serve(sent).unwrap().handshaking);
        pair.receive();
        pair.client.refresh_traffic_keys().unwrap();
        pair.client.writer().write_all(b" GET late").unwrap();
        let sent = pair.sent();
        pair.serve(sent).unwrap();
        assert_eq!(pair.plain, b"GET early GET late");
        for _ in 0..500 {
            pair.server.encrypt(b"another", &mut pair.out).unwrap();
        }
        assert_eq!(pair.receive(), b"another".repeat(500), "its keys were used up twice");
        pair.client.send_close_notify();
        let sent = pair.sent();
        assert!(pair.serve(sent).unwrap().peer_closed);
        pair.server.close(&mut pair.out).unwrap();
    }
}

#[test]
fn a_connection_that_is_closed_before_the_end_of_its_handshake_says_so() {
    let (bed, client) = bed(1000, &sessions());
    Pair::connect(&bed.server, &client);
    let (mut pair, sent) = Pair::begin(&bed.server, &client, b"GET early");
    pair.serve(sent).unwrap();
    pair.server.encrypt(b"an answer", &mut pair.out).unwrap();
    pair.server.close(&mut pair.out).unwrap();
    assert_eq!(pair.receive(), b"an answer");
    assert_eq!(pair.client.reader().read(&mut [0; 9]).unwrap(), 0, "it was told of the end");
}

#[test]
fn nothing_is_sent_to_a_client_that_has_only_said_hello() {
    let (bed, client) = bed(1000, &sessions());
    let (mut pair, sent) = Pair::begin(&bed.server, &client, b"");
    pair.serve(sent).unwrap();
    assert_eq!(pair.server.encrypt(b"an answer", &mut pair.out), Err(Closed));
    pair.finish();
    pair.server.encrypt(b"an answer", &mut pair.out).unwrap();
    assert_eq!(pair.receive(), b"an answer");
}

#[test]
fn a_replay_finds_no_session() {
    let (bed, client) = bed(1000, &sessions());
    Pair::connect(&bed.server, &client);
    let (mut first, sent) = Pair::begin(&bed.server, &client, b"GET early");
    for at in 0..3 {
        let (mut replay, _) = Pair::begin(&bed.server, &client, b"");
        let progress = replay.serve(sent.clone()).unwrap();
        assert!(progress.handshaking);
        // The first of them is the client's own, as far as anybody can know.
        let expected = if at == 0 { &b"GET early"[..] } else { b"" };
        assert_eq!(replay.plain, expected, "{at}");
        let refused = replay.server.early_data();
        assert_eq!(refused, if at == 0 { EarlyData::Accepted } else { EarlyData::Refused });
    }
    // The client whose bytes an attacker has sent first gets a full handshake.
    first.serve(sent).unwrap();
    first.finish();
    let facts = first.server.agreed(&bed.server).unwrap();
    assert_eq!((facts.resumed, facts.early_data), (false, EarlyData::Refused));
    assert!(first.plain.is_empty() && !first.client.is_early_data_accepted());
}

#[test]
fn another_process_refuses_early_data_and_a_reload_does_not() {
    let store = sessions();
    let (bed, client) = bed(1000, &store);
    let made = |sessions: &Arc<Sessions>| {
        let mut settings = ServerSettings { tickets: 2, ..ServerSettings::default() };
        settings.protocols = vec![b"http/1.1".to_vec()];
        accepting(1000, sessions)(&mut settings);
        ServerTls::new(&settings, &bed.certificates, &bed.tickets).unwrap()
    };
    Pair::connect(&bed.server, &client);
    let reloaded = made(&store);
    let (mut pair, sent) = Pair::begin(&reloaded, &client, b"GET early");
    pair.serve(sent).unwrap();
    assert_eq!(pair.plain, b"GET early");
    pair.finish();
    let other = made(&sessions());
    let (mut pair, sent) = Pair::begin(&other, &client, b"GET early");
    pair.serve(sent).unwrap();
    pair.finish();
    let facts = pair.server.agreed(&other).unwrap();
    assert_eq!((facts.resumed, facts.early_data), (false, EarlyData::Refused));
    assert!(pair.plain.is_empty());
    // TLS 1.2 has tickets, whose keys the two share.
    let older = self::client(&bed, Profile::Older);
    assert!(!Pair::connect(&bed.server, &older).resumed);
    let facts = Pair::connect(&other, &older);
    assert_eq!((facts.version, facts.resumed), ("TLSv1.2", true));
}

#[test]
fn more_early_data_than_was_agreed_ends_the_connection() {
    let store = sessions();
    let (bed, client) = bed(4000, &store);
    Pair::connect(&bed.server, &client);
    let mut settings = ServerSettings { tickets: 2, ..ServerSettings::default() };
    settings.protocols = vec![b"http/1.1".to_vec()];
    accepting(1000, &store)(&mut settings);
    let less = ServerTls::new(&settings, &bed.certificates, &bed.tickets).unwrap();
    let (mut pair, sent) = Pair::begin(&less, &client, &[b'x'; 2000]);
    let failure = pair.serve(sent).unwrap_err();
    assert_eq!(failure.reason, Reason::Malformed);
    assert!(pair.plain.len() <= 1000 && !pair.out.is_empty(), "the client is told");
    let (mut pair, sent) = Pair::begin(&less, &client, &[b'x'; 1000]);
    pair.serve(sent).unwrap();
    assert_eq!(pair.plain.len(), 1000);
}

#[test]
fn without_the_setting_or_where_clients_show_certificates_there_is_none() {
    let store = sessions();
    let (bed, client) = bed(1000, &store);
    Pair::connect(&bed.server, &client);
    let mut settings = ServerSettings { tickets: 2, ..ServerSettings::default() };
    settings.protocols = vec![b"http/1.1".to_vec()];
    let off = ServerTls::new(&settings, &bed.certificates, &bed.tickets).unwrap();
    let (mut pair, sent) = Pair::begin(&off, &client, b"GET early");
    pair.serve(sent).unwrap();
    pair.finish();
    let facts = pair.server.agreed(&off).unwrap();
    assert!(pair.plain.is_empty());
    assert_eq!((facts.resumed, facts.early_data), (false, EarlyData::None));
    // Its sessions are in tickets, which say nothing of early data.
    let (mut pair, sent) = Pair::begin(&off, &client, b"GET early");
    pair.serve(sent).unwrap();
    assert!(pair.client.early_data().is_none());
    pair.finish();
    assert!(pair.server.agreed(&off).unwrap().resumed);
    accepting(1000, &store)(&mut settings);
    let roots = bed.authority.roots();
    settings.clients = Some(ClientAuthorities { roots, required: false });
    let asking = ServerTls::new(&settings, &bed.certificates, &bed.tickets).unwrap();
    assert!(bed.server.accepts_early_data() && !asking.accepts_early_data());
    settings.clients = None;
    settings.tickets = 0;
    let none = ServerTls::new(&settings, &bed.certificates, &bed.tickets).unwrap();
    assert!(!none.accepts_early_data());
}

#[test]
fn early_data_for_another_protocol_is_refused_and_the_session_resumed() {
    let store = sessions();
    let (bed, client) = bed(1000, &store);
    Pair::connect(&bed.server, &client);
    let mut settings = ServerSettings { tickets: 2, ..ServerSettings::default() };
    settings.protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    accepting(1000, &store)(&mut settings);
    let changed = ServerTls::new(&settings, &bed.certificates, &bed.tickets).unwrap();
    let mut offers = ClientConfig::clone(&client);
    offers.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let (mut pair, sent) = Pair::begin(&changed, &Arc::new(offers), b"GET early");
    pair.serve(sent).unwrap();
    pair.finish();
    let facts = pair.server.agreed(&changed).unwrap();
    assert_eq!((facts.resumed, facts.early_data), (true, EarlyData::Refused));
    assert!(pair.plain.is_empty());
}
