use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustls::pki_types::{ServerName, UnixTime};

use super::*;
use crate::certificate::Certificate;
use crate::client::ClientSettings;
use crate::failure::Reason;
use crate::profile::Profile;
use crate::resolver::{CHALLENGE, Certificates};
use crate::server::{ClientAuthorities, ServerSettings, ServerTls};
use crate::testing::{Authority, End, converse};
use crate::tickets::TicketKeys;

pub(super) struct Bed {
    pub(super) authority: Authority,
    pub(super) certificates: Arc<Certificates>,
    pub(super) tickets: Arc<TicketKeys>,
    pub(super) server: ServerTls,
}

impl Bed {
    pub(super) fn new(change: impl FnOnce(&mut ServerSettings, &Authority)) -> Self {
        let authority = Authority::new("Root");
        let certificates = Arc::new(Certificates::default());
        let (own, key) = authority.issue(&["www.example.org", "*.wild.example"]);
        let (other, other_key) = authority.issue(&["other.example"]);
        let read = |own: &str, key: &str| Certificate::read(own.as_bytes(), key.as_bytes(), None);
        certificates.replace(&[read(&own, &key).unwrap(), read(&other, &other_key).unwrap()]);
        let tickets = Arc::new(TicketKeys::default());
        tickets.rotate(3600);
        let mut settings = ServerSettings { tickets: 2, ..ServerSettings::default() };
        settings.protocols = vec![b"http/1.1".to_vec()];
        change(&mut settings, &authority);
        let server = ServerTls::new(&settings, &certificates, &tickets).unwrap();
        Self { authority, certificates, tickets, server }
    }

    fn plain() -> Self {
        Self::new(|_, _| {})
    }
}

struct Pair {
    server: ServerMachine,
    client: ClientMachine,
    at_server: End,
    at_client: End,
}

type Failures = (Option<Failure>, Option<Failure>);

impl Pair {
    fn connect(
        server: &ServerTls,
        client: &ClientTls,
        name: &str,
        step: usize,
    ) -> Result<Self, Failures> {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let mut pair = Self {
            server: ServerMachine::new(server).unwrap(),
            client: ClientMachine::new(client, name).unwrap(),
            at_server: End::default(),
            at_client: End::default(),
        };
        pair.converse(step)?;
        Ok(pair)
    }

    fn converse(&mut self, step: usize) -> Result<(), Failures> {
        let server = (&mut self.server, &mut self.at_server);
        converse(server, (&mut self.client, &mut self.at_client), step)
    }
}

#[test]
fn both_versions_carry_bytes_in_both_directions_whatever_arrives_at_a_time() {
    for (profile, version) in [(Profile::Modern, "TLSv1.3"), (Profile::Older, "TLSv1.2")] {
        let bed = Bed::plain();
        let client = bed.authority.client(|s| {
            s.profile = profile;
            s.protocols = vec![b"h3".to_vec(), b"http/1.1".to_vec()];
        });
        for step in [1, 7, 1000, 100_000] {
            let mut pair = Pair::connect(&bed.server, &client, "www.example.org", step).unwrap();
            let facts = pair.server.facts().unwrap();
            assert_eq!(
                (facts.version, facts.protocol.as_deref()),
                (version, Some(&b"http/1.1"[..]))
            );
            let long: Vec<u8> = (0..40_000u32).map(|n| n as u8).collect();
            pair.client.encrypt(&long, &mut pair.at_server.coming).unwrap();
            pair.server.encrypt(&long[1..], &mut pair.at_client.coming).unwrap();
            pair.converse(step).unwrap();
            assert!(pair.at_server.plain == long && pair.at_client.plain == long[1..], "{step}");
            assert!(pair.server.is_drained());
            pair.client.close(&mut pair.at_server.coming).unwrap();
            let progress = pair.server.process(
                &mut pair.at_server.coming,
                &mut pair.at_server.plain,
                &mut pair.at_client.coming,
            );
            assert!(progress.unwrap().peer_closed);
            pair.server.encrypt(b"still", &mut pair.at_client.coming).unwrap();
            pair.server.close(&mut pair.at_client.coming).unwrap();
            assert_eq!(pair.server.encrypt(b"late", &mut Vec::new()), Err(Closed));
        }
    }
}

