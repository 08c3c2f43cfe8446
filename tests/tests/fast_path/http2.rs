//! Clients of HTTP/2 and of TLS on a machine where the kernel answers others.

use afpa_testkit::curl::curl;
use afpa_testkit::{Tree, tree::patterned};
use afpa_tests::h2::H2Client;
use afpa_tests::tls::Authority;

use crate::lab::{Lab, PORT, answers, warm};

const SIZES: [usize; 3] = [20, 900, 9_000];

fn site() -> Tree {
    let tree = Tree::new();
    for size in SIZES {
        tree.file(format!("{size}.txt"), patterned(size));
    }
    tree
}

/// Gets all files on one connection, several times, and compares them byte for byte.
fn everything_is_right(arguments: &[&str], base: &str) {
    let urls: Vec<String> =
        (0..4).flat_map(|_| SIZES.map(|size| format!("{base}/{size}.txt"))).collect();
    let wanted: Vec<u8> = (0..4).flat_map(|_| SIZES.map(patterned)).flatten().collect();
    let answer = curl(arguments.iter().copied().chain(urls.iter().map(String::as_str)));
    let answer = answer.expect("curl is among the packages");
    assert_eq!(answer.exit, 0, "{}", answer.errors);
    assert!(answer.output == wanted, "{} bytes", answer.output.len());
}

/// The preface is no request of HTTP/1.1, so the connection is user mode's from then on.
#[test]
fn a_connection_of_http_2_is_user_modes() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let server = lab.server(&tree, |launch| {
        launch.set(|settings| {
            settings.set("http2.cleartext", true);
        });
    });
    for size in SIZES {
        warm(&server, &format!("/{size}.txt"));
    }
    let before = answers(&server);
    let base = server.url();
    let base = base.trim_end_matches('/');
    // Debian's curl breaks off the second request of such a connection, before nginx as well.
    let mut client = H2Client::connect(&server);
    for size in (0..4).flat_map(|_| SIZES) {
        assert!(client.get(&format!("/{size}.txt")).body == patterned(size), "{size}");
    }
    assert_eq!(answers(&server), before, "the kernel answers none of it");
    everything_is_right(&["--http1.1"], base);
    assert!(answers(&server) > before, "it goes on with the others");
}

/// The kernel has no keys, and port 443 is none of its own.
#[test]
fn connections_of_tls_are_user_modes() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let authority = Authority::new();
    let files = authority.issue("server", &["server"]);
    let server = lab.server(&tree, |launch| {
        launch.arg("--tls").arg("0.0.0.0:443");
        launch.arg("--cert").arg(&files.chain).arg("--key").arg(&files.key);
    });
    for size in SIZES {
        warm(&server, &format!("/{size}.txt"));
    }
    let before = answers(&server);
    let ca = authority.path();
    let address = server.address().ip();
    let at = format!("server:443:{address}");
    let arguments = ["--cacert", ca.to_str().expect("a path"), "--resolve", &at];
    for version in ["--http2", "--http1.1"] {
        everything_is_right(&[&arguments[..], &[version]].concat(), "https://server");
    }
    assert_eq!(answers(&server), before, "the kernel answers none of it");
    warm(&server, "/900.txt");
}

/// Privileges are dropped before the workers listen.
#[test]
fn a_port_below_1024_is_served() {
    let Some(lab) = Lab::new() else { return };
    assert_ne!(PORT, 80);
    let tree = site();
    let server = lab.server_on(80, &tree, |launch| {
        launch.fast_path("off");
    });
    assert_eq!(server.get("/20.txt").body, patterned(20));
}
