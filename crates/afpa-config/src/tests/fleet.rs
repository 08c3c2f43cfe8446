//! `[fleet]`: its servers, credentials and words.

use std::os::unix::fs::PermissionsExt as _;

use afpa_fleet::{
    Bounds, Files, FleetFolder, FleetSettings, KeptFiles, NamedText, Revision, Secret,
};

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

#[test]
fn a_machine_takes_configurations_with_the_secret_alone() {
    let servers = "servers = [\"nats://10.0.0.5\"]\n";
    let message = refused(&format!("[fleet]\n{servers}configuration = true\n{SITE}"));
    assert!(message.contains("`configuration` needs `secret`"), "{message}");
    assert!(message.contains("afpa.toml:3"), "{message}");
    let text = format!(
        "[fleet]\n{servers}secret = \"/s\"\nconfiguration = true\nrollout_wait = \"2m\"\nrollout_errors = 3\nrollout_p99 = \"1s\"\n{SITE}"
    );
    let fleet = parsed(&text).unwrap().config.fleet;
    let bounds = Bounds { wait_ms: 120_000, errors: 3, p99_us: 1_000_000 };
    assert_eq!((fleet.configuration, fleet.bounds), (true, bounds));
    let fleet = parsed(SITE).unwrap().config.fleet;
    let bounds = Bounds { wait_ms: 30_000, errors: 1, p99_us: 500_000 };
    assert_eq!((fleet.configuration, fleet.bounds), (false, bounds));
    for (line, remedy) in [
        ("rollout_errors = 101", "100"),
        ("rollout_p99 = \"0ms\"", "1ms"),
        ("rollout_wait = \"25h\"", "24h"),
    ] {
        let message = refused(&format!("[fleet]\n{servers}{line}\n{SITE}"));
        assert!(message.contains("afpa.toml:3") && message.contains(remedy), "{message}");
    }
}

#[test]
fn certificates_are_shared_with_the_secret_alone() {
    let servers = "servers = [\"nats://10.0.0.5\"]\n";
    let message = refused(&format!("[fleet]\n{servers}certificates = true\n{SITE}"));
    assert!(message.contains("`certificates` needs `secret`"), "{message}");
    assert!(message.contains("afpa.toml:3"), "{message}");
    assert!(message.contains("write secret = "), "{message}");
    let text = format!("[fleet]\n{servers}secret = \"/s\"\ncertificates = true\n{SITE}");
    assert!(parsed(&text).unwrap().config.fleet.certificates);
    assert!(!parsed(&format!("[fleet]\n{servers}{SITE}")).unwrap().config.fleet.certificates);
    let warnings = parsed(&format!("[fleet]\ncertificates = true\n{SITE}")).unwrap().warnings;
    assert!(warnings.iter().any(|one| one.cause.contains("of a fleet without servers")));
}

#[test]
fn machines_ask_one_another_with_the_secret_and_at_an_address_of_their_own() {
    let servers = "servers = [\"nats://10.0.0.5\"]\nsecret = \"/s\"\n";
    let config =
        parsed(&format!("[fleet]\n{servers}peers = \"10.0.0.1:8471\"\n{SITE}")).unwrap().config;
    assert_eq!(config.fleet.peers, Some("10.0.0.1:8471".parse().unwrap()));
    assert_eq!(config.peers_listen().unwrap().to_string(), "10.0.0.1:8471");
    assert_eq!(parsed(&format!("[fleet]\n{servers}{SITE}")).unwrap().config.peers_listen(), None);
    let site = "[[site]]\nroot = \"/srv\"\nlisten = [\"10.0.0.1:80\"]\n";
    for (fleet, cause, remedy) in [
        ("peers = \"10.0.0.1\"", "no address with a port", "8471"),
        ("peers = \"host:80\"", "no address with a port", "8471"),
        ("peers = \"0.0.0.0:8471\"", "no other machine can ask", "the others reach"),
        ("peers = \"[::]:8471\"", "no other machine can ask", "the others reach"),
        ("peers = \"10.0.0.1:0\"", "no other machine can ask", "the others reach"),
        ("peers = \"10.0.0.1:80\"", "an address of a site", "another port"),
        (
            "peers = \"10.0.0.1:90\"\n[admin]\nlisten = \"10.0.0.1:90\"",
            "of [admin]",
            "another port",
        ),
    ] {
        let message = refused(&format!("[fleet]\n{servers}{fleet}\n{site}"));
        assert!(message.contains(cause) && message.contains(remedy), "{fleet}: {message}");
        assert!(message.contains("afpa.toml:4"), "{message}");
    }
    let message = refused(
        "[fleet]\nservers = [\"nats://a\"]\npeers = \"10.0.0.1:1\"\n[[site]]\nroot = \"/\"\n",
    );
    assert!(message.contains("`peers` needs `secret`"), "{message}");
    let warnings = parsed(&format!("[fleet]\npeers = \"10.0.0.1:1\"\n{SITE}")).unwrap().warnings;
    assert!(warnings.iter().any(|one| one.cause.contains("of a fleet without servers")));
}

