//! A short run of the bench of DNS with every name server that is here. Nothing is demanded of a rate.

use std::fs;
use std::process::Command;

use serde_json::Value;

const LAB: &str = env!("CARGO_BIN_EXE_afpa-lab");
/// The servers without an AFPA before them: nothing is learnt, which would take a busy machine long.
const ALONE: [(&str, &str); 4] =
    [("nsd", "nsd"), ("knot", "knotd"), ("knot-xdp", "knotd"), ("bind", "named")];

/// Those of them that are here, and AFPA's own zones when the caller built it.
fn servers() -> Vec<&'static str> {
    let is_here = |program: &str| {
        ["/usr/sbin", "/usr/bin"]
            .iter()
            .any(|at| fs::exists(format!("{at}/{program}")).is_ok_and(|is| is))
    };
    if !is_here("ldns-signzone") {
        eprintln!("SKIP: ldns-signzone is not installed");
        return Vec::new();
    }
    let mut names: Vec<&str> =
        ALONE.iter().filter(|(_, program)| is_here(program)).map(|(name, _)| *name).collect();
    if std::env::var_os("AFPA_BIN").is_some() {
        names.push("afpa-zones");
    }
    if names.is_empty() {
        eprintln!("SKIP: no name server is here, and AFPA_BIN is not set");
    }
    names
}

#[test]
fn every_name_server_gives_the_right_answers() {
    if let Some(reason) = afpa_netlab::missing_privilege() {
        eprintln!("SKIP: {reason}");
        return;
    }
    let names = servers();
    if names.is_empty() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(LAB);
    command.args(["dns", "--rounds", "1", "--seconds", "0.1", "--warm-up", "0"]);
    command
        .args(["--only", "plain,signed", "--servers", &names.join(","), "--out"])
        .arg(folder.path());
    if let Some(program) = std::env::var_os("AFPA_BIN") {
        command.arg("--afpa").arg(program);
    }
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(folder.path().join("results.json")).expect("results");
    let results: Value = serde_json::from_str(&text).expect("JSON");
    let samples = results["samples"].as_array().expect("samples");
    for name in names {
        let own = samples.iter().filter(|sample| sample["server"] == name);
        let answers: Vec<u64> = own.filter_map(|sample| sample["requests"].as_u64()).collect();
        assert!(answers.len() == 2 && !answers.contains(&0), "{name}: {answers:?}");
    }
}

#[test]
fn a_name_server_that_nobody_knows_is_refused() {
    if afpa_netlab::missing_privilege().is_some() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(LAB);
    command.args(["dns", "--servers", "nobody", "--out"]).arg(folder.path());
    let output = command.output().expect("it starts");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("no server 'nobody'"));
}
