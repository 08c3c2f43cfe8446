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
