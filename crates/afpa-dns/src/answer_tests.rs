use std::collections::BTreeSet;
use std::sync::Arc;

use domain::base::{Message, ParsedName, ParsedRecord};
use domain::rdata::AllRecordData;
use proptest::prelude::*;

use super::*;
use crate::file::read_zone;

const PLAIN: &str = "$TTL 300
@ 1h SOA ns1 hostmaster 7 1h 15m 4w 5m
@ NS ns1
@ NS ns.other.test.
@ MX 10 mail
@ CAA 0 issue \"letsencrypt.org\"
ns1 A 192.0.2.1
ns1 AAAA 2001:db8::1
mail A 192.0.2.2
www A 192.0.2.3
www TXT \"a\" \"b\"
www HTTPS 1 . alpn=h2
alias CNAME www
chain CNAME alias
away CNAME www.other.test.
broken CNAME nowhere
loop CNAME loop
*.wild A 192.0.2.4
there.wild TXT \"x\"
a.b.deep A 192.0.2.5
*.w2 CNAME www
sub NS ns.sub
sub NS ns1
ns.sub A 192.0.2.6
old DNAME new
x.new A 192.0.2.7
big TXT \"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789\"
";

fn name(text: &str) -> Name {
    Name::parse(text, &Name::root()).expect(text)
}

fn zone(apex: &str, text: &str) -> Arc<Zone> {
    let read = read_zone(&name(apex), "zone", text, &mut |_| Err(String::new()));
    Arc::new(read.zone.unwrap_or_else(|| panic!("{:?}", read.findings)))
}

fn plain() -> Zones {
    [zone("example.org.", PLAIN)].into_iter().collect()
}

/// A question: as `dig` has it, with EDNS if `edns` is there: size, DO, options.
fn question(qname: &str, qtype: u16, edns: Option<(u16, bool, &[u8])>) -> Vec<u8> {
    let mut message = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, u8::from(edns.is_some())];
    message.extend_from_slice(name(qname).wire());
    message.extend_from_slice(&qtype.to_be_bytes());
    message.extend_from_slice(&[0, 1]);
    if let Some((size, wants_signatures, options)) = edns {
        message.extend_from_slice(&[0, 0, 41]);
        message.extend_from_slice(&size.to_be_bytes());
        message.extend_from_slice(&[0, 0, if wants_signatures { 0x80 } else { 0 }, 0]);
        message.extend_from_slice(&(options.len() as u16).to_be_bytes());
        message.extend_from_slice(options);
    }
    message
}

/// An answer as the oracle reads it: code, AA, TC, and each section as a set.
#[derive(Debug, PartialEq)]
struct Read {
    rcode: String,
    aa: bool,
    tc: bool,
    sections: [BTreeSet<String>; 3],
    length: usize,
}

fn read(bytes: &[u8]) -> Read {
    let message = Message::from_octets(bytes).expect("a message");
    let (_, answer, authority, additional) = message.sections().expect("sections");
    let shown = |record: ParsedRecord<'_, &[u8]>| {
        let record = record
            .to_any_record::<AllRecordData<_, ParsedName<_>>>()
            .expect("data that the oracle knows");
        if record.rtype().to_int() == rtype::OPT {
            return "OPT".to_owned();
        }
        format!(
            "{} {} {} {}",
            record.owner(),
            record.ttl().as_secs(),
            record.rtype(),
            record.data()
        )
    };
    let set = |section: domain::base::message::RecordSection<'_, &[u8]>| {
        section.map(|record| shown(record.expect("a record"))).collect()
    };
    Read {
        rcode: message.header().rcode().to_string(),
        aa: message.header().aa(),
        tc: message.header().tc(),
        sections: [set(answer), set(authority), set(additional)],
        length: bytes.len(),
    }
}

fn asker(transport: Transport) -> Asker {
    Asker { address: "192.0.2.99".parse().expect("an address"), transport, now: 1_000_000 }
}

