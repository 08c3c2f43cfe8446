use super::*;

const HEAD: &str = "$TTL 1h\n@ SOA ns1 hostmaster 7 1h 15m 4w 5m\n@ NS ns1\nns1 A 192.0.2.1\n";

fn apex() -> Name {
    Name::parse("example.org.", &Name::root()).expect("a name")
}

fn read(text: &str) -> ReadZone {
    read_zone(&apex(), "zone", text, &mut |path| Err(format!("no {path}")))
}

fn node_data(zone: &Zone, name: &str, rtype: u16) -> Option<(u32, Vec<Vec<u8>>)> {
    let name = Name::parse(name, &apex()).expect("a name").lower();
    let set = zone.node(name.wire())?.set(rtype)?;
    Some((set.ttl, set.data.iter().map(|data| data.to_vec()).collect()))
}

fn first_error(text: &str) -> String {
    let read = read(text);
    assert!(read.zone.is_none(), "{text}");
    let finding = read.findings.iter().find(|finding| finding.is_error).expect("an error");
    assert!(!finding.remedy.is_empty());
    finding.to_string()
}

#[test]
fn a_zone_is_read_with_all_that_is_usual() {
    let text = format!(
        "{HEAD}www 5m IN A 192.0.2.2\n    IN 300 AAAA 2001:db8::2\n$ORIGIN sub\na TXT ( \"x y\"\n \"z\" )\n\
         b.example.org. MX 10 mail ; a comment\n@ CAA 0 issue \"letsencrypt.org\"\n\
         h HTTPS 1 . alpn=\"h2,h3\" port=8443\nt TYPE65280 \\# 2 abcd\n"
    );
    let read = read(&text);
    assert_eq!(read.findings, []);
    let zone = read.zone.expect("a zone");
    assert_eq!((zone.serial(), zone.names()), (7, 8));
    assert_eq!(node_data(&zone, "www", rtype::A), Some((300, vec![vec![192, 0, 2, 2]])));
    assert_eq!(node_data(&zone, "www", rtype::AAAA).expect("a set").0, 300);
    assert_eq!(node_data(&zone, "a.sub", rtype::TXT), Some((3600, vec![b"\x03x y\x01z".to_vec()])));
    let mx = b"\x00\x0a\x04mail\x03sub\x07example\x03org\x00".to_vec();
    assert_eq!(node_data(&zone, "b", rtype::MX), Some((3600, vec![mx])));
    assert_eq!(
        node_data(&zone, "sub", 257),
        Some((3600, vec![b"\x00\x05issueletsencrypt.org".to_vec()]))
    );
    let https = b"\x00\x01\x00\x00\x01\x00\x06\x02h2\x02h3\x00\x03\x00\x02\x20\xfb".to_vec();
    assert_eq!(node_data(&zone, "h.sub", rtype::HTTPS), Some((3600, vec![https])));
    assert_eq!(node_data(&zone, "t.sub", 65280), Some((3600, vec![vec![0xab, 0xcd]])));
}

#[test]
fn errors_have_a_line_and_a_remedy() {
    for (text, expected) in [
        ("www A 192.0.2", "zone:5: www.example.org.: the data of A cannot be read"),
        ("www A 192.0.2.1 x", "zone:5: www.example.org.: the data of A cannot be read"),
        ("www NOPE x", "zone:5: www.example.org.: the data of NOPE cannot be read"),
        ("www", "zone:5: www.example.org.: the record has no type"),
        ("\n\na TXT \"x", "zone:7: a quote is not closed"),
        ("a TXT ( x", "zone:5: a parenthesis is never closed"),
        ("a..b A 192.0.2.1", "zone:5: a..b is no name"),
        ("www CH A 192.0.2.1", "zone:5: www.example.org.: class CH is not served"),
        ("$GENERATE 1-2 a A 192.0.2.$", "zone:5: $GENERATE is not known"),
        ("$INCLUDE other", "zone:5: cannot include other: no other"),
        ("a.example.com. A 192.0.2.1", "zone:5: a.example.com.: the name is not within the zone"),
        ("a CNAME b\na A 192.0.2.1", "zone:6: a.example.org.: a CNAME and other records"),
        ("a A 192.0.2.1\na CNAME b", "zone:6: a.example.org.: a CNAME and other records"),
        ("a CNAME b\na CNAME c", "zone:6: a.example.org.: there is a second record"),
        ("@ SOA ns1 hostmaster 8 1h 15m 4w 5m", "zone:5: example.org.: there is a second"),
        ("a SOA ns1 hostmaster 8 1h 15m 4w 5m", "zone:5: a.example.org.: an SOA stands below"),
        ("a 69y A 192.0.2.1", "zone:5: 69y is no time to live"),
        ("a 99999999999 A 192.0.2.1", "zone:5: 99999999999 is no time to live"),
    ] {
        let error = first_error(&format!("{HEAD}{text}\n"));
        assert!(error.starts_with(expected), "{text}: {error}");
    }
    assert_eq!(first_error("$TTL 1h\n@ NS ns1\nns1 A 192.0.2.1\n"), "zone: the zone has no SOA");
    assert!(first_error("  A 192.0.2.1\n").contains("the first record has no name"));
}

