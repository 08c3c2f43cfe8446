//! The targets of afpa-dns. They are in a file of their own, so that an ordinary test of that crate can include it.

use std::sync::Arc;

use afpa_dns::query::{Parsed, Query};
use afpa_dns::tsig::{Algorithm, Key};
use afpa_dns::{
    Asker, Journal, Name, Secrets, Settings, Transport, Zone, Zones, read_zone, respond, transfer,
};
use domain::base::{Message, ParsedName, ToName as _};
use domain::rdata::AllRecordData;

/// A zone of everything that answers differ by.
const ZONE: &str = "$TTL 60\n@ SOA ns h 1 1 1 1 1\n@ NS ns\nns A 192.0.2.1\nw A 192.0.2.2\na CNAME w\n*.x MX 1 w\nd DNAME w\n\
                    s NS ns.s\nns.s AAAA ::1\nb TXT \"01234567890123456789012345678901234567890123456789\"\n";

/// A message: an answer is a message for the oracle, with the client's id and question, and by UDP it is not too long. Both
/// parsers find the same question in what is one for us.
pub fn dns_message(data: &[u8]) {
    let zones: Zones = [zone()].into_iter().collect();
    let name = Name::parse("k.", &Name::root()).expect("a name");
    let keys = [Key::new(&name, Algorithm::Sha256, &[1; 32])].into_iter().collect();
    let settings = Settings { secrets: Secrets::new(vec![[1; 16]]), keys, ..Settings::default() };
    for transport in [Transport::Udp, Transport::Tcp] {
        let asker = Asker { address: [192, 0, 2, 9].into(), transport, now: 7 };
        let mut out = Vec::new();
        let Some(answered) = respond(&zones, &settings, asker, data, &mut out) else {
            assert!(out.is_empty());
            continue;
        };
        assert!(transport == Transport::Tcp || out.len() <= usize::from(settings.udp_size));
        let message = Message::from_octets(&out).expect("a message");
        assert!(message.header().qr() && data.starts_with(&message.header().id().to_be_bytes()));
        assert_eq!(u16::from(message.header().rcode().to_int()), answered.rcode as u16 & 15);
        for record in message
            .answer()
            .expect("a question of one name")
            .limit_to::<AllRecordData<_, ParsedName<_>>>()
        {
            record.expect("a record");
        }
        message.sections().expect("sections");
        if let Parsed::Query(query) = Query::parse(data)
            && !query.name.is_empty()
        {
            let theirs =
                Message::from_octets(data).expect("a message").sole_question().expect("one");
            assert_eq!(theirs.qname().to_name::<Vec<u8>>().as_slice(), query.name);
            assert_eq!(
                (theirs.qtype().to_int(), theirs.qclass().to_int()),
                (query.rtype, query.class)
            );
        }
    }
}

/// A zone file: one that is served has answers for each of its names, can be sent to secondaries, and has findings with a
/// remedy otherwise.
pub fn zone_file(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let read = read_zone(&apex(), "zone", text, &mut |_| Err("no".to_owned()));
    for finding in &read.findings {
        assert!(!finding.cause.is_empty() && !finding.remedy.is_empty());
        assert!(finding.line.is_none_or(|line| line >= 1 && line <= text.lines().count() + 1));
    }
    let Some(zone) = read.zone else {
        return assert!(read.findings.iter().any(|finding| finding.is_error));
    };
    let zones: Zones = [Arc::new(zone)].into_iter().collect();
    let zone = zones.iter().next().expect("one");
    let mut question = vec![0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    question.extend_from_slice(zone.apex().wire());
    question.extend_from_slice(&[0, 252, 0, 1]);
    let Parsed::Query(query) = Query::parse(&question) else { panic!("a question") };
    for message in transfer::transfer(zone, &Journal::default(), &query) {
        Message::from_octets(message).expect("a message").sections().expect("sections");
    }
    for node in zone.nodes() {
        let mut question = vec![0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        question.extend_from_slice(node.owner.wire());
        question.extend_from_slice(&[0, 1, 0, 1]);
        dns_answer(&zones, &question);
    }
}

fn dns_answer(zones: &Zones, question: &[u8]) {
    let asker = Asker { address: [192, 0, 2, 9].into(), transport: Transport::Tcp, now: 7 };
    let mut out = Vec::new();
    respond(zones, &Settings::default(), asker, question, &mut out).expect("an answer");
    Message::from_octets(&out).expect("a message").sections().expect("sections");
}

fn apex() -> Name {
    Name::parse("example.", &Name::root()).expect("a name")
}

fn zone() -> Arc<Zone> {
    Arc::new(read_zone(&apex(), "zone", ZONE, &mut |_| Err(String::new())).zone.expect("a zone"))
}