fn ask_in(zones: &Zones, message: &[u8]) -> Read {
    let mut out = vec![9; 3];
    let settings = Settings::default();
    respond(zones, &settings, asker(Transport::Udp), message, &mut out).expect("an answer");
    read(&out[3..])
}

/// The answer and authority sections, as `owner type` of each record; and code and AA.
fn brief(qname: &str, qtype: u16) -> (String, bool, Vec<String>, Vec<String>, Vec<String>) {
    let read = ask_in(&plain(), &question(qname, qtype, None));
    let words = |set: &BTreeSet<String>| {
        let brief = |line: &String| {
            let mut words = line.split(' ');
            let owner = words.next().unwrap_or_default().trim_end_matches(".example.org");
            format!("{owner} {}", words.nth(1).unwrap_or_default())
        };
        set.iter().map(brief).collect()
    };
    let [answer, authority, additional] = &read.sections;
    (read.rcode, read.aa, words(answer), words(authority), words(additional))
}

#[test]
fn each_kind_of_name_has_its_answer() {
    let none: [&str; 0] = [];
    let soa = ["example.org SOA"];
    for (qname, qtype, rcode, aa, answer, authority, additional) in [
        ("www.example.org.", rtype::A, "NOERROR", true, &["www A"][..], &none[..], &none[..]),
        ("www.example.org.", rtype::HTTPS, "NOERROR", true, &["www HTTPS"], &none, &none),
        ("www.example.org.", rtype::AAAA, "NOERROR", true, &none, &soa, &none),
        ("no.example.org.", rtype::A, "NXDOMAIN", true, &none, &soa, &none),
        ("example.org.", rtype::MX, "NOERROR", true, &["example.org MX"], &none, &["mail A"]),
        ("example.org.", 257, "NOERROR", true, &["example.org CAA"], &none, &none),
        ("example.org.", rtype::SOA, "NOERROR", true, &["example.org SOA"], &none, &none),
        (
            "chain.example.org.",
            rtype::A,
            "NOERROR",
            true,
            &["alias CNAME", "chain CNAME", "www A"],
            &none,
            &none,
        ),
        ("chain.example.org.", rtype::CNAME, "NOERROR", true, &["chain CNAME"], &none, &none),
        ("away.example.org.", rtype::A, "NOERROR", true, &["away CNAME"], &none, &none),
        ("broken.example.org.", rtype::A, "NXDOMAIN", true, &["broken CNAME"], &soa, &none),
        ("x.wild.example.org.", rtype::A, "NOERROR", true, &["x.wild A"], &none, &none),
        ("x.y.wild.example.org.", rtype::A, "NOERROR", true, &["x.y.wild A"], &none, &none),
        ("x.wild.example.org.", rtype::TXT, "NOERROR", true, &none, &soa, &none),
        ("there.wild.example.org.", rtype::A, "NOERROR", true, &none, &soa, &none),
        ("x.there.wild.example.org.", rtype::A, "NXDOMAIN", true, &none, &soa, &none),
        ("*.wild.example.org.", rtype::A, "NOERROR", true, &["*.wild A"], &none, &none),
        ("q.w2.example.org.", rtype::A, "NOERROR", true, &["q.w2 CNAME", "www A"], &none, &none),
        ("b.deep.example.org.", rtype::A, "NOERROR", true, &none, &soa, &none),
        ("c.deep.example.org.", rtype::A, "NXDOMAIN", true, &none, &soa, &none),
        (
            "sub.example.org.",
            rtype::A,
            "NOERROR",
            false,
            &none,
            &["sub NS"],
            &["ns.sub A", "ns1 A", "ns1 AAAA"],
        ),
        (
            "x.sub.example.org.",
            rtype::A,
            "NOERROR",
            false,
            &none,
            &["sub NS"],
            &["ns.sub A", "ns1 A", "ns1 AAAA"],
        ),
        (
            "ns.sub.example.org.",
            rtype::A,
            "NOERROR",
            false,
            &none,
            &["sub NS"],
            &["ns.sub A", "ns1 A", "ns1 AAAA"],
        ),
        ("sub.example.org.", rtype::DS, "NOERROR", true, &none, &soa, &none),
        (
            "x.old.example.org.",
            rtype::A,
            "NOERROR",
            true,
            &["old DNAME", "x.new A", "x.old CNAME"],
            &none,
            &none,
        ),
        ("old.example.org.", rtype::A, "NOERROR", true, &none, &soa, &none),
        ("old.example.org.", rtype::DNAME, "NOERROR", true, &["old DNAME"], &none, &none),
        ("www.example.org.", rtype::ANY, "NOERROR", true, &["www A"], &none, &none),
        ("www.example.com.", rtype::A, "REFUSED", false, &none, &none, &none),
        ("org.", rtype::NS, "REFUSED", false, &none, &none, &none),
        ("www.example.org.", rtype::AXFR, "NOTIMP", false, &none, &none, &none),
    ] {
        let (is_rcode, is_aa, mut is_answer, is_authority, is_additional) = brief(qname, qtype);
        is_answer.dedup();
        let mut is_authority = is_authority;
        is_authority.dedup();
        assert_eq!((is_rcode.as_str(), is_aa), (rcode, aa), "{qname} {qtype}");
        assert_eq!(is_answer, answer, "{qname} {qtype}");
        assert_eq!(is_authority, authority, "{qname} {qtype}");
        assert_eq!(is_additional, additional, "{qname} {qtype}");
    }
}

