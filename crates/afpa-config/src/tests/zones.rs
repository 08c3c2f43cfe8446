//! `[[zone]]` and `[dns]`.

use std::fs;

use super::{parsed, refused};
use crate::zones::read_zone_files;

const SITE: &str = "[[site]]\nroot = \"/srv/www\"\ntls = [\"[::]:443\"]\n";
/// Without TLS, which needs a certificate.
const PLAIN: &str = "[[site]]\nroot = \"/srv/www\"\n";
const ZONE: &str = "[[zone]]\nname = \"Example.org\"\nfile = \"example.org.zone\"\n";

#[test]
fn a_zone_has_defaults_as_name_servers_have() {
    let text = format!(
        "{ZONE}notify = [\"192.0.2.53\", \"[2001:db8::1]:5353\"]\ntransfer = [\"192.0.2.0/24\", \"2001:db8::1\"]\n{PLAIN}"
    );
    let loaded = parsed(&text).unwrap();
    let [zone] = &loaded.config.zones[..] else { panic!("one zone") };
    assert_eq!(zone.name.to_string(), "Example.org.");
    assert_eq!(zone.listen, ["0.0.0.0:53".parse().unwrap()]);
    assert_eq!(
        zone.notify,
        ["192.0.2.53:53".parse().unwrap(), "[2001:db8::1]:5353".parse().unwrap()]
    );
    assert_eq!((loaded.config.dns.rate, loaded.config.dns.udp_size), (200, 1232));
    assert_eq!((loaded.config.dns.dnstap, loaded.config.dns.dnstap_sample), (None, 1000));
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    let text = format!("[dns]\ndnstap = \"/run/tap\"\ndnstap_sample = 1\n{ZONE}{PLAIN}");
    let dns = parsed(&text).unwrap().config.dns;
    assert_eq!((dns.dnstap, dns.dnstap_sample), (Some("/run/tap".into()), 1));
}

#[test]
fn contradictions_are_told_with_a_remedy() {
    for (text, cause, remedy) in [
        (format!("{ZONE}{ZONE}"), "is there twice", "remove one"),
        (format!("{ZONE}listen = []\n"), "nobody could ask", "listen = ["),
        (format!("{ZONE}listen = [\"53\"]\n"), "listen", ""),
        (
            format!("{ZONE}notify = [\"ns2.example.org\"]\n"),
            "no address of a secondary",
            "192.0.2.53",
        ),
        ("[[zone]]\nname = \"a..b\"\nfile = \"x\"\n".to_owned(), "is no name", "example.org"),
        (
            "[[zone]]\nname = \".\"\nfile = \"x\"\n".to_owned(),
            "the root is not ours",
            "example.org",
        ),
        ("[dns]\nudp_size = 511\n".to_owned(), "out of range", "512"),
        ("[dns]\ndnstap_sample = 0\n".to_owned(), "out of range", "1"),
        ("[dns]\nrate = 100001\n".to_owned(), "out of range", "100000"),
    ] {
        let message = refused(&format!("{text}{PLAIN}"));
        assert!(message.contains(cause) && message.contains(remedy), "{text}: {message}");
    }
    let told = parsed(&format!("{ZONE}notify = [\"192.0.2.53\"]\n{PLAIN}")).unwrap().warnings;
    assert!(matches!(&told[..], [one] if one.cause.contains("may not have it")), "{told:?}");
}

#[test]
fn records_of_challenges_need_a_zone_that_can_have_them() {
    let acme = |names: &str, more: &str| {
        format!("[acme]\ndomains = [{names}]\nchallenge = \"dns-01\"\n{more}{ZONE}{SITE}")
    };
    for (names, more) in [
        ("\"example.org\"", ""),
        ("\"*.example.org\"", ""),
        ("\"www.elsewhere.net\"", "challenge_alias = \"acme.example.org\"\n"),
    ] {
        let hosts = names.trim_matches('"').replace('*', "www");
        let text = acme(names, more).replace("tls =", &format!("hosts = [\"{hosts}\"]\ntls ="));
        parsed(&text).unwrap_or_else(|error| panic!("{error}"));
    }
    let message = refused(&acme("\"www.elsewhere.net\"", ""));
    assert!(
        message.contains("no [[zone]] has _acme-challenge.www.elsewhere.net.")
            && message.contains("challenge_alias"),
        "{message}"
    );
    let message = refused(&format!(
        "[acme]\ndomains = [\"example.org\"]\nchallenge_alias = \"a.example.org\"\n{ZONE}{SITE}"
    ));
    assert!(message.contains("`challenge_alias` is for dns-01"), "{message}");
}

