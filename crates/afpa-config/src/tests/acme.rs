//! `[acme]`.

use super::{parsed, refused};
use afpa_acme::ChallengeKind;

const SITE: &str = "[[site]]\nroot = \"/srv/www\"\ntls = [\"[::]:443\"]\n";

#[test]
fn each_name_has_a_certificate_of_its_own() {
    let text = format!("[acme]\ndomains = [\"WWW.Example.org\", \"b.example\"]\n{SITE}");
    let acme = parsed(&text).unwrap().config.acme;
    assert_eq!(acme.certificates, [["www.example.org"], ["b.example"]]);
    assert_eq!(acme.challenge, ChallengeKind::Http01);
    assert_eq!(acme.directory, afpa_acme::LETS_ENCRYPT);
}

#[test]
fn nothing_is_ordered_that_could_not_be_had_or_seen() {
    for (acme, site, cause, remedy) in [
        ("domains = [\"localhost\"]", SITE, "not a name of the public DNS", "www.example.org"),
        ("domains = [\"192.0.2.1\"]", SITE, "not a name of the public DNS", "www.example.org"),
        ("domains = [\"*.a.example\"]", SITE, "by the DNS alone", "dns-01"),
        ("domains = [\"a.example\"]\nchallenge = \"dns-01\"", SITE, "no program", "dns_program ="),
        ("domains = [\"a.example\"]", "[[site]]\nroot = \"/srv\"\n", "nobody would see", "tls = ["),
        (
            "domains = []\nemail = \"nobody\"",
            "[[site]]\nroot = \"/srv\"\n",
            "not an address",
            "admin@",
        ),
        (
            "directory = \"http://a.example/\"",
            "[[site]]\nroot = \"/srv\"\n",
            "not the URL",
            "https://",
        ),
        (
            "account_key_id = \"1\"",
            "[[site]]\nroot = \"/srv\"\n",
            "an identifier and a key",
            "account_key_file",
        ),
    ] {
        let message = refused(&format!("[acme]\n{acme}\n{site}"));
        assert!(message.contains(cause) && message.contains(remedy), "{acme}: {message}");
        assert!(message.contains("afpa.toml:"), "{message}");
    }
}

#[test]
fn names_on_demand_are_a_list_with_bounds() {
    let text = format!("[acme]\non_demand = [\"*.A.example\", \"b.example\"]\n{SITE}");
    let on_demand = parsed(&text).unwrap().config.acme.on_demand;
    assert_eq!((on_demand.most, on_demand.per_hour), (1000, 60));
    assert!(on_demand.allows("x.a.example") && on_demand.allows("b.example"));
    assert!(!on_demand.allows("a.example") && !on_demand.allows("x.b.example"));
    for (acme, site, cause) in [
        ("on_demand = [\"*\"]", SITE, "not a host name"),
        ("on_demand = [\"b.example\"]", "[[site]]\nroot = \"/srv\"\n", "nobody would see"),
        ("on_demand_limit = 5", SITE, "without names"),
    ] {
        let message = refused(&format!("[acme]\n{acme}\n{site}"));
        assert!(message.contains(cause), "{acme}: {message}");
    }
}

#[test]
fn a_wildcard_comes_by_the_dns_and_covers_its_hosts() {
    let text = "[acme]\ndomains = [\"*.a.example\"]\nchallenge = \"dns-01\"\ndns_program = \"/bin/dns\"\n\
                [[site]]\nroot = \"/srv\"\ntls = [\"[::]:443\"]\nhosts = [\"www.a.example\"]\n";
    assert_eq!(parsed(text).unwrap().config.acme.certificates, [["*.a.example"]]);
}