#[test]
fn a_session_is_resumed_by_a_ticket_and_by_another_machine_with_the_same_keys() {
    let bed = Bed::plain();
    for client in
        [bed.authority.client(|_| {}), bed.authority.client(|s| s.profile = Profile::Older)]
    {
        let resumed = |server: &ServerTls| {
            let pair = Pair::connect(server, &client, "www.example.org", 4096).unwrap();
            pair.server.facts().unwrap().resumed
        };
        assert!(!resumed(&bed.server), "the first is a full handshake");
        assert!(resumed(&bed.server));
        let settings = ServerSettings { tickets: 2, ..ServerSettings::default() };
        let other = ServerTls::new(&settings, &bed.certificates, &bed.tickets).unwrap();
        assert!(resumed(&other), "after a reload, or elsewhere");
        bed.tickets.rotate(3600);
        bed.tickets.rotate(3600);
        assert!(!resumed(&bed.server), "its key is gone");
    }
}

/// Types of the handshake messages (RFC 5246 section 7.4) that a server sends before it encrypts, when this client comes.
fn first_messages(bed: &Bed, client: &ClientTls) -> Vec<u8> {
    let name = ServerName::try_from("www.example.org").unwrap();
    let mut client = ClientMachine::new(client, name).unwrap();
    let (mut hello, mut answer) = (Vec::new(), Vec::new());
    client.process(&mut [], &mut Vec::new(), &mut hello).unwrap();
    let mut server = ServerMachine::new(&bed.server).unwrap();
    server.process(&mut hello, &mut Vec::new(), &mut answer).unwrap();
    let mut types = Vec::new();
    let mut rest = &answer[..];
    while let [22, _, _, high, low, record @ ..] = rest {
        let (mut messages, next) = record.split_at(usize::from(*high) << 8 | usize::from(*low));
        while let [kind, _, high, low, after @ ..] = messages {
            types.push(*kind);
            messages = &after[usize::from(*high) << 8 | usize::from(*low)..];
        }
        rest = next;
    }
    types
}

#[test]
fn a_client_of_version_12_has_another_ticket_when_its_own_is_old() {
    const HELLO: u8 = 2;
    const TICKET: u8 = 4;
    let bed = Bed::plain();
    let client = bed.authority.client(|s| s.profile = Profile::Older);
    for _ in 0..3 {
        Pair::connect(&bed.server, &client, "www.example.org", 4096).ok().unwrap();
        assert_eq!(first_messages(&bed, &client), [HELLO], "it keeps the one that it has");
    }
    bed.tickets.rotate(3600);
    assert_eq!(first_messages(&bed, &client), [HELLO, TICKET]);
}

#[test]
fn without_tickets_no_version_resumes_although_other_listeners_do() {
    let bed = Bed::new(|settings, _| settings.tickets = 0);
    for profile in [Profile::Modern, Profile::Older] {
        let client = bed.authority.client(|s| s.profile = profile);
        for _ in 0..2 {
            let pair = Pair::connect(&bed.server, &client, "www.example.org", 4096).unwrap();
            assert!(!pair.server.facts().unwrap().resumed, "{profile:?}");
        }
    }
}

#[test]
fn the_name_chooses_the_certificate_and_the_first_is_the_default() {
    let bed = Bed::plain();
    let client = bed.authority.client(|_| {});
    for name in ["www.example.org", "a.wild.example", "other.example"] {
        assert!(Pair::connect(&bed.server, &client, name, 4096).is_ok(), "{name}");
    }
    let (server, client) =
        Pair::connect(&bed.server, &client, "unknown.example", 4096).err().unwrap();
    // It got the default, and does not like it.
    assert_eq!(client.unwrap().reason, Reason::PeerCertificate);
    assert!(server.is_none_or(|failure| failure.reason == Reason::Alert));
}