#[test]
fn a_negative_answer_is_kept_for_the_shorter_time() {
    let read = ask_in(&plain(), &question("no.example.org.", rtype::A, None));
    let soa = read.sections[1].first().expect("an SOA");
    assert!(soa.starts_with("example.org 300 SOA"), "{soa}");
}

#[test]
fn a_loop_of_aliases_ends() {
    let read = ask_in(&plain(), &question("loop.example.org.", rtype::A, None));
    assert_eq!(read.sections[0].len(), 1);
    assert!(read.length < 80, "the record is there once: {}", read.length);
    let growing = PLAIN.replace("old DNAME new", "old DNAME x.old");
    let zones: Zones = [zone("example.org.", &growing)].into_iter().collect();
    let mut out = Vec::new();
    let message = question("a.old.example.org.", rtype::A, None);
    respond(&zones, &Settings::default(), asker(Transport::Tcp), &message, &mut out);
    let aliases = super::tests::read(&out).sections[0].len();
    assert_eq!(aliases, 1 + MOST_ALIASES);
    assert_eq!(u16::from_be_bytes([out[6], out[7]]) as usize, aliases, "each record is there once");
}

#[test]
fn the_question_keeps_its_case_and_the_owner_points_to_it() {
    let mut out = Vec::new();
    let asked = question("wWw.eXample.ORG.", rtype::A, None);
    respond(&plain(), &Settings::default(), asker(Transport::Udp), &asked, &mut out);
    assert_eq!(out[12..29], asked[12..29]);
    assert_eq!(out[33..35], [0xc0, 12], "its owner is a pointer to the question");
    assert_eq!(out.len(), 33 + 16);
    assert_eq!(out[..4], [0xab, 0xcd, 0x85, 0], "QR, AA, RD");
}

#[test]
fn a_name_that_dname_makes_too_long_is_refused() {
    let label = "a".repeat(60);
    let qname = format!("{label}.{label}.{label}.{}.old.example.org.", "b".repeat(50));
    let zones: Zones =
        [zone("example.org.", &PLAIN.replace("old DNAME new", &format!("old DNAME {label}.new")))]
            .into_iter()
            .collect();
    assert_eq!(ask_in(&zones, &question(&qname, rtype::A, None)).rcode, "YXDOMAIN");
}

