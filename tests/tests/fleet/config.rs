//! Credentials, and what a start and the servers say of them.

use std::os::unix::fs::PermissionsExt as _;

use afpa_testkit::{Server, eventually_within};

use crate::bed::{Application, Nats, SOON, gather, look, machine, said, version};

#[test]
fn credentials_let_a_machine_in_and_wrong_ones_are_told() {
    let Some(nats) = Nats::start_with(1, &["--user=afpa", "--pass=secret"]) else { return };
    let application = Application::start();
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("rights");
        format!("credentials = \"{}\"", path.display())
    };
    let (right, wrong) = (file("right", "afpa:secret\n"), file("wrong", "afpa:guess\n"));
    let a = machine("a", &nats.urls(), &application, (&right, ""));
    let b = machine("b", &nats.urls(), &application, (&wrong, ""));
    gather(&[&a], &["a"]);
    assert_eq!(version(&b, "/"), 1);
    eventually_within(SOON, "the reason is told", || {
        look(&b)["trouble"].as_str().is_some_and(|why| why.contains("uthorization"))
    });
    assert!(!said(&b, &["stats", "--json"]).1.contains("guess"));
}

#[test]
fn a_file_without_credentials_ends_the_start_with_a_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("nats");
    std::fs::write(&path, "two words\n").expect("written");
    let mut server = Server::launch("/".as_ref(), |launch| {
        launch.written(|listen| {
            format!(
                "[fleet]\nservers = [\"nats://127.0.0.1:4222\"]\ncredentials = \"{}\"\n\
                 [[site]]\nlisten = [\"{listen}\"]\nroot = \"/\"\n",
                path.display()
            )
        });
    });
    let status = server.wait(SOON).expect("it ends");
    assert!(!status.success());
    let log = server.log();
    assert!(
        log.contains("neither USER:PASSWORD") && log.contains("= write USER:PASSWORD"),
        "{log}"
    );
    server.kill();
}
