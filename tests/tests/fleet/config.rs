//! Credentials, and what a start and the servers say of them.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;

use afpa_testkit::{Server, eventually_within};
use afpa_tests::tls::Authority;

use crate::bed::{Application, Nats, SOON, gather, look, machine, said, version};

#[test]
fn credentials_let_a_machine_in_and_wrong_ones_are_told() {
    let user = |_| ["--user=afpa", "--pass=secret"].map(str::to_owned).to_vec();
    let Some(nats) = Nats::start_with(1, user) else { return };
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
fn servers_by_tls_have_to_show_a_certificate_of_the_authority() {
    let authority = Authority::new();
    let certified = |address: SocketAddr| {
        let files = authority.issue("nats", &[&address.ip().to_string()]);
        let [chain, key] = [files.chain, files.key].map(|file| file.display().to_string());
        vec!["--tls".to_owned(), format!("--tlscert={chain}"), format!("--tlskey={key}")]
    };
    let Some(nats) = Nats::start_with(1, certified) else { return };
    let application = Application::start();
    let url = nats.urls().replace("nats:", "tls:");
    let ca = format!("ca = \"{}\"", authority.path().display());
    let a = machine("a", &url, &application, (&ca, ""));
    gather(&[&a], &["a"]);
    // The system does not know it.
    let b = machine("b", &url, &application, ("", ""));
    eventually_within(SOON, "the reason is there", || {
        look(&b)["trouble"].as_str().is_some_and(|why| why.contains("certificate"))
    });
    assert_eq!((look(&a)["connected"].as_bool(), version(&b, "/")), (Some(true), 1));
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