#[test]
fn the_longest_zone_has_the_name_and_the_parent_has_the_ds() {
    let parent = "$TTL 1h\n@ SOA a b 1 1 1 1 1\n@ NS a\na A 192.0.2.1\nsub NS ns.sub\nns.sub A 192.0.2.2\n\
                  sub DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000\n";
    let child = "$TTL 1h\n@ SOA ns b 2 1 1 1 1\n@ NS ns\nns A 192.0.2.2\n";
    let zones: Zones = [zone("org.", parent), zone("sub.org.", child)].into_iter().collect();
    let ask = |qname, qtype| ask_in(&zones, &question(qname, qtype, None)).sections[0].len();
    assert_eq!(ask("ns.sub.org.", rtype::A), 1);
    assert_eq!(ask("sub.org.", rtype::SOA), 1);
    assert_eq!(ask("sub.org.", rtype::DS), 1);
}

#[test]
fn messages_that_are_no_questions_are_told_so() {
    let zones = plain();
    let good = question("www.example.org.", rtype::A, None);
    let rcode = |message: &[u8]| ask_in(&zones, message).rcode;
    let changed = |at: usize, to: u8| {
        let mut message = good.clone();
        message[at] = to;
        message
    };
    assert_eq!(rcode(&good), "NOERROR");
    assert_eq!(rcode(&changed(2, 5 << 3)), "NOTIMP", "UPDATE");
    assert_eq!(rcode(&changed(2, 4 << 3)), "NOTIMP", "NOTIFY");
    assert_eq!(rcode(&changed(5, 0)), "FORMERR");
    assert_eq!(rcode(&changed(5, 2)), "FORMERR");
    assert_eq!(rcode(&changed(7, 1)), "FORMERR");
    assert_eq!(rcode(&changed(9, 1)), "FORMERR");
    assert_eq!(rcode(&changed(12, 0xc0)), "FORMERR", "a pointer");
    assert_eq!(rcode(&[&good[..], &[0]].concat()), "FORMERR", "trailing bytes");
    assert_eq!(rcode(&good[..good.len() - 1]), "FORMERR");
    assert_eq!(rcode(&changed(good.len() - 1, 3)), "REFUSED", "class CH");
    let mut out = Vec::new();
    for message in [&good[..11], &changed(2, 0x80), &[]] {
        let answered =
            respond(&zones, &Settings::default(), asker(Transport::Udp), message, &mut out);
        assert_eq!(answered, None);
    }
}

#[test]
fn edns_is_answered_with_edns() {
    let zones = plain();
    let ask = |edns| ask_in(&zones, &question("www.example.org.", rtype::A, edns));
    assert!(ask(None).sections[2].is_empty());
    assert!(ask(Some((1232, false, &[]))).sections[2].contains("OPT"));
    let with_version = |version: u8| {
        let mut message = question("www.example.org.", rtype::A, Some((1232, false, &[])));
        let at = message.len() - 5;
        message[at] = version;
        ask_in(&zones, &message)
    };
    assert_eq!(with_version(0).rcode, "NOERROR");
    let bad = with_version(1);
    assert!(bad.sections[0].is_empty() && bad.sections[2].contains("OPT"), "{bad:?}");
    let cut = question("www.example.org.", rtype::A, Some((1232, false, &[0, 10, 0, 9, 1])));
    assert_eq!(ask_in(&zones, &cut).rcode, "FORMERR");
    let odd = question("www.example.org.", rtype::A, Some((1232, false, &[0, 10, 0, 3, 1, 2, 3])));
    assert_eq!(ask_in(&zones, &odd).rcode, "FORMERR", "a cookie of three bytes");
    let mut two = question("www.example.org.", rtype::A, Some((1232, false, &[])));
    two.extend_from_slice(&[0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]);
    two[11] = 2;
    assert_eq!(ask_in(&zones, &two).rcode, "FORMERR");
}

