use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use afpa_config::{Machine, Overrides, Source, parse_text};
use tempfile::TempDir;

use super::*;

/// A folder with a certificate for this name, and the configuration that names it.
struct Bed {
    folder: TempDir,
    config: Config,
}

impl Bed {
    fn new(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display();
        let text = format!(
            "[[certificate]]\nchain = \"{path}/chain.pem\"\nkey = \"{path}/key.pem\"\n\
             [[site]]\nlisten = []\ntls = [\"127.0.0.1:443\"]\nroot = \"{path}\"\n"
        );
        let source = Source::new("a.toml", text);
        let loaded = parse_text(source, &Overrides::default(), &Machine::probe());
        let bed = Self { folder, config: loaded.unwrap_or_else(|e| panic!("{e:?}")).config };
        bed.issue(name);
        bed
    }

    fn place(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn issue(&self, name: &str) {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        replace(&self.place("chain.pem"), &made.cert.pem());
        replace(&self.place("key.pem"), &made.signing_key.serialize_pem());
    }
}

fn replace(path: &Path, text: &str) {
    let next = path.with_extension("next");
    fs::write(&next, text).unwrap();
    fs::rename(next, path).unwrap();
}

fn in_use(state: &TlsState) -> Vec<String> {
    let names = state.running.iter().flat_map(|(_, certificate)| certificate.names());
    names.map(str::to_owned).collect()
}

#[test]
fn a_file_that_changes_between_two_steps_of_a_start_is_taken_afterwards() {
    let bed = Bed::new("old.test");
    let mut state = TlsState::default();
    let prepared = state.prepare(&bed.config, Vec::new(), None).unwrap();
    bed.issue("new.test");
    state.adopt(prepared);
    assert_eq!(in_use(&state), ["old.test"]);
    state.tick(&bed.config);
    assert_eq!(in_use(&state), ["new.test"]);
}

#[test]
fn files_that_do_not_fit_change_nothing_until_they_do() {
    let bed = Bed::new("old.test");
    let mut state = TlsState::default();
    let prepared = state.prepare(&bed.config, Vec::new(), None).unwrap();
    state.adopt(prepared);
    let key = fs::read_to_string(bed.place("key.pem")).unwrap();
    bed.issue("new.test");
    let next = fs::read_to_string(bed.place("key.pem")).unwrap();
    replace(&bed.place("key.pem"), &key);
    state.tick(&bed.config);
    assert_eq!(in_use(&state), ["old.test"], "the chain came first");
    replace(&bed.place("key.pem"), &next);
    state.tick(&bed.config);
    assert_eq!(in_use(&state), ["new.test"]);
}

#[test]
fn secrets_are_not_added_to_what_others_can_read() {
    let mut bed = Bed::new("a.test");
    let path = bed.place("secrets");
    fs::write(&path, "").unwrap();
    bed.config.tls.key_log = Some(path.clone());
    let mut state = TlsState::default();
    for (mode, right) in [(0o644, false), (0o640, false), (0o600, true)] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let prepared = state.prepare(&bed.config, Vec::new(), None).map(|_| ());
        assert_eq!(prepared.is_ok(), right, "{mode:o}: {prepared:?}");
        if let Err(error) = prepared {
            assert!(error.to_string().contains("chmod 600"), "{error}");
        }
    }
}
