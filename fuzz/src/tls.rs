//! Promises of TLS that hold for any bytes: one function per fuzz target. They panic when a promise is broken, and are
//! driven like those of `lib.rs`, and by an ordinary test of afpa-tls.

use std::sync::{Arc, OnceLock};

use afpa_tls::machine::{ServerName, Side};
use afpa_tls::{
    AcceptEarlyData, Certificate, Certificates, ClientMachine, ClientSettings, ClientTls, Greeting,
    ListenerTls, Profile, ServerMachine, ServerSettings, ServerTls, Sessions, TicketKeys, Verify,
    certificate as pem, machine::Machine,
};

/// No input makes a connection keep more than this, or answer with more.
const MOST: usize = 1024 * 1024;

/// One certificate, and both sides' settings.
struct Bed {
    server: ServerTls,
    /// The settings that another site of the same listener demands.
    other: ServerTls,
    /// A server that accepts early data.
    early: ServerTls,
    client: ClientTls,
}

fn bed() -> &'static Bed {
    static BED: OnceLock<Bed> = OnceLock::new();
    BED.get_or_init(|| {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
        let rcgen::CertifiedKey { cert, signing_key } = made.expect("a certificate");
        let (chain, key) = (cert.pem(), signing_key.serialize_pem());
        let certificate = Certificate::read(chain.as_bytes(), key.as_bytes(), None).expect("good");
        let certificates = Arc::new(Certificates::default());
        certificates.replace(&[certificate]);
        let tickets = Arc::new(TicketKeys::default());
        tickets.rotate(3600);
        let settings = ServerSettings { tickets: 2, ..ServerSettings::default() };
        let server = ServerTls::new(&settings, &certificates, &tickets).expect("good");
        let sessions = Arc::new(Sessions::default());
        sessions.limit(100, 3600);
        let early_data = Some(AcceptEarlyData { most: 1000, sessions });
        let early = ServerSettings { early_data, ..settings.clone() };
        let early = ServerTls::new(&early, &certificates, &tickets).expect("good");
        let modern = ServerSettings { profile: Profile::Modern, ..settings };
        let other = ServerTls::new(&modern, &certificates, &tickets).expect("good");
        let verify = Verify::Authorities(pem::read_chain(chain.as_bytes()).expect("good"));
        let settings = ClientSettings { verify, ..ClientSettings::default() };
        let client = ClientTls::new(&settings, &[]).expect("good");
        Bed { server, other, early, client }
    })
}

/// Gives `bytes` to one side, so many at a time; a side that has failed stays so and sends nothing more.
fn feed<S: Side>(machine: &mut Machine<S>, bytes: &[u8], step: usize) -> Vec<u8> {
    let (mut plain, mut out) = (Vec::new(), Vec::new());
    let mut failed = None;
    for piece in bytes.chunks(step.max(1)) {
        let done = machine.process(&mut piece.to_vec(), &mut plain, &mut out);
        match (done, &failed) {
            (Ok(progress), None) => assert_eq!(progress.handshaking, machine.is_handshaking()),
            (Ok(_), Some(_)) => panic!("it goes on after a failure"),
            (Err(failure), None) => failed = Some(failure),
            (Err(failure), Some(before)) => assert_eq!(failure, *before),
        }
        assert!(out.len() < MOST, "{} bytes to be sent", out.len());
        // In every incomplete state, sending works or is refused.
        let sent = machine.encrypt(b"x", &mut Vec::new());
        assert!(sent.is_err() || failed.is_none() && !machine.is_handshaking());
    }
    plain
}

/// The first bytes of a client. The first byte of the input says how many arrive at a time.
pub fn handshake(data: &[u8]) {
    let [step, wire @ ..] = data else { return };
    for server in [&bed().server, &bed().early] {
        let mut server = ServerMachine::new(server).expect("a machine");
        let plain = feed(&mut server, wire, usize::from(*step));
        assert!(plain.is_empty(), "nobody without our keys sends plaintext");
    }
    greeting(wire, usize::from(*step));
    let name = ServerName::try_from("localhost").expect("a name");
    let mut client = ClientMachine::new(&bed().client, name).expect("a machine");
    client.process(&mut [], &mut Vec::new(), &mut Vec::new()).expect("it begins");
    let plain = feed(&mut client, wire, usize::from(*step));
    assert!(plain.is_empty(), "nobody without our certificate sends plaintext");
}

/// The first bytes of a client of a listener whose sites differ.
fn greeting(wire: &[u8], step: usize) {
    let Bed { server, other, .. } = bed();
    let settings = ListenerTls::by_name(server.clone(), [("*.example.org", other.clone())]);
    let (mut greeting, mut given) = (Greeting::new(settings), 0);
    for piece in wire.chunks(step.max(1)) {
        given += piece.len();
        if let Some(greeted) = greeting.take(piece) {
            assert_eq!(Some(&greeted.arrived[..]), wire.get(..given), "nothing is lost or added");
            return;
        }
        assert!(given < MOST, "it waits without an end");
    }
}

/// Bytes on a connection whose handshake is complete: true records, with some bits of them changed as the input says,
/// and the rest of the input behind them.
pub fn records(data: &[u8]) {
    let [step, at, bits, rest @ ..] = data else { return };
    let name = ServerName::try_from("localhost").expect("a name");
    let mut server = ServerMachine::new(&bed().server).expect("a machine");
    let mut client = ClientMachine::new(&bed().client, name).expect("a machine");
    let (mut to_server, mut to_client, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    client.process(&mut [], &mut plain, &mut to_server).expect("it begins");
    while !to_server.is_empty() || !to_client.is_empty() {
        let mut bytes = std::mem::take(&mut to_server);
        server.process(&mut bytes, &mut plain, &mut to_client).expect("agreed");
        let mut bytes = std::mem::take(&mut to_client);
        client.process(&mut bytes, &mut plain, &mut to_server).expect("agreed");
    }
    assert!(plain.is_empty());
    let said = [7; 600];
    client.encrypt(&said, &mut to_server).expect("open");
    // rustls does not read type and version of a record of TLS 1.3: it authenticates the record with the values that
    // they must have (RFC 8446, section 5.2).
    const UNREAD: usize = 3;
    let place = UNREAD + usize::from(*at) * 2 % (to_server.len() - UNREAD);
    if let Some(byte) = to_server.get_mut(place) {
        *byte ^= bits;
    }
    to_server.extend_from_slice(rest);
    let got = feed(&mut server, &to_server, usize::from(*step));
    assert!(got.is_empty() || got == said, "what was changed is never plaintext");
    assert!(*bits == 0 || got.is_empty(), "a changed record is refused");
}

/// Files that are meant to be certificates and keys.
pub fn certificate(data: &[u8]) {
    let read = Certificate::read(data, data, None);
    if let Ok(certificate) = &read {
        for now in [0, i64::MAX, i64::MIN, certificate.not_after()] {
            let _ = certificate.remarks(now);
        }
        assert!(!certificate.covers(""));
    }
    if let Err(error) = &read {
        assert!(!error.to_string().is_empty() && !error.remedy().is_empty());
    }
    let keys = Arc::new(TicketKeys::default());
    keys.rotate(60);
    assert_eq!(keys.for_context(b"").decrypt(data), None, "nobody without our key makes tickets");
    let _ = str::from_utf8(data).map(|text| keys.share(text, 60));
}
