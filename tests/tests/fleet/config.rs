//! Credentials, and what a start and the servers say of them.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afpa_testkit::server::free_address;
use afpa_testkit::{Server, eventually_within};
use afpa_tests::tls::Authority;

use crate::bed::{Application, Nats, SOON, gather, look, machine, machine_with, said, version};

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

/// A server that has no TLS, and what its clients say to it.
fn plain_server(address: SocketAddr) -> Arc<Mutex<Vec<Vec<u8>>>> {
    let listener = TcpListener::bind(address).expect("bound");
    let heard = Arc::<Mutex<Vec<_>>>::default();
    let hears = Arc::clone(&heard);
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let info = "INFO {\"server_id\":\"x\",\"version\":\"2.9.10\",\"max_payload\":1048576,\"headers\":true}\r\n";
            let (mut bytes, mut count) = ([0; 4096], 0);
            let _ = client.set_read_timeout(Some(Duration::from_secs(1)));
            if client.write_all(info.as_bytes()).is_ok() {
                count = client.read(&mut bytes).unwrap_or(0);
            }
            hears.lock().expect("no panic").push(bytes[..count].to_vec());
        }
    });
    heard
}

#[test]
fn credentials_reach_no_server_without_tls() {
    let authority = Authority::new();
    let second = free_address();
    let more = |address: SocketAddr| {
        let files =
            authority.issue(&format!("nats{}", address.port()), &[&address.ip().to_string()]);
        let [chain, key] = [files.chain, files.key].map(|file| file.display().to_string());
        let mut arguments = ["--user=afpa", "--pass=secret", "--tls"].map(str::to_owned).to_vec();
        arguments.extend([format!("--tlscert={chain}"), format!("--tlskey={key}")]);
        arguments.extend([format!("--client_advertise={second}")]);
        arguments
    };
    let Some(mut nats) = Nats::start_with(2, more) else { return };
    eventually_within(SOON, "the first server names the second address", || {
        let mut info = [0; 4096];
        let mut client = TcpStream::connect(nats.address(0)).expect("connected");
        let count = client.read(&mut info).expect("INFO");
        let info = String::from_utf8_lossy(&info[..count]);
        info.contains("connect_urls") && info.contains(&format!("\"{second}\""))
    });

    let application = Application::start();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("credentials");
    std::fs::write(&path, "afpa:secret\n").expect("written");
    let credentials = format!("credentials = \"{}\"", path.display());
    let url = format!("[\"tls://{}\"]", nats.address(0));
    // The system knows the authority: the configuration has no `ca`.
    let known = authority.path().display().to_string();
    let variables = [("SSL_CERT_FILE", known.as_str())];
    let a = machine_with("a", &url, &application, (&credentials, ""), &variables);
    eventually_within(SOON, "it is connected", || look(&a)["connected"] == true);
    let heard_second = plain_server(second);
    nats.kill(0);
    let heard_first = plain_server(nats.address(0));
    let count = |heard: &Mutex<Vec<Vec<u8>>>| heard.lock().expect("no panic").len();
    eventually_within(SOON, "it tries again and again", || count(&heard_first) >= 6);
    for heard in [&heard_first, &heard_second] {
        for bytes in heard.lock().expect("no panic").iter() {
            let is_told = bytes.windows(6).any(|part| part == b"secret" || part == b"CONNEC");
            assert!(!is_told, "{:?}", String::from_utf8_lossy(bytes));
        }
    }
    assert_eq!(count(&heard_second), 0, "it is not in the configuration");
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
