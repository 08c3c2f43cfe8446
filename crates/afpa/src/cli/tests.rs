//! Tests of the command line: arguments, and the settings that they mean.

use super::*;
use afpa_config::{Machine, Source, parse_text};

fn serve(arguments: &[&str]) -> Result<Box<Serve>, clap::Error> {
    let words = ["afpa", "serve"].iter().chain(arguments);
    match Cli::try_parse_from(words)?.command {
        Some(Command::Serve(serve)) => Ok(serve),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_definitions_are_consistent() {
    command().debug_assert();
}

#[test]
fn every_option_reaches_its_setting() {
    let options = serve(&[
        "/srv",
        "--listen",
        "[::1]:81",
        "--listen",
        "unix:/run/x.sock",
        "--workers",
        "3",
        "--io",
        "readiness",
        "--pinned-limit",
        "1GiB",
        "--pin-threshold",
        "32KiB",
        "--policy",
        "lfu",
        "--symlinks",
        "never",
        "--listing",
        "--dotfiles",
        "--compress",
        "--request-id",
        "servers",
        "--allow",
        "192.0.2.1",
        "--deny",
        "192.0.2.0/24",
        "--deny",
        "2001:db8::/32",
        "--deny-file",
        "/etc/denied",
        "--basic-auth",
        "/etc/staff",
        "--user",
        "web",
        "--group",
        "www",
        "--admin",
        "127.0.0.1:9090",
        "--control",
        "/run/c.sock",
        "--access-log",
        "-",
        "--log-format",
        "json",
        "--log-level",
        "debug",
        "--message-format",
        "json",
    ]);
    let overrides = options.unwrap().overrides();
    let loaded = parse_text(Source::new("", ""), &overrides, &Machine::probe()).unwrap();
    let given: Vec<String> = loaded
        .settings
        .iter()
        .filter(|setting| setting.value != setting.default)
        .map(|setting| format!("{}.{}={}", setting.section, setting.key, setting.value))
        .collect();
    let expected = [
        ".workers=3",
        ".user=\"web\"",
        ".group=\"www\"",
        "engine.io=\"readiness\"",
        "police.allow=[\"192.0.2.1\"]",
        "police.deny=[\"192.0.2.0/24\", \"2001:db8::/32\"]",
        "police.deny_files=[\"/etc/denied\"]",
        "cache.pinned_limit=\"1GiB\"",
        "cache.pin_threshold=\"32KiB\"",
        "cache.policy=\"lfu\"",
        "log.level=\"debug\"",
        "log.format=\"json\"",
        "log.access=\"-\"",
        "log.access_format=\"json\"",
        "admin.listen=\"127.0.0.1:9090\"",
        "control.path=\"/run/c.sock\"",
        "site.listen=[\"[::1]:81\", \"unix:/run/x.sock\"]",
        "site.root=\"/srv\"",
        "site.compress=true",
        "site.request_id=\"servers\"",
        "site.listing=true",
        "site.symlinks=\"never\"",
        "site.dotfiles=true",
        "site.basic_auth=\"/etc/staff\"",
    ];
    assert_eq!(given, expected);
}

#[test]
fn serve_wants_a_directory_or_a_file() {
    assert!(serve(&[]).unwrap_err().to_string().contains("<DIR>"));
    assert!(serve(&["--config", "a.toml"]).is_ok());
}

#[test]
fn the_defaults_in_the_help_are_true() {
    let loaded = {
        let overrides = Serve { directory: Some("/".into()), ..Serve::default() }.overrides();
        parse_text(Source::new("", ""), &overrides, &Machine::probe()).unwrap()
    };
    let mut serve = command();
    let help = serve.find_subcommand_mut("serve").unwrap().render_long_help().to_string();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for (section, key) in [
        ("cache", "pinned_limit"),
        ("cache", "pin_threshold"),
        ("cache", "policy"),
        ("site", "symlinks"),
        ("site", "request_id"),
        ("admin", "listen"),
        ("log", "access"),
        ("log", "access_format"),
        ("log", "level"),
        ("log", "format"),
    ] {
        let default = &loaded.settings.get(section, key).unwrap().default;
        let shown = format!("[default: {}]", default.trim_matches('"'));
        assert!(help.contains(&shown), "{key}: {shown} is missing in\n{help}");
    }
    assert!(help.contains("[default: 127.0.0.1:8080]"));
}

#[test]
fn the_help_has_every_signal_that_the_readme_has() {
    let mut command = command();
    let help = command.find_subcommand_mut("serve").unwrap().render_long_help().to_string();
    for signal in ["TERM", "QUIT", "HUP", "USR1", "USR2"] {
        let explains = |line: &str| line.trim_start().starts_with(signal);
        assert!(help.lines().any(explains), "{signal} is missing in\n{help}");
    }
}

#[test]
fn every_command_has_a_sentence_and_examples() {
    for command in command().get_subcommands() {
        let name = command.get_name();
        assert!(command.get_about().is_some(), "{name} has no sentence");
        assert!(command.get_after_help().is_some(), "{name} has no examples");
    }
}
