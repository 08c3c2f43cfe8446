//! A running name server with the zones of a test.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use afpa_testkit::aloud::say;
use afpa_testkit::server::free_address;
use afpa_testkit::{Endpoint, Server, Tree};
use tempfile::TempDir;

/// A zone of everything that answers differ by.
pub(super) const ZONE: &str = include_str!("example.org.zone");

pub(super) struct Bed {
    pub(super) folder: TempDir,
    _tree: Tree,
    pub(super) dns: SocketAddr,
    pub(super) server: Server,
}

impl Bed {
    /// Serves these zones, by name and text; `more` is for each zone, `top` for the whole file.
    pub(super) fn new(zones: &[(&str, &str)], more: &str, top: &str) -> Self {
        Self::begin(zones, free_address(), more, top)
    }

    /// Serves these zones on this address.
    pub(super) fn listening(zones: &[(&str, &str)], at: &str) -> Self {
        Self::begin(zones, at.parse().expect("an address"), "", "")
    }

    fn begin(zones: &[(&str, &str)], dns: SocketAddr, more: &str, top: &str) -> Self {
        let folder = readable_folder();
        let tree = Tree::new();
        tree.file("index.html", "over HTTP");
        let mut sections = String::new();
        for (name, text) in zones {
            let file = folder.path().join(format!("{name}.zone"));
            fs::write(&file, text).expect("written");
            sections.push_str(&format!(
                "[[zone]]\nname = \"{name}\"\nfile = \"{}\"\nlisten = [\"{dns}\"]\n{more}\n",
                file.display()
            ));
        }
        let root = tree.path().display().to_string();
        let server = Server::start(tree.path(), |launch| {
            launch.written(|endpoint| {
                let Endpoint::Tcp(http) = endpoint else { panic!("an address") };
                format!("{top}\n{sections}\n[[site]]\nlisten = [\"{http}\"]\nroot = \"{root}\"\n")
            });
        });
        Self { folder, _tree: tree, dns, server }
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.zone"))
    }

    pub(super) fn stats(&self) -> serde_json::Value {
        let said = self.server.command(&["stats", "--json"]);
        serde_json::from_slice(&said.stdout).expect("JSON")
    }
}

/// A folder that the user without privileges can read as well.
pub(super) fn readable_folder() -> TempDir {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("rights");
    folder
}

/// Whether these programs are there; if not, this says SKIP.
pub(super) fn are_here(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| {
        let looked = Command::new("which").arg(program).stdout(Stdio::null()).status();
        !looked.is_ok_and(|status| status.success())
    });
    if let Some(missing) = missing {
        say("SKIP", &format!("no {missing}"));
    }
    missing.is_none()
}

/// The output of a program that ends by itself.
pub(super) fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).stdin(Stdio::null()).output().expect(program)
}

pub(super) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Signs a zone, with NSEC or with NSEC3; `None` says SKIP.
pub(super) fn signed(text: &str, options: &[&str]) -> Option<String> {
    if !are_here(&["ldns-keygen", "ldns-signzone"]) {
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let run = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        let output = command.args(arguments).current_dir(folder.path()).output().expect(program);
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
        said(&output)
    };
    let key = run("ldns-keygen", &["-a", "ECDSAP256SHA256", "example.org"]);
    let plain = folder.path().join("plain");
    fs::write(&plain, format!("$ORIGIN example.org.\n{text}")).expect("written");
    let mut arguments = options.to_vec();
    arguments.extend(["-o", "example.org", "-f", "signed", "plain", key.trim()]);
    run("ldns-signzone", &arguments);
    Some(read(&folder.path().join("signed")))
}

pub(super) fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