#[test]
fn an_answer_that_does_not_fit_is_to_be_asked_for_by_tcp() {
    let many: String = (0..100).map(|i| format!("many A 198.51.100.{i}\n")).collect();
    let zones: Zones = [zone("example.org.", &format!("{PLAIN}{many}"))].into_iter().collect();
    for (edns, is_truncated) in
        [(None, true), (Some(0), true), (Some(1232), true), (Some(4096), true)]
    {
        let edns = edns.map(|size| (size, false, &[][..]));
        let read = ask_in(&zones, &question("many.example.org.", rtype::A, edns));
        assert_eq!((read.tc, read.sections[0].len()), (is_truncated, 0));
        assert!(read.length <= 512);
    }
    let mut out = Vec::new();
    let message = question("many.example.org.", rtype::A, None);
    respond(&zones, &Settings::default(), asker(Transport::Tcp), &message, &mut out);
    assert_eq!(read(&out).sections[0].len(), 100);
    let settings = Settings { udp_size: 4096, ..Settings::default() };
    out.clear();
    let message = question("many.example.org.", rtype::A, Some((4096, false, &[])));
    respond(&zones, &settings, asker(Transport::Udp), &message, &mut out);
    assert_eq!(read(&out).sections[0].len(), 100);
}

#[test]
fn a_cookie_is_renewed_and_proves_the_client() {
    let zones = plain();
    let settings = Settings { secrets: Secrets::new(vec![[7; 16]]), ..Settings::default() };
    let ask = |cookie: &[u8]| {
        let options = [&[0, 10, 0, cookie.len() as u8][..], cookie].concat();
        let message = question("www.example.org.", rtype::A, Some((1232, false, &options)));
        let mut out = Vec::new();
        let answered = respond(&zones, &settings, asker(Transport::Udp), &message, &mut out);
        (answered.expect("an answer"), out)
    };
    let (first, out) = ask(&[3; 8]);
    assert!(!first.is_proven);
    let cookie = out[out.len() - WHOLE..].to_vec();
    assert_eq!(cookie[..8], [3; 8]);
    assert!(ask(&cookie).0.is_proven);
    assert!(!ask(&[&cookie[..20], &[0; 4]].concat()).0.is_proven);
    // Without a question a cookie is renewed (RFC 7873 section 5.4).
    let mut message =
        vec![0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 12, 0, 10, 0, 8];
    message.extend_from_slice(&[3; 8]);
    let mut out = Vec::new();
    let answered = respond(&zones, &settings, asker(Transport::Udp), &message, &mut out);
    assert_eq!(answered.map(|a| a.rcode), Some(Rcode::NoError));
    assert_eq!(out.len(), 12 + 11 + 4 + WHOLE);
}

