//! A second way from the client's to the server's side of a bed, by a bridge that is made while others run.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::Command;

use afpa_bpf::Interfaces;
use afpa_netlab::{Bed, Namespace};
use afpa_testkit::{Client, Endpoint};

/// Name of the bridge on the server's side.
pub const BRIDGE: &str = "bridge0";
const PORT: &str = "port0";
const CLIENT: &str = "side0";
const SERVER_V4: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);

/// Makes the bridge, its one port, and the client's interface behind it. The server's address is reached by
/// it from then on, though it is that of the other interface.
#[track_caller]
pub fn make(server: &Namespace, client: &Namespace) {
    let (server, client) = (server.name(), client.name());
    ip(&format!("-n {server} link add {BRIDGE} type bridge"));
    ip(&format!("-n {server} link add {PORT} type veth peer name {CLIENT} netns {client}"));
    ip(&format!("-n {server} link set {PORT} master {BRIDGE}"));
    ip(&format!("-n {server} addr add {SERVER_V4}/24 dev {BRIDGE}"));
    ip(&format!("-n {client} addr add 10.78.0.2/24 dev {CLIENT}"));
    ip(&format!("-n {server} link set {PORT} up"));
    ip(&format!("-n {server} link set {BRIDGE} up"));
    ip(&format!("-n {client} link set {CLIENT} up"));
    ip(&format!("-n {client} route add {} via {SERVER_V4}", Bed::SERVER_V4));
}

/// Removes the bridge, its port and the client's interface.
#[track_caller]
pub fn remove(server: &Namespace) {
    ip(&format!("-n {} link del {PORT}", server.name()));
    ip(&format!("-n {} link del {BRIDGE}", server.name()));
}

/// A connection by the bridge.
#[track_caller]
pub fn connect(client: &Namespace, port: u16) -> Client {
    let endpoint = Endpoint::Tcp(SocketAddr::new(IpAddr::V4(Bed::SERVER_V4), port));
    client.run(move || Client::connect(&endpoint)).expect("the client's side").expect("connected")
}

/// Programs on the bridge, and on its port.
#[track_caller]
pub fn programs(server: &Namespace) -> (u32, u32) {
    let count = |name: &str| {
        let index = nix::net::if_::if_nametoindex(name).expect("an interface");
        Interfaces::programs_on(index).expect("asked")
    };
    server.run(|| (count(BRIDGE), count(PORT))).expect("the server's side")
}

fn ip(words: &str) {
    let output = Command::new("ip").args(words.split_whitespace()).output().expect("ip runs");
    assert!(output.status.success(), "ip {words}: {}", String::from_utf8_lossy(&output.stderr));
}
