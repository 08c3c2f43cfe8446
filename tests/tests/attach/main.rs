//! `afpa attach` beside servers that know nothing of it.

/// The server's lab, of nginx if nothing else is said, with more in its configuration if that is given: within the
/// server's own part, and beside it. Where it cannot be had, the test ends with SKIP.
macro_rules! lab {
    () => {
        lab!(afpa_tests::attach::Kind::Nginx)
    };
    ($kind:expr) => {
        lab!($kind, |_| String::new())
    };
    ($kind:expr, $inside:expr) => {
        lab!($kind, $inside, |_| String::new())
    };
    ($kind:expr, $inside:expr, $beside:expr) => {
        match afpa_tests::attach::Lab::configured($kind, $inside, $beside) {
            Ok(lab) => lab,
            Err(reason) => afpa_testkit::skip!("{reason}"),
        }
    };
}

mod answers;
mod clients;
mod dns;
mod dns_busy;
mod dns_clients;
mod dns_ferret;
mod dns_soak;
mod doctor;
mod fields;
mod health;
mod kept;
mod life;
mod long;
mod named;
mod one;
mod others;
mod pause;
mod police;
mod rights;
mod self_check;
mod socketless;
mod start;
mod strangers;
mod timeout;

use afpa_testkit::Client;

/// The content at a path of the server.
#[track_caller]
fn body(client: &mut Client, path: &str) -> Vec<u8> {
    client.send(format!("GET {path} HTTP/1.1\r\nHost: 10.77.0.1:8080\r\n\r\n"));
    let response = client.receive();
    assert_eq!(response.status, 200, "{response:?}");
    response.body
}