/// A machine that takes configurations, and its file.
fn taker(own: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (file, secret) = (folder.path().join("afpa.toml"), folder.path().join("secret"));
    fs::write(&secret, "x".repeat(32)).unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(folder.path().join("state")).unwrap();
    let text = format!(
        "{own}[fleet]\nservers = [\"nats://127.0.0.1\"]\nsecret = \"secret\"\nconfiguration = true\nstate = \"state\"\n[[site]]\nroot = \"/\"\n"
    );
    fs::write(&file, text).unwrap();
    (folder, file)
}

fn files(text: &str) -> KeptFiles {
    let file = NamedText { name: "shared.toml".to_owned(), text: text.to_owned() };
    KeptFiles { revision: Revision { bucket: 1, number: 1 }, files: Files { files: vec![file] } }
}

#[test]
fn files_of_the_fleet_stand_behind_the_own_ones() {
    let (folder, file) = taker("");
    let with = |pushed: Pushed<'_>| {
        let known = Known { pushed, ..Known::default() };
        load_by(known, Some(&file), &Overrides::default(), &machine())
    };
    fs::create_dir(folder.path().join("www")).unwrap();
    let shared = files("workers = 1\n[[site]]\nhosts = [\"pushed.test\"]\nroot = \"www\"\n");
    let config = with(Pushed::These(Some(&shared))).unwrap().config;
    assert_eq!(
        (config.workers, config.sites[1].root.clone()),
        (1, Some(folder.path().join("www")))
    );

    // From the disk, when nobody says otherwise.
    let state = FleetFolder::new(&folder.path().join("state"));
    state.keep_configuration(Some(&shared)).unwrap();
    let config = with(Pushed::Kept).unwrap().config;
    assert_eq!((config.workers, config.revision), (1, Some(shared.revision)));
    let config = with(Pushed::These(None)).unwrap().config;
    assert_eq!((config.sites.len(), config.revision), (1, None));
    fs::write(state.configuration_path(), "{").unwrap();
    let message = with(Pushed::Kept).unwrap_err().to_string();
    assert!(message.contains("afpa.toml:4") && message.contains("takes it anew"), "{message}");

    for (text, at, why) in [
        ("[fleet]\nregion = \"x\"\n", "fleet:shared.toml:1", "each machine's own"),
        ("\nworkers = \"x\"\n", "fleet:shared.toml:2", "workers"),
        ("workers =\n", "fleet:shared.toml:1", "="),
    ] {
        let message = with(Pushed::These(Some(&files(text)))).unwrap_err().to_string();
        assert!(message.contains(at) && message.contains(why), "{text}: {message}");
    }
    let (_folder, file) = taker("workers = 2\n");
    let twice = files("workers = 1\n");
    let known = Known { pushed: Pushed::These(Some(&twice)), ..Known::default() };
    let message =
        load_by(known, Some(&file), &Overrides::default(), &machine()).unwrap_err().to_string();
    assert!(message.contains("`workers` is set in two files"), "{message}");
}

#[test]
fn files_of_the_fleet_are_in_the_folder_that_the_setting_names_whichever_file_has_it() {
    let (folder, _) = taker("");
    let file = folder.path().join("all.toml");
    fs::create_dir(folder.path().join("own")).unwrap();
    for name in ["afpa.toml", "secret", "state"] {
        fs::rename(folder.path().join(name), folder.path().join("own").join(name)).unwrap();
    }
    fs::write(&file, "include = [\"own/afpa.toml\"]\n").unwrap();
    let (state, kept) = (folder.path().join("own/state"), files("workers = 1\n"));
    FleetFolder::new(&state).keep_configuration(Some(&kept)).unwrap();
    let loaded = load_by(Known::default(), Some(&file), &Overrides::default(), &machine());
    let config = loaded.unwrap().config;
    assert_eq!((config.fleet.state, config.workers), (state, 1));
    assert_eq!(config.revision, Some(kept.revision));
}

#[test]
fn files_go_to_the_fleet_as_they_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("sites")).unwrap();
    fs::write(path("all.toml"), "include = [\"sites/*.toml\"]\n").unwrap();
    fs::write(path("sites/a.toml"), "[[site]]\nlisten = [\"${NOWHERE_AT_ALL}\"]\n").unwrap();
    fs::write(path("sites/b.toml"), "").unwrap();
    let texts = |path: &std::path::Path| {
        let files = files_of(path).unwrap().files;
        files.into_iter().map(|file| file.text).collect::<Vec<_>>()
    };
    let a = "[[site]]\nlisten = [\"${NOWHERE_AT_ALL}\"]\n";
    assert_eq!(texts(&path("all.toml")), ["include = [\"sites/*.toml\"]\n", a, ""]);
    assert_eq!(texts(&path("sites")), [a, ""]);
    fs::write(path("sites/b.toml"), "x =\n").unwrap();
    let message = files_of(&path("all.toml")).unwrap_err().to_string();
    assert!(message.contains("sites/b.toml:1"), "{message}");
    assert!(files_of(&path("none.toml")).is_err());
}
