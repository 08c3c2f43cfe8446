//! A network that loses datagrams.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use afpa_testkit::{eventually, tree::patterned};
use afpa_tests::quic::sum;
use afpa_tests::tls::Authority;
use serde_json::json;

use crate::{LARGE, both, site};

/// A way to a server that loses every nth datagram to it, and from it. It ends with the test.
fn lossy(server: SocketAddr, (there, back): (usize, usize)) -> SocketAddr {
    let near = Arc::new(UdpSocket::bind("127.0.0.1:0").expect("bound"));
    let far = Arc::new(UdpSocket::bind("127.0.0.1:0").expect("bound"));
    far.connect(server).expect("connected");
    let address = near.local_addr().expect("an address");
    let client = Arc::new(std::sync::Mutex::new(None));
    let (from, to, known) = (Arc::clone(&near), Arc::clone(&far), Arc::clone(&client));
    std::thread::spawn(move || {
        let mut room = [0; 65_536];
        for count in 1_usize.. {
            let Ok((n, client)) = from.recv_from(&mut room) else { return };
            *known.lock().expect("one at a time") = Some(client);
            if count % there != 0 && to.send(&room[..n]).is_err() {
                return;
            }
        }
    });
    std::thread::spawn(move || {
        let mut room = [0; 65_536];
        for count in 1_usize.. {
            let Ok(n) = far.recv(&mut room) else { return };
            let client = *client.lock().expect("one at a time");
            if let (true, Some(client)) = (count % back != 0, client)
                && near.send_to(&room[..n], client).is_err()
            {
                return;
            }
        }
    });
    address
}

#[test]
fn lost_datagrams_lose_nothing() {
    let (tree, authority) = (site(), Authority::new());
    let Some((server, mut client)) = both(&authority, &tree, "", "", |_| {}) else { return };
    let way = lossy(server.tls, (13, 17)).to_string();
    let order = json!({"do": "ask", "on": "a", "to": way, "path": "/large.bin", "count": 3});
    for got in client.all(&order) {
        assert_eq!((&got["status"], &got["error"]), (&json!(200), &json!("")), "{got}");
        assert_eq!(got["sum"], sum(&patterned(LARGE)));
    }
    assert_eq!(client.get("/hello.txt")["status"], 200);
}

#[test]
fn a_handshake_that_is_not_completed_ends() {
    let (tree, authority) = (site(), Authority::new());
    let times = "[timeouts]\nhead = \"1s\"\n";
    let Some((server, mut client)) = both(&authority, &tree, times, "", |_| {}) else { return };
    let way = lossy(server.tls, (usize::MAX, 1)).to_string();
    client.order(&json!({"do": "open", "on": "a", "to": way}));
    eventually("the server gives up", || server.number("/tls/failed/timed_out") > 0);
    eventually("its place is free", || server.number("/connections/open") == 0);
    assert_ne!(client.answers()[0]["error"], "");
    assert_eq!(client.get("/hello.txt")["status"], 200);
}
