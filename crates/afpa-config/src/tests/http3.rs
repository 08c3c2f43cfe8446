//! `[http3]`: places where it is enabled and not spoken, and the field for clients.

use super::*;

#[test]
fn where_it_is_not_spoken_is_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let authority = folder.path().join("ca.pem");
    let issuer = format!("client_authorities = \"{}\"\n", authority.display());
    let certificate = "[[certificate]]\nchain = \"a.pem\"\nkey = \"a.key\"\n";
    let site = |name: &str, more: &str| {
        format!("[[site]]\nname = \"{name}\"\nhosts = [\"{name}.example\"]\nroot = \"/\"\n{more}\n")
    };
    let tls = "tls = [\"127.0.0.1:443\"]\n";
    let asks = format!("{tls}client_certificates = \"required\"\n{issuer}");
    let other = asks.replace(":443", ":444");
    for (sites, told) in [
        (site("a", ""), "HTTP/3 is spoken nowhere"),
        (site("a", tls), ""),
        (site("a", tls) + &site("b", tls), ""),
        (site("a", &asks) + &site("b", &asks), ""),
        (site("a", tls) + &site("b", &other), ""),
        (site("a", tls) + &site("b", &asks), "HTTP/3 is not spoken at 127.0.0.1:443"),
    ] {
        for enabled in [true, false] {
            let text = format!("[http3]\nenabled = {enabled}\n{certificate}{sites}");
            let warnings = parsed(&text).unwrap().warnings;
            let of_http3 = warnings.iter().filter(|one| one.cause.contains("HTTP/3"));
            let causes: Vec<_> = of_http3.map(|one| one.cause.clone()).collect();
            let expected = usize::from(enabled && !told.is_empty());
            assert_eq!(causes.len(), expected, "{text}: {causes:?}");
            assert!(causes.iter().all(|cause| cause.contains(told)), "{text}: {causes:?}");
        }
    }
}

#[test]
fn it_is_spoken_by_default_where_datagrams_can_be_had() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("afpa.toml");
    let [one, two] = ["127.0.0.1:8443", "127.0.0.1:8444"].map(|text| text.parse().unwrap());
    let demanded = "[http3]\nenabled = true\n";
    let (refused, unbound) = (Datagrams::Refused, Datagrams::Unbound);
    for (section, other, told, why) in [
        ("", refused, 1, "cannot be had for UDP"),
        (demanded, refused, 0, ""),
        ("", unbound, 1, "has bound it without TLS"),
        (demanded, unbound, 1, "has bound it without TLS"),
    ] {
        let datagrams = |address| if address == one { Datagrams::Received } else { other };
        let known = Known { datagrams: &datagrams, ..Known::default() };
        let sites = [one, two].map(|address: std::net::SocketAddr| {
            format!(
                "[[site]]\nhosts = [\"{address}.example\"]\nroot = \"/\"\ntls = [\"{address}\"]\n"
            )
        });
        std::fs::write(&file, format!("{section}{}{}", sites[0], sites[1])).unwrap();
        let Err(error) = load_by(known, Some(&file), &Overrides::default(), &machine()) else {
            panic!("there is no certificate")
        };
        let said = error.to_string();
        assert_eq!(said.matches("HTTP/3 is not spoken at 127.0.0.1:8444").count(), told, "{said}");
        assert!(said.contains(why), "{said}");
        assert!(!said.contains("HTTP/3 is not spoken at 127.0.0.1:8443"), "{said}");
    }
    let text = "[[certificate]]\nchain = \"a.pem\"\nkey = \"a.key\"\n[[site]]\nroot = \"/\"\ntls = [\"127.0.0.1:8443\"]\n";
    let loaded = parsed(text).unwrap();
    assert!(loaded.config.http3.is_bound_at(&Listen::Tcp(one)));
    assert!(loaded.config.sites[0].alternative.is_some());
    assert!(!parsed(&format!("[http3]\nenabled = false\n{text}")).unwrap().config.http3.enabled);
}

#[test]
fn answers_name_the_port_of_their_site() {
    let certificate = "[[certificate]]\nchain = \"a.pem\"\nkey = \"a.key\"\n";
    let site = "[[site]]\nroot = \"/\"\nlisten = [\"127.0.0.1:80\"]\ntls = [\"127.0.0.1:8443\"]\n";
    for (enabled, told) in [(true, true), (false, false)] {
        let text = format!("[http3]\nenabled = {enabled}\n{certificate}{site}");
        let loaded = parsed(&text).unwrap();
        let said = format!("{:?}", loaded.config.sites[0].alternative);
        assert_eq!(said.contains("h3=\\\":8443\\\"; ma=86400"), told, "{said}");
    }
}

#[test]
fn clients_forget_what_a_site_has_told_them_before() {
    let certificate = "[[certificate]]\nchain = \"a.pem\"\nkey = \"a.key\"\n";
    let site = |name: &str, more: &str| {
        format!("[[site]]\nhosts = [\"{name}.example\"]\nroot = \"/\"\n{more}\n")
    };
    let tls = "listen = [\"127.0.0.1:80\"]\ntls = [\"127.0.0.1:8443\"]";
    let config = |http3: bool, sites: &str| {
        let text = format!("[http3]\nenabled = {http3}\n{certificate}{sites}");
        parsed(&text).unwrap().config
    };
    let said = |config: &Config| -> Vec<String> {
        let told = config.sites.iter().map(|site| site.alternative.as_ref());
        told.map(|rule| rule.map_or(String::new(), |rule| rule.answer.set[0].1.clone())).collect()
    };
    let told = "h3=\":8443\"; ma=86400";
    let before = config(true, &(site("a", tls) + &site("b", "listen = [\"127.0.0.1:80\"]")));
    let mut new = config(false, &(site("a", tls) + &site("b", tls)));
    alternatives::forget(&mut new, &before);
    assert_eq!(said(&new), ["clear", ""], "the second has told nobody");
    let mut later = config(false, &site("a", tls));
    alternatives::forget(&mut later, &new);
    assert_eq!(said(&later), ["clear"]);
    let mut again = config(true, &site("a", tls));
    alternatives::forget(&mut again, &later);
    assert_eq!(said(&again), [told]);
}

#[test]
fn the_key_is_read_before_a_start() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let [file, key] = ["afpa.toml", "quic.key"].map(|name| folder.path().join(name));
    let site = "[[site]]\nroot = \"/\"\nlisten = [\"127.0.0.1:80\"]\n";
    let said = |enabled: bool| {
        let http3 = format!("[http3]\nenabled = {enabled}\nkey = \"{}\"\n", key.display());
        std::fs::write(&file, http3 + site).unwrap();
        match load(Some(&file), &Overrides::default(), &machine()) {
            Ok(loaded) => (true, loaded.rendered_warnings()),
            Err(error) => (false, error.to_string()),
        }
    };
    let (loads, missing) = said(true);
    assert!(
        !loads && missing.contains("afpa.toml:3") && missing.contains("No such file"),
        "{missing}"
    );
    assert!(said(false).0, "nothing reads it");
    let digits = "00112233445566778899aabbccddeeff".repeat(2);
    std::fs::write(&key, &digits[1..]).unwrap();
    let (loads, malformed) = said(true);
    assert!(!loads && malformed.contains("openssl rand -hex 32"), "{malformed}");
    std::fs::write(&key, digits).unwrap();
    for (mode, is_told) in [(0o640, false), (0o644, true)] {
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).unwrap();
        let (loads, warnings) = said(true);
        assert!(loads && warnings.contains("chmod o=") == is_told, "{mode:o}: {warnings}");
    }
}