#[test]
fn the_certificate_of_a_challenge_is_shown_to_those_who_ask_for_nothing_else() {
    let bed = Bed::new(|settings, _| {
        settings.protocols = vec![b"http/1.1".to_vec(), CHALLENGE.to_vec()];
    });
    let asked = Arc::new(AtomicUsize::new(0));
    let shared = Arc::clone(&asked);
    let made = rcgen::generate_simple_self_signed(vec!["www.example.org".to_owned()]).unwrap();
    bed.certificates.answer_challenges(Some(Box::new(move |name| {
        assert_eq!(name, "www.example.org");
        shared.fetch_add(1, Ordering::Relaxed);
        Some((made.cert.der().to_vec(), made.signing_key.serialize_der()))
    })));
    let connect = |offered: &[&[u8]]| {
        let offered = offered.iter().map(|protocol| protocol.to_vec()).collect();
        let client = bed.authority.client(|s| s.protocols = offered);
        Pair::connect(&bed.server, &client, "www.example.org", 4096).map(|_| ())
    };
    assert!(connect(&[b"http/1.1"]).is_ok() && connect(&[]).is_ok());
    assert!(connect(&[CHALLENGE, b"http/1.1"]).is_ok());
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    let failed = connect(&[CHALLENGE]).unwrap_err();
    assert_eq!(failed.1.unwrap().reason, Reason::PeerCertificate, "nobody has certified it");
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[test]
fn client_certificates_are_asked_for_and_their_subject_is_known() {
    let clients = |required| {
        move |settings: &mut ServerSettings, authority: &Authority| {
            settings.clients = Some(ClientAuthorities { roots: authority.roots(), required });
        }
    };
    for required in [false, true] {
        let bed = Bed::new(clients(required));
        let without = bed.authority.client(|_| {});
        let pair = Pair::connect(&bed.server, &without, "www.example.org", 4096);
        match required {
            false => assert_eq!(pair.ok().unwrap().server.facts().unwrap().peer, None),
            true => assert_eq!(pair.err().unwrap().0.unwrap().reason, Reason::PeerCertificate),
        }
        let own = |authority: &Authority| {
            let (own, key) = authority.issue(&["client"]);
            Some((own.into_bytes(), key.into_bytes()))
        };
        let with = bed.authority.client(|s: &mut ClientSettings| s.own = own(&bed.authority));
        let pair = Pair::connect(&bed.server, &with, "www.example.org", 4096).ok().unwrap();
        let peer = pair.server.facts().unwrap().peer.unwrap();
        assert!(peer.contains(r"CN=Cora\, Inc."), "{peer}");
        let strange = bed.authority.client(|s| s.own = own(&Authority::new("Other")));
        let failed = Pair::connect(&bed.server, &strange, "www.example.org", 4096).err().unwrap();
        assert_eq!(failed.0.unwrap().reason, Reason::PeerCertificate);
    }
}

#[test]
fn a_resumed_session_does_not_outlive_the_certificate_of_its_client() {
    let bed = Bed::new(|settings, authority| {
        settings.clients = Some(ClientAuthorities { roots: authority.roots(), required: true });
    });
    let now = UnixTime::now();
    // In 2101.
    let later = UnixTime::since_unix_epoch(Duration::from_secs(4_133_980_800));
    for profile in [Profile::Modern, Profile::Older] {
        let (own, key) = bed.authority.issue_with(&["client"], |params| {
            params.not_after = rcgen::date_time_ymd(2100, 1, 1);
        });
        let client = bed.authority.client(|s| {
            s.profile = profile;
            s.own = Some((own.into_bytes(), key.into_bytes()));
        });
        let connect = || Pair::connect(&bed.server, &client, "www.example.org", 4096).unwrap();
        let first = connect().server;
        assert!(first.agreed_at(&bed.server, later).is_ok(), "it was looked at in the handshake");
        let resumed = connect().server;
        let facts = resumed.agreed_at(&bed.server, now).unwrap();
        assert!(facts.resumed && facts.peer.is_some());
        let failure = resumed.agreed_at(&bed.server, later).unwrap_err();
        assert_eq!(failure.reason, Reason::PeerCertificate);
    }
}

#[test]
fn the_modern_profile_turns_older_clients_away() {
    let bed = Bed::new(|settings, _| settings.profile = Profile::Modern);
    let client = bed.authority.client(|s| s.profile = Profile::Older);
    let (server, client) =
        Pair::connect(&bed.server, &client, "www.example.org", 4096).err().unwrap();
    assert_eq!(server.unwrap().reason, Reason::NothingShared);
    assert_eq!(client.unwrap().reason, Reason::Alert, "it is told");
}

#[test]
fn what_is_no_tls_is_told_apart_from_what_breaks_it() {
    let bed = Bed::plain();
    let process = |bytes: &[u8]| {
        let mut server = ServerMachine::new(&bed.server).unwrap();
        let mut out = Vec::new();
        (server.process(&mut bytes.to_vec(), &mut Vec::new(), &mut out), out)
    };
    let (http, _) = process(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(http.unwrap_err().reason, Reason::NotTls);
    let (broken, alert) = process(&[22, 3, 1, 0, 5, 1, 0, 0, 1, 0]);
    assert_eq!(broken.unwrap_err().reason, Reason::Malformed);
    assert_eq!(alert.first(), Some(&21), "an alert");
    assert!(process(&[22, 3, 1]).0.unwrap().handshaking);
}

#[test]
fn a_message_in_small_pieces_is_bounded_and_does_not_stop_what_is_sent() {
    let bed = Bed::plain();
    let mut server = ServerMachine::new(&bed.server).unwrap();
    // A ClientHello of 60,000 bytes in records of one byte each.
    let mut records = Vec::new();
    for byte in [1, 0, 0xea, 0x60].into_iter().chain(std::iter::repeat_n(0, 60_000)) {
        records.extend_from_slice(&[22, 3, 1, 0, 1, byte]);
    }
    let mut failed = None;
    for piece in records.chunks_mut(1000) {
        if let Err(failure) = server.process(piece, &mut Vec::new(), &mut Vec::new()) {
            failed = Some(failure);
            break;
        }
        assert!(server.kept.len() <= MOST_KEPT);
    }
    assert_eq!(failed.unwrap().reason, Reason::Malformed);
}

#[test]
fn of_what_has_arrived_only_what_is_not_complete_is_kept() {
    let bed = Bed::plain();
    let client = bed.authority.client(|_| {});
    let mut pair = Pair::connect(&bed.server, &client, "www.example.org", 4096).ok().unwrap();
    let mut records = Vec::new();
    pair.client.encrypt(&[7; 4 * RECORD], &mut records).unwrap();
    pair.client.encrypt(b"last", &mut records).unwrap();
    let mut last = records.split_off(records.len() - 5);
    let mut first = records.drain(..3).collect::<Vec<_>>();
    for piece in [&mut first, &mut records] {
        pair.server.process(piece, &mut pair.at_server.plain, &mut Vec::new()).unwrap();
    }
    assert!(!pair.server.is_drained());
    assert!(pair.server.kept.capacity() < 200, "{} bytes", pair.server.kept.capacity());
    pair.server.process(&mut last, &mut pair.at_server.plain, &mut Vec::new()).unwrap();
    assert!(pair.at_server.plain.ends_with(b"\x07last") && pair.server.is_drained());
    assert_eq!(pair.server.kept.capacity(), 0);
}

#[test]
fn a_record_that_was_changed_ends_the_connection() {
    let bed = Bed::plain();
    let client = bed.authority.client(|_| {});
    let mut pair = Pair::connect(&bed.server, &client, "www.example.org", 4096).ok().unwrap();
    pair.client.encrypt(b"request", &mut pair.at_server.coming).unwrap();
    *pair.at_server.coming.last_mut().unwrap() ^= 1;
    let failed = pair.converse(4096).unwrap_err().0.unwrap();
    assert_eq!(failed.reason, Reason::Malformed);
    assert!(pair.at_server.plain.is_empty());
}

/// In tests a key is used up after 200 records, so that both sides change theirs several times, while the other sends.
#[test]
fn keys_are_changed_before_they_are_used_up_and_updates_are_answered() {
    for profile in [Profile::Modern, Profile::Older] {
        let bed = Bed::plain();
        let client = bed.authority.client(|s| s.profile = profile);
        let mut pair = Pair::connect(&bed.server, &client, "www.example.org", 4096).ok().unwrap();
        let mut random = afpa_testkit::Random::new(8446);
        let (mut said, mut answered) = (Vec::new(), Vec::new());
        for round in 0..600_u32 {
            // The server sends little in the beginning, and has to answer the client's updates.
            let most = if round < 300 { 3 } else { 5 };
            if random.below(5) < most {
                let content = vec![round as u8; random.below(40_000) + 1];
                pair.client.encrypt(&content, &mut pair.at_server.coming).unwrap();
                said.extend(content);
            } else {
                let content = vec![round as u8; random.below(40_000) + 1];
                pair.server.encrypt(&content, &mut pair.at_client.coming).unwrap();
                answered.extend(content);
            }
            if random.below(3) > 0 {
                pair.converse(random.below(60_000) + 1).unwrap();
            }
        }
        pair.converse(100_000).unwrap();
        assert!(pair.at_server.plain == said && pair.at_client.plain == answered, "{profile:?}");
        pair.server.close(&mut pair.at_client.coming).unwrap();
        pair.converse(100).unwrap();
    }
}

#[test]
fn a_record_is_sealed_where_it_lies() {
    let bed = Bed::plain();
    let client = bed.authority.client(|_| {});
    let mut pair = Pair::connect(&bed.server, &client, "www.example.org", 4096).ok().unwrap();
    let mut before = Vec::new();
    let (mut expected, lengths) = (Vec::new(), [1, 2, 1000, RECORD]);
    for length in lengths.into_iter().cycle().take(400) {
        assert_eq!(pair.server.seals(1, &mut before), Ok(true));
        pair.at_client.coming.append(&mut before);
        let mut record = vec![length as u8; HEAD + length + TAIL];
        pair.server.seal(&mut record).unwrap();
        pair.at_client.coming.extend_from_slice(&record);
        expected.extend(std::iter::repeat_n(length as u8, length));
    }
    for length in [0, HEAD, HEAD + TAIL, HEAD + RECORD + TAIL + 1] {
        assert_eq!(pair.server.seal(&mut vec![0; length]), Err(Closed), "{length}");
    }
    pair.converse(5000).unwrap();
    assert!(pair.at_client.plain == expected);
    let older = bed.authority.client(|s| s.profile = Profile::Older);
    let mut pair = Pair::connect(&bed.server, &older, "www.example.org", 4096).ok().unwrap();
    assert_eq!(pair.server.seals(1, &mut before), Ok(false), "TLS 1.2 is rustls' affair");
    assert_eq!(pair.server.seal(&mut [0; 100]), Err(Closed));
}

#[test]
fn records_of_version_13_are_made_without_memory_of_their_own() {
    let bed = Bed::plain();
    let content = vec![7; 10 * RECORD];
    let mut out = Vec::with_capacity(11 * RECORD);
    let mut allocations = |profile| {
        let client = bed.authority.client(|s| s.profile = profile);
        let mut pair = Pair::connect(&bed.server, &client, "www.example.org", 4096).ok().unwrap();
        allocation_counter::measure(|| {
            out.clear();
            pair.server.encrypt(&content, &mut out).unwrap();
        })
        .count_total
    };
    assert_eq!(allocations(Profile::Modern), 0);
    assert!(allocations(Profile::Older) >= 10, "rustls has a vector for each");
}

#[test]
fn one_record_is_one_record() {
    let bed = Bed::plain();
    let client = bed.authority.client(|_| {});
    let mut pair = Pair::connect(&bed.server, &client, "www.example.org", 4096).ok().unwrap();
    let mut out = Vec::new();
    pair.server.encrypt(&[7; RECORD], &mut out).unwrap();
    assert_eq!(out.len(), 5 + usize::from(u16::from_be_bytes([out[3], out[4]])));
    assert!(out.len() <= RECORD + OVERHEAD);
}
