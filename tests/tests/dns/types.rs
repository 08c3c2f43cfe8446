//! Every type that a secondary may write into its zone file: read as NSD reads it, as people write it and as RFC 3597 has it.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use super::bed::{Bed, are_here, readable_folder};
use super::differ::Nsd;
use super::message::{Question, exchange};

const HEAD: &str = "$TTL 300\n@ SOA ns1 hostmaster 7 1h 15m 4w 5m\n@ NS ns1\nns1 A 192.0.2.1\n";

/// Numbers of types, and data as NSD and BIND write them.
const ALL: &[(u16, &str)] = &[
    (11, "WKS 192.0.2.1 6 25 53 80"),
    (13, "HINFO \"PDP-11\" UNIX"),
    (17, "RP admin.example.org. txt.example.org."),
    (18, "AFSDB 1 afs.example.org."),
    (19, "X25 \"311061700956\""),
    (20, "ISDN \"150862028003217\" \"004\""),
    (20, "ISDN \"150862028003217\""),
    (21, "RT 2 relay.example.org."),
    (22, "NSAP 0x47.0005.80.005a00.0000.0001.e133.ffffff000161.00"),
    (26, "PX 10 map822.example.org. mapx400.example.org."),
    (29, "LOC 42 21 54 N 71 06 18 W -24m 30m"),
    (29, "LOC 52 22 23.000 N 4 53 32.000 E -2.00m 0.00m 10000m 10m"),
    (29, "LOC 42 21 43.952 S 71 5 6.344 W -24.12m 1m 200m"),
    (29, "LOC 0 N 180 W 42849672.95m 90000000m"),
    (35, "NAPTR 100 50 \"s\" \"z3950+I2L+I2C\" \"\" _z3950._tcp.example.org."),
    (35, "NAPTR 100 10 \"u\" \"E2U+sip\" \"!^.*$!sip:info@example.org!\" ."),
    (36, "KX 10 kx.example.org."),
    (37, "CERT PGP 0 0 AAECAwQFBgc="),
    (
        37,
        "CERT 65534 65535 RSASHA256 MxFcby9k/yvedMfQgKzhH5er0Mu/vILz 45IkskceFGgiWCn/GxHhai6VAuHAoNUz",
    ),
    (42, "APL 1:192.168.32.0/21 !1:192.168.38.0/28"),
    (42, "APL 2:FF00:0:0:0:0:0:0:0/8 1:224.0.0.0/4 !2:::/0"),
    (43, "DS 60485 5 1 2BB183AF5F22588179A53B0A 98631FAD1A292118"),
    (44, "SSHFP 2 1 123456789abcdef67890123456789abcdef67890"),
    (45, "IPSECKEY 10 1 2 192.0.2.38 AQNRU3mG7TVTO2BkR47usntb102uFJtugbo6BSGvgqt4AQ=="),
    (48, "DNSKEY 256 3 5 AQPSKmynfzW4kyBv015MUG2DeIQ3Cbl+BBZH4b/0PY1kxkmvHjcZc8no"),
    (49, "DHCID AAIBY2/AuCccgoJbsaxcQc9TUapptP69lOjxfNuVAA2kjEA="),
    (52, "TLSA 0 0 1 d2abde240d7cd3ee6b4b28c54df034b97983a1d16e8a410e4561cb106618e971"),
    (53, "SMIMEA 3 1 1 d2abde240d7cd3ee6b4b28c54df034b97983a1d16e8a410e4561cb106618e971"),
    (59, "CDS 60485 5 1 2BB183AF5F22588179A53B0A98631FAD1A292118"),
    (60, "CDNSKEY 256 3 5 AQPSKmynfzW4kyBv015MUG2DeIQ3Cbl+BBZH4b/0PY1kxkmvHjcZc8no"),
    (61, "OPENPGPKEY AQPSKmynfzW4kyBv015MUG2DeIQ3Cbl+BBZH4b/0PY1kxkmvHjcZc8no"),
    (62, "CSYNC 66 3 A NS AAAA TYPE65280"),
    (
        63,
        "ZONEMD 2018031500 1 1 FEBE3D4CE2EC2FFA4BA99D46CD69D6D29711E55217057BEE7EB1A7B641A47BA7FED2DD5B97AE499FAFA4F22C6BD647DE",
    ),
    (64, "SVCB 16 foo.example.org. port=53"),
    (
        64,
        "SVCB 1 foo.example.org. mandatory=alpn,ipv4hint alpn=h2,h3-19 ipv4hint=192.0.2.1,192.0.2.2",
    ),
    (64, "SVCB 1 foo.example.org. alpn=h2 no-default-alpn ech=AEj+DQ== ipv6hint=2001:db8::1"),
    (64, "SVCB 1 dns.example.org. alpn=h2 dohpath=/dns-query{?dns}"),
    (64, "SVCB 1 foo.example.org. key667=\"hello\\210qoo\""),
    (65, "HTTPS 0 foo.example.org."),
    (99, "SPF \"v=spf1 -all\""),
    (104, "NID 10 0014:4fff:ff20:ee64"),
    (105, "L32 10 10.1.2.0"),
    (106, "L64 10 2001:0db8:1140:1000"),
    (107, "LP 10 l64-subnet1.example.org."),
    (108, "EUI48 00-00-5e-00-53-2a"),
    (109, "EUI64 00-00-5e-ef-10-00-00-2a"),
    (256, "URI 10 1 \"ftp://ftp1.example.org/public\""),
    (257, "CAA 128 iodef \"mailto:a;b\\\"c@example.org\""),
    (258, "AVC \"app-name:WOLFGANG|app-class:OAM\""),
    (32769, "DLV 60485 5 1 2BB183AF5F22588179A53B0A98631FAD1A292118"),
    (65280, "TYPE65280 \\# 3 abcdef"),
    (62, "CSYNC \\# 6 000000420003"),
    (1, "TYPE1 \\# 4 c0000201"),
    (16, "TXT \\# 4 03 61 6263"),
];