#[test]
fn an_included_file_is_in_the_folder_of_the_zone() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir_all(path("zones/below")).unwrap();
    fs::write(path("secret"), "a A 192.0.2.1\n").unwrap();
    fs::write(path("zones/below/more"), "a A 192.0.2.1\n").unwrap();
    std::os::unix::fs::symlink(path("secret"), path("zones/link")).unwrap();
    let text = format!(
        "[[zone]]\nname = \"example.org\"\nfile = \"{}\"\n{PLAIN}",
        path("zones/z").display()
    );
    let zone = parsed(&text).unwrap().config.zones.remove(0);
    let read = |include: &str| {
        let text = format!("$TTL 60\n@ SOA a b 1 1 1 1 1\n@ NS ns.test.\n$INCLUDE {include}\n");
        fs::write(path("zones/z"), text).unwrap();
        read_zone_files(&zone)
    };
    let good = read("below/more");
    assert!(good.read.zone.is_some(), "{:?}", good.read.findings);
    assert_eq!(good.files, [path("zones/z"), path("zones/below/more")]);
    for include in ["../secret", "/etc/passwd", "link", "below/../../secret", "missing"] {
        let bad = read(include);
        assert!(bad.read.zone.is_none(), "{include}");
        let finding = &bad.read.findings[0];
        assert!(finding.line == Some(4) && finding.cause.contains("cannot include"), "{finding:?}");
    }
    fs::remove_file(path("zones/z")).unwrap();
    assert!(read_zone_files(&zone).read.findings[0].cause.contains("it cannot be read"));
}

#[test]
fn keys_are_named_by_zones_and_read_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    let key = format!("[[dns.key]]\nname = \"Second\"\nfile = \"{}\"\n", file.display());
    let zone = format!("{ZONE}key = \"second\"\n");
    let config = parsed(&format!("{key}{zone}{PLAIN}")).unwrap().config;
    assert_eq!(config.zones[0].key.as_ref().map(ToString::to_string).as_deref(), Some("second."));
    let [own] = &config.dns_keys[..] else { panic!("one key") };
    assert_eq!((&*own.name.to_string(), own.algorithm), ("Second.", crate::DnsAlgorithm::Sha256));
    assert!(own.read_key().unwrap_err().0.contains("cannot be read"));
    fs::write(&file, "too short").unwrap();
    assert!(own.read_key().unwrap_err().1.contains("tsig-keygen"));
    fs::write(&file, "c2VjcmV0IG9mIHRoZSB0ZXN0cywgMzIgYnl0ZXMgbG8=\n").unwrap();
    assert!(own.read_key().is_ok());
    let of_bind = |name: &str, algorithm: &str| {
        let secret = "c2VjcmV0IG9mIHRoZSB0ZXN0cywgMzIgYnl0ZXMgbG8=";
        format!("key {name} {{ algorithm {algorithm}; secret \"{secret}\"; }};\n")
    };
    fs::write(&file, of_bind("second", "hmac-sha256")).unwrap();
    assert!(own.read_key().is_ok());
    for (text, cause, remedy) in [
        (of_bind("third", "hmac-sha256"), "has the key third, and none", "`name`"),
        (
            of_bind("second", "hmac-sha512"),
            "has a key for the algorithm hmac-sha512",
            "`algorithm`",
        ),
        (of_bind("second", "hmac-sha256").repeat(2), "has several secrets", "one whole key"),
    ] {
        fs::write(&file, text).unwrap();
        let told = own.read_key().unwrap_err();
        assert!(told.0.contains(cause) && told.1.contains(remedy), "{told:?}");
    }
    for (text, cause) in [
        (format!("{key}{key}{zone}"), "the key Second. is there twice"),
        (zone.clone(), "there is no key second."),
        (format!("{key}algorithm = \"hmac-md5\"\n{zone}"), "hmac-sha256"),
    ] {
        let message = refused(&format!("{text}{PLAIN}"));
        assert!(message.contains(cause), "{message}");
    }
}

#[test]
fn zones_alone_need_no_site() {
    assert!(parsed(ZONE).unwrap().config.sites.is_empty());
    assert!(refused("[dns]\nrate = 1\n").contains("no `root`"));
}