#[test]
fn what_is_only_odd_is_a_warning() {
    for (text, expected) in [
        ("a 1h A 192.0.2.1\na 5m A 192.0.2.2", "different times to live"),
        ("@ NS ns2", "ns2.example.org. is a name server, and has no address"),
        ("@ MX 1 m\nm CNAME www", "m.example.org. is the name of a server, and is an alias"),
    ] {
        let read = read(&format!("{HEAD}{text}\n"));
        assert!(read.zone.is_some(), "{text}");
        assert!(
            matches!(&read.findings[..], [one] if one.cause.contains(expected)),
            "{:?}",
            read.findings
        );
    }
    let quiet =
        read(&format!("{HEAD}sub NS ns1.sub\nns1.sub A 192.0.2.9\nlow NS ns1.elsewhere.test.\n"));
    assert_eq!(quiet.findings, []);
}

#[test]
fn included_files_have_their_own_origin_and_names_and_end() {
    let text = format!("{HEAD}$INCLUDE \"a\" sub\nlast A 192.0.2.3\n$INCLUDE a other\n");
    let mut asked = 0;
    let read = read_zone(&apex(), "zone", &text, &mut |path| {
        asked += 1;
        assert_eq!(path, "a");
        Ok("$TTL 9\nx A 192.0.2.4\n$ORIGIN deep\n".to_owned())
    });
    let zone = read.zone.expect("a zone");
    assert_eq!(asked, 2);
    assert_eq!(node_data(&zone, "x.sub", rtype::A).expect("there").0, 9);
    assert_eq!(node_data(&zone, "last", rtype::A).expect("there").0, 3600);
    assert!(node_data(&zone, "x.other", rtype::A).is_some());

    let text = format!("{HEAD}$INCLUDE a\n");
    let endless = read_zone(&apex(), "zone", &text, &mut |_| Ok("$INCLUDE a\n".to_owned()));
    assert!(endless.zone.is_none());
    assert!(endless.findings[0].cause.contains("too deep"), "{:?}", endless.findings);
}

#[test]
fn times_have_units() {
    for (word, expected) in [
        ("0", Some(0)),
        ("1w2d3h4m5s", Some(788_645)),
        ("1H", Some(3600)),
        ("2147483647", Some(i32::MAX as u32)),
        ("2147483648", None),
        ("h", None),
        ("", None),
        ("1x", None),
        ("1h30", Some(3630)),
    ] {
        assert_eq!(seconds(word), expected, "{word}");
    }
}

#[test]
fn types_of_the_form_of_others_and_text_beyond_ascii_are_read() {
    let text = format!(
        "\u{feff}{HEAD}spf SPF \"v=spf1 -all\"\nafs AFSDB 1 ns1\ntext TXT \"caf\u{e9}\" \"\\\u{e9}\"\n"
    );
    let read = read_zone(&apex(), "zone", &text, &mut |_| Err(String::new()));
    let zone = read.zone.unwrap_or_else(|| panic!("{:?}", read.findings));
    assert!(node_data(&zone, "spf", 99).is_some());
    assert!(node_data(&zone, "afs", 18).is_some());
    let (_, data) = node_data(&zone, "text", rtype::TXT).expect("there");
    assert_eq!(*data[0], *b"\x05caf\xc3\xa9\x02\xc3\xa9");
}
