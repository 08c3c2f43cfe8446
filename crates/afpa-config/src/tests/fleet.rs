//! `[fleet]`: its servers, credentials and words.

use std::os::unix::fs::PermissionsExt as _;

use afpa_fleet::{FleetSettings, Secret};

use super::*;

const SITE: &str = "[[site]]\nroot = \"/srv\"\n";

#[test]
fn there_is_no_fleet_without_servers() {
    let fleet = parsed(SITE).unwrap().config.fleet;
    assert!(!fleet.is_on());
    let text = format!(
        "[fleet]\nservers = [\"tls://10.0.0.5:4222\", \"tls://nats.example.org\"]\nname = \"a\"\nstale_after = \"5m\"\n{SITE}"
    );
    let fleet = parsed(&text).unwrap().config.fleet;
    assert!(fleet.is_on() && fleet.is_by_tls());
    assert_eq!((fleet.name.as_deref(), fleet.prefix.as_str()), (Some("a"), "afpa"));
    assert_eq!(fleet.stale_after, Some(Duration::from_secs(300)));
    assert_eq!(fleet.retention, Duration::from_secs(24 * 3600));
}

#[test]
fn nonsense_is_refused_with_a_remedy() {
    let servers = "servers = [\"nats://10.0.0.5\"]\n";
    for (fleet, cause, remedy) in [
        ("servers = [\"10.0.0.5:4222\"]", "not the URL of a NATS server", "nats://"),
        ("servers = [\"http://10.0.0.5\"]", "not the URL of a NATS server", "nats://"),
        ("servers = [\"nats://\"]", "not the URL of a NATS server", "nats://"),
        ("servers = [\"nats://a:0\"]", "not the URL of a NATS server", "nats://"),
        ("servers = [\"nats://a:4222/x\"]", "not the URL of a NATS server", "nats://"),
        ("servers = [\"nats://[::1]x\"]", "not the URL of a NATS server", "nats://"),
        ("servers = [\"nats://u:p@a:4222\"]", "no credentials in it", "`credentials`"),
        (&format!("{servers}name = \"a.b\""), "not a word", "letters"),
        (&format!("{servers}prefix = \"\""), "not a word", "letters"),
        (&format!("{servers}stale_after = \"10ms\""), "10ms", "1s"),
    ] {
        let message = refused(&format!("[fleet]\n{fleet}\n{SITE}"));
        assert!(message.contains(cause) && message.contains(remedy), "{fleet}: {message}");
        assert!(message.contains("afpa.toml:"), "{message}");
    }
}

#[test]
fn all_servers_have_tls_or_none_has() {
    let both = "servers = [\"tls://192.0.2.1\", \"nats://127.0.0.1\"]";
    let message = refused(&format!("[fleet]\n{both}\n{SITE}"));
    assert!(message.contains("nats://127.0.0.1 is without TLS"), "{message}");
    assert!(message.contains("afpa.toml:2") && message.contains("write tls://"), "{message}");
    // With authorities, TLS is demanded of all.
    let fleet = parsed(&format!("[fleet]\n{both}\nca = \"/ca\"\n{SITE}")).unwrap().config.fleet;
    assert!(fleet.is_by_tls());
    let plain = "servers = [\"nats://192.0.2.1\"]";
    assert!(!parsed(&format!("[fleet]\n{plain}\n{SITE}")).unwrap().config.fleet.is_by_tls());
}

#[test]
fn other_settings_without_servers_are_a_warning() {
    for fleet in ["name = \"a\"", "stale_after = \"5m\"", "region = \"west\""] {
        let warnings = parsed(&format!("[fleet]\n{fleet}\n{SITE}")).unwrap().warnings;
        let told = warnings.iter().filter(|one| one.cause.contains("of a fleet without servers"));
        assert_eq!(told.count(), 1, "{fleet}: {warnings:?}");
    }
}

#[test]
fn credentials_are_read_before_a_start() {
    let folder = tempfile::tempdir().unwrap();
    let (file, secret) = (folder.path().join("afpa.toml"), folder.path().join("nats"));
    let load = |server: &str| {
        let text = format!(
            "[fleet]\nservers = [\"{server}\"]\ncredentials = \"nats\"\n[[site]]\nroot = \"/\"\n"
        );
        fs::write(&file, text).unwrap();
        super::load(Some(&file), &Overrides::default(), &machine())
    };
    let refused = load("nats://127.0.0.1:4222").unwrap_err().to_string();
    assert!(refused.contains("cannot read the credentials") && refused.contains("afpa.toml:3"));
    for (text, why) in [("", "is empty"), ("a b", "neither"), ("BEGIN NATS USER JWT", "signed")] {
        fs::write(&secret, text).unwrap();
        let refused = load("nats://127.0.0.1:4222").unwrap_err().to_string();
        assert!(refused.contains(why) && refused.contains("USER:PASSWORD"), "{refused}");
    }
    fs::write(&secret, "afpa:secret\n").unwrap();
    let warned = |server: &str, mode: u32| {
        fs::set_permissions(&secret, fs::Permissions::from_mode(mode)).unwrap();
        let warnings = load(server).unwrap().warnings;
        warnings.into_iter().map(|one| one.cause).collect::<Vec<_>>().join("\n")
    };
    assert!(warned("nats://127.0.0.1:4222", 0o644).contains("every user of this machine"));
    assert!(warned("nats://192.0.2.1:4222", 0o600).contains("without TLS"));
    for fine in ["nats://127.0.0.1:4222", "nats://[::1]:4222", "tls://192.0.2.1:4222"] {
        let said = warned(fine, 0o600);
        assert!(!said.contains("TLS") && !said.contains("every user"), "{fine}: {said}");
    }
}

#[test]
fn the_secret_is_long_and_not_for_others() {
    let folder = tempfile::tempdir().unwrap();
    let (file, secret) = (folder.path().join("afpa.toml"), folder.path().join("secret"));
    let text = "[fleet]\nservers = [\"nats://127.0.0.1:4222\"]\nsecret = \"secret\"\n[[site]]\nroot = \"/\"\n";
    fs::write(&file, text).unwrap();
    let load = || super::load(Some(&file), &Overrides::default(), &machine());
    let refused = || load().unwrap_err().to_string();
    let missing = refused();
    assert!(missing.contains("cannot read the secret") && missing.contains("afpa.toml:3"));
    let write = |text: &str, mode: u32| {
        fs::write(&secret, text).unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(mode)).unwrap();
    };
    for (text, why) in [(String::new(), "has 0 bytes"), ("x".repeat(31) + "\n", "has 31 bytes")] {
        write(&text, 0o600);
        let refused = refused();
        assert!(refused.contains(why) && refused.contains("openssl rand -hex 32"), "{refused}");
    }
    write(&"x".repeat(70_000), 0o600);
    assert!(refused().contains("no short file"));
    write(&"x".repeat(32), 0o604);
    let open = refused();
    assert!(open.contains("every user of this machine can read") && open.contains("chmod o="));
    write(&"x".repeat(32), 0o640);
    let loaded = load().unwrap();
    let fleet = loaded.config.fleet;
    assert_eq!(crate::fleet_secret(&fleet).unwrap(), Some(Secret::of(&[b'x'; 32]).unwrap()));
    let off = FleetSettings { servers: Vec::new(), ..fleet };
    assert_eq!(crate::fleet_secret(&off).unwrap(), None);
}