/// Those that NSD does not read, as BIND writes them.
const MORE: &[(u16, &str)] = &[
    (23, "NSAP-PTR foo.example.org."),
    (27, "GPOS \"-32.6882\" \"116.8652\" \"10.0\""),
    (
        55,
        "HIP 2 200100107B1A74DF365639CC39F1D578 AwEAAbdxyhNuSutc rvs1.example.org. rvs2.example.org.",
    ),
    (56, "NINFO \"a\" \"b\""),
    (57, "RKEY 0 255 13 AQID"),
    (58, "TALINK a.example.org. b.example.org."),
    (62, "CSYNC 66 3 A NS AAAA CAA TYPE65535"),
    (260, "AMTRELAY 10 0 1 203.0.113.15"),
    (260, "AMTRELAY 10 0 2 2001:db8::15"),
    (260, "AMTRELAY 10 1 3 relays.example.org."),
    (260, "AMTRELAY 128 1 0 ."),
    (261, "RESINFO \"qnamemin\" \"exterr=15-17\""),
    (262, "WALLET \"ETH\" \"0x1\""),
];

/// The data of the records that answer a question.
fn data(at: SocketAddr, name: &str, rtype: u16) -> Vec<Vec<u8>> {
    let message = exchange(at, &Question::new(name, rtype).bytes()).expect("an answer");
    let count = u16::from_be_bytes([message[6], message[7]]);
    let mut from = 12 + name.len() + 2 + 4;
    let mut all = Vec::new();
    for _ in 0..count {
        // Owners are pointers to the question.
        assert_eq!(message[from] & 0xc0, 0xc0, "{name} {rtype}");
        let length = usize::from(u16::from_be_bytes([message[from + 10], message[from + 11]]));
        all.push(message[from + 12..from + 12 + length].to_vec());
        from += 12 + length;
    }
    all
}

#[test]
fn data_of_every_type_are_those_that_nsd_reads() {
    if !are_here(&["nsd"]) {
        return;
    }
    let lines = ALL.iter().enumerate();
    let zone: String = lines.map(|(index, (_, line))| format!("t{index} {line}\n")).collect();
    let zone = format!("{HEAD}{zone}");
    let bed = Bed::new(&[("example.org", &zone)], "", "[dns]\nrate = 0\n");
    let folder = readable_folder();
    let nsd = Nsd::start(folder.path(), &zone);
    let mut unknown = HEAD.to_owned();
    for (index, (rtype, line)) in ALL.iter().enumerate() {
        let name = format!("t{index}.example.org");
        let (ours, theirs) = (data(bed.dns, &name, *rtype), data(nsd.at, &name, *rtype));
        assert_eq!((theirs.len(), &ours), (1, &theirs), "{line}");
        let hex: String = theirs[0].iter().map(|byte| format!("{byte:02x}")).collect();
        unknown.push_str(&format!("t{index} TYPE{rtype} \\# {} {hex}\n", theirs[0].len()));
    }
    let bed = Bed::new(&[("example.org", &unknown)], "", "[dns]\nrate = 0\n");
    for (index, (rtype, line)) in ALL.iter().enumerate() {
        let name = format!("t{index}.example.org");
        assert_eq!(data(bed.dns, &name, *rtype), data(nsd.at, &name, *rtype), "{line}");
    }
}

/// A zone as BIND writes it.
fn as_bind_writes(folder: &Path, zone: &str) -> String {
    let (from, to) = (folder.join("from"), folder.join("to"));
    fs::write(&from, zone).expect("written");
    let mut command = Command::new("named-compilezone");
    command.args(["-k", "ignore", "-i", "none", "-o"]).arg(&to).arg("example.org").arg(&from);
    let output = command.output().expect("run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    fs::read_to_string(to).expect("written")
}

fn served(zone: &str) -> Bed {
    Bed::new(&[("example.org", zone)], "", "[dns]\nrate = 0\n")
}

#[test]
fn a_zone_file_that_bind_writes_is_read() {
    if !are_here(&["named-compilezone"]) {
        return;
    }
    let all = || ALL.iter().chain(MORE).enumerate();
    let lines: String = all().map(|(index, (_, line))| format!("t{index} {line}\n")).collect();
    let text = format!("{HEAD}{lines}");
    let folder = readable_folder();
    let theirs = as_bind_writes(folder.path(), &text);
    let (first, second) = (served(&text), served(&theirs));
    let mut unknown = HEAD.to_owned();
    for (index, (rtype, line)) in all() {
        let name = format!("t{index}.example.org");
        let found = data(first.dns, &name, *rtype);
        assert_eq!((found.len(), &found), (1, &data(second.dns, &name, *rtype)), "{line}");
        let hex: String = found[0].iter().map(|byte| format!("{byte:02x}")).collect();
        unknown.push_str(&format!("t{index} TYPE{rtype} \\# {} {hex}\n", found[0].len()));
    }
    // BIND reads the same out of the bytes that we have made.
    assert_eq!(as_bind_writes(folder.path(), &unknown), theirs);
}
