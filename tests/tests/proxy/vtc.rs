//! Protocol cases of the proxy as scripts in the language of varnishtest, in `tests/vtc`.
//!
//! In a script, the line `PROXY` starts the program before the script's server `s1`, on the unix
//! socket `${tmpdir}/afpa.sock`, and `STOP` ends it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use afpa_testkit::server::program;
use afpa_testkit::skip;
use afpa_tests::proxy::configuration;

#[test]
fn every_script_passes() {
    let varnishtest = Path::new("/usr/bin/varnishtest");
    if !varnishtest.exists() {
        skip!("varnishtest is not installed (Debian package varnish)");
    }
    let folder = tempfile::Builder::new().prefix("afpa-vtc").tempdir().expect("a folder");
    let scripts = scripts();
    assert!(scripts.len() >= 10, "{scripts:?}");
    // Together, since ending a process takes varnishtest two seconds.
    let mut command = Command::new(varnishtest);
    command.args(["-j", "5", "-k", "-t", "30"]).env("TMPDIR", folder.path());
    for script in scripts {
        let ready = folder.path().join(script.file_name().expect("a name"));
        fs::write(&ready, expand(&fs::read_to_string(&script).expect("a script")))
            .expect("written");
        command.arg(ready);
    }
    let output = command.output().expect("varnishtest runs");
    let log = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{log}");
}

fn scripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vtc");
    let entries =
        fs::read_dir(folder).expect("tests/vtc").map(|entry| entry.expect("an entry").path());
    let mut scripts: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "vtc")).collect();
    scripts.sort();
    scripts
}

/// Puts the commands in the place of the two words. One worker, so that all connections share one pool.
fn expand(script: &str) -> String {
    let text = configuration(
        &"unix:${tmpdir}/afpa.sock",
        &["${s1_addr}:${s1_port}".to_owned()],
        "[server_group.connections]\nrepeats = 1",
    );
    let start = format!(
        "shell {{\ncat > ${{tmpdir}}/afpa.toml <<'END'\nworkers = 1\n{text}END\n}}\n\
         process p1 \"{} serve --config ${{tmpdir}}/afpa.toml --fast-path off \
         --control ${{tmpdir}}/control.sock\" -start\n\
         shell {{ for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do \
         grep -q control ${{p1_err}} && exit 0; sleep .25; done; exit 1; }}\n",
        program().display()
    );
    script
        .replace("\nPROXY\n", &format!("\n{start}"))
        .replace("\nSTOP\n", "\nprocess p1 -stop -wait\n")
}
