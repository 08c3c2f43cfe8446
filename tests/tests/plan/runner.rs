//! The script that runs test programs: one that is ended says what its program had said, and leaves nothing behind.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_runner_that_is_ended_ends_its_program_and_says_what_that_said() {
    let runner = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/runner");
    for is_listed in [false, true] {
        let name = format!("afpa-runner-{}-{is_listed}", std::process::id());
        let folder = Folder(std::env::temp_dir().join(name));
        let at = |name: &str| folder.0.join(name);
        fs::create_dir_all(at("temporary")).expect("a folder");
        let (program, begun) = (at("program-1"), at("begun"));
        let made = Command::new("mkfifo").arg(&begun).status().expect("mkfifo");
        assert!(made.success());
        // It ends by itself, should the runner not end it.
        let (shown, path) = (begun.display(), program.display().to_string());
        let text = format!("#!/bin/bash\necho 'it began'\necho $$ >{shown}\nexec sleep 300\n");
        fs::write(&program, text).expect("a program");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).expect("permissions");
        let listed = format!("some\t{}\tunit\t{path}", folder.0.display());
        let arguments = if is_listed { vec!["--listed", &listed] } else { vec![path.as_str()] };
        let mut running = Command::new(&runner)
            .args(arguments)
            .env("CARGO_PKG_NAME", "some")
            .env("WANTED_STAGE", "unit")
            .env_remove("WANTED_PROGRAMS")
            .env_remove("TEST_AGAIN")
            .env("TEST_TIMES", at("times"))
            .env("TMPDIR", at("temporary"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("a runner");
        let mut id = String::new();
        let mut told = BufReader::new(fs::File::open(&begun).expect("a pipe"));
        told.read_line(&mut id).expect("the program's id");
        let sent = Command::new("kill").args(["-s", "TERM", &running.id().to_string()]).status();
        assert!(sent.expect("kill").success());
        let mut said = String::new();
        running.stdout.take().expect("a pipe").read_to_string(&mut said).expect("an output");
        assert_eq!(said, "some: program\nit began\n", "{is_listed}");
        assert!(!running.wait().expect("its end").success());
        assert!(!Path::new("/proc").join(id.trim()).exists(), "the program goes on");
        let left = fs::read_dir(at("temporary")).expect("a folder").count();
        assert_eq!(left, 0, "{is_listed}");
    }
}