#[test]
fn proofs_of_a_signed_zone_are_there_when_they_are_asked_for() {
    let rrsig = |owner: &str, kind: &str| {
        format!("{owner} RRSIG {kind} 13 2 300 20300101000000 20200101000000 1 example.org. AAAA\n")
    };
    let mut text = PLAIN.replace("old DNAME new\n", "");
    for (owner, next) in
        [("@", "a.b.deep"), ("a.b.deep", "sub"), ("sub", "*.wild"), ("*.wild", "www"), ("www", "@")]
    {
        text.push_str(&format!("{owner} NSEC {next} A RRSIG NSEC\n{}", rrsig(owner, "NSEC")));
    }
    text.push_str(&rrsig("www", "A"));
    let zones: Zones = [zone("example.org.", &text)].into_iter().collect();
    let ask =
        |qname, qtype, wants| ask_in(&zones, &question(qname, qtype, Some((1232, wants, &[]))));
    let kinds = |set: &BTreeSet<String>| {
        set.iter()
            .map(|line| {
                let words: Vec<&str> = line.split(' ').take(4).collect();
                format!(
                    "{} {}",
                    words[0].trim_end_matches(".example.org"),
                    words.get(2).unwrap_or(&"")
                )
            })
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect::<Vec<_>>()
    };
    assert_eq!(kinds(&ask("www.example.org.", rtype::A, false).sections[0]), ["www A"]);
    assert_eq!(kinds(&ask("www.example.org.", rtype::A, true).sections[0]), ["www A", "www RRSIG"]);
    let nothing = ask("x.example.org.", rtype::A, true);
    assert_eq!(nothing.rcode, "NXDOMAIN");
    assert_eq!(
        kinds(&nothing.sections[1]),
        ["example.org NSEC", "example.org RRSIG", "example.org SOA", "www NSEC", "www RRSIG"]
    );
    assert_eq!(kinds(&ask("x.example.org.", rtype::A, false).sections[1]), ["example.org SOA"]);
    let no_data = ask("www.example.org.", rtype::AAAA, true);
    assert_eq!(kinds(&no_data.sections[1]), ["example.org SOA", "www NSEC", "www RRSIG"]);
    let wild = ask("q.wild.example.org.", rtype::A, true);
    assert_eq!(kinds(&wild.sections[1]), ["*.wild NSEC", "*.wild RRSIG"]);
    let chased = ask("q.w2.example.org.", rtype::A, true);
    assert_eq!(
        kinds(&chased.sections[0]),
        ["q.w2 CNAME", "www A", "www RRSIG"],
        "no proof among the answers"
    );
    assert!(!chased.sections[1].is_empty());
    let insecure = ask("x.sub.example.org.", rtype::A, true);
    assert_eq!(kinds(&insecure.sections[1]), ["sub NS", "sub NSEC", "sub RRSIG"]);
}

#[test]
fn an_alias_of_a_wildcard_is_written_once() {
    let text = "$TTL 9\n@ SOA ns1 h 1 2 3 4 5\n@ NS ns1\nns1 A 192.0.2.1\n*.w CNAME a.w\n";
    let zones: Zones = [zone("example.org.", text)].into_iter().collect();
    let mut out = Vec::new();
    let message = question("q.w.example.org.", rtype::A, None);
    respond(&zones, &Settings::default(), asker(Transport::Udp), &message, &mut out);
    assert_eq!(out[6..8], [0, 2], "records of the answer");
}

proptest! {
    #[test]
    fn whatever_comes_an_answer_is_a_message(mut message in prop::collection::vec(any::<u8>(), 0..200), is_tcp: bool) {
        if let Some(count) = message.get_mut(2) { *count &= 0x7f; }
        check(&message, is_tcp);
    }

    #[test]
    fn a_damaged_question_is_answered_with_a_message(
        qname in "(www|x|\\*|sub|old)?\\.?(wild|deep|new|example)?\\.?example\\.org\\.",
        qtype in prop::sample::select(vec![1_u16, 2, 5, 6, 15, 16, 28, 39, 43, 46, 65, 255, 251, 252, 41, 257]),
        size: u16, wants: bool, at in 0_usize..60, to: u8, damage: bool,
    ) {
        let qname = qname.trim_start_matches('.');
        let Ok(_) = Name::parse(qname, &Name::root()) else { return Ok(()) };
        let mut message = question(qname, qtype, Some((size, wants, &[0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8])));
        if damage && let Some(byte) = message.get_mut(at) { *byte = to; }
        check(&message, false);
        check(&message, true);
    }
}

fn check(message: &[u8], is_tcp: bool) {
    let transport = if is_tcp { Transport::Tcp } else { Transport::Udp };
    let mut out = Vec::new();
    let Some(answered) =
        respond(&plain(), &Settings::default(), asker(transport), message, &mut out)
    else {
        assert!(out.is_empty());
        return;
    };
    assert!(is_tcp || out.len() <= 1232);
    assert_eq!(out[..2], message[..2]);
    assert_eq!(u16::from(out[3] & 15), answered.rcode as u16 & 15);
    read(&out);
}
