//! A lab whose wiring changes: interfaces that come, join others and take over, and clients of which each frame is known.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use afpa_bpf::{Carriers, Change, Reason, interfaces};
use afpa_netlab::{Bed, Namespace, connect};
use afpa_testkit::packet::PacketSocket;
use afpa_testkit::tcp::{Link, RawClient};
use afpa_testkit::{Client, Running, eventually, nginx};
use afpa_tests::tcp::{Lab, PORT, Plan, large};

/// The second interface of both sides.
pub(crate) const SIDE: &str = "eth1";
/// How long to wait for a segment that must not come.
pub(crate) const QUIET: Duration = Duration::from_millis(300);
/// The MAC address of nobody.
pub(crate) const STRANGER: [u8; 6] = [2, 0, 0, 0, 0x77, 1];

pub(crate) fn lab() -> Option<Lab> {
    Lab::with_sample(Plan::default())
}

/// Runs `ip` with these words in a namespace.
#[track_caller]
pub(crate) fn ip(namespace: &Namespace, words: &str) {
    run("ip", &["-n", namespace.name()], words);
}

/// Whether `ip` succeeds: this kernel may lack what is asked for.
pub(crate) fn try_ip(namespace: &Namespace, words: &str) -> bool {
    let mut command = Command::new("ip");
    command.args(["-n", namespace.name()]).args(words.split_whitespace());
    command.output().is_ok_and(|output| output.status.success())
}

/// Runs `tc` with these words in a namespace.
#[track_caller]
pub(crate) fn tc(namespace: &Namespace, words: &str) {
    run("tc", &["-n", namespace.name()], words);
}

#[track_caller]
fn run(program: &str, first: &[&str], words: &str) {
    let mut command = Command::new(program);
    let output = command.args(first).args(words.split_whitespace()).output().expect("it runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {words}: {error}");
}

#[track_caller]
pub(crate) fn sysctl(namespace: &Namespace, setting: &str) {
    let status = namespace.command("sysctl").args(["-qw", setting]).status().expect("it runs");
    assert!(status.success(), "sysctl {setting}");
}

/// Whether the kernel has such a setting, and takes this value.
pub(crate) fn try_sysctl(namespace: &Namespace, setting: &str) -> bool {
    let mut command = namespace.command("sysctl");
    command.args(["-qw", setting]).output().is_ok_and(|output| output.status.success())
}

/// Rules for the packet filter of a namespace. False: it cannot be had, and SKIP was said.
pub(crate) fn filter(namespace: &Namespace, rules: &str) -> bool {
    let done = namespace.command("nft").arg(rules).output();
    let done = done.is_ok_and(|output| output.status.success());
    if !done {
        afpa_testkit::aloud::say("SKIP", "no nft here, or a kernel without nf_tables");
    }
    done
}

/// Puts the programs on another interface of the server.
#[track_caller]
pub(crate) fn attach(lab: &Lab, interface: &str) {
    let attached = lab.bed.server().run(|| {
        let index = nix::net::if_::if_nametoindex(interface).expect("an interface");
        lab.fast_path().interfaces.attach(index)
    });
    attached.expect("the server's side").expect("attached");
}

/// Puts the programs on the interfaces that the product would choose, as they are now.
#[track_caller]
pub(crate) fn attach_to_all(lab: &Lab) {
    let any = SocketAddr::new("::".parse().expect("an address"), PORT);
    let changes = lab.bed.server().run(|| {
        let all = interfaces().expect("the interfaces");
        Carriers::default().update(&lab.fast_path().interfaces, &[any], &all)
    });
    for change in changes.expect("the server's side") {
        assert!(matches!(change, Change::Added(_)), "{change:?}");
    }
}

/// A second pair of interfaces, with these addresses (ADDRESS/PREFIX) of the server and the client.
pub(crate) fn second_pair(lab: &Lab, server: &str, client: &str) {
    let sides = [lab.bed.server(), lab.bed.client()];
    connect((sides[0], SIDE), (sides[1], SIDE)).expect("a pair of interfaces");
    for (side, address) in sides.into_iter().zip([server, client]) {
        for interface in [Bed::DEVICE, SIDE, "all"] {
            sysctl(side, &format!("net.ipv4.conf.{interface}.rp_filter=0"));
        }
        ip(side, &format!("addr add {address} dev {SIDE}"));
    }
}

/// `mv0`, a macvlan on the server's card, with an address of its own and the programs on it. False: the kernel has none.
pub(crate) fn add_macvlan(lab: &Lab) -> bool {
    let (server, client) = (lab.bed.server(), lab.bed.client());
    if !try_ip(server, "link add mv0 link eth0 type macvlan mode bridge") {
        return false;
    }
    ip(server, "addr add 10.79.0.1/24 dev mv0");
    ip(server, "link set mv0 up");
    ip(client, "addr add 10.79.0.2/24 dev eth0");
    ip(client, &format!("neigh replace 10.79.0.1 lladdr {} dev eth0", text(mac(server, "mv0"))));
    attach(lab, "mv0");
    true
}

/// Puts the server's card into a bridge `br0`, which takes over its address and has its MAC address, and the programs on it.
pub(crate) fn join_bridge(lab: &Lab) {
    let server = lab.bed.server();
    let card = text(mac(server, Bed::DEVICE));
    ip(server, &format!("link add br0 address {card} type bridge"));
    ip(server, "link set br0 up");
    ip(server, "link set eth0 master br0");
    ip(server, "addr add 10.77.0.1/16 dev br0");
    ip(server, "addr del 10.77.0.1/16 dev eth0");
    attach(lab, "br0");
}

/// `eth0.7`, a tagged network on the cards of both sides, with addresses of its own and the programs on the server's. False:
/// the kernel has none.
pub(crate) fn add_virtual_lan(lab: &Lab) -> bool {
    let sides = [(lab.bed.server(), "10.79.0.1/24"), (lab.bed.client(), "10.79.0.2/24")];
    for (side, address) in sides {
        if !try_ip(side, "link add link eth0 name eth0.7 type vlan id 7") {
            return false;
        }
        ip(side, &format!("addr add {address} dev eth0.7"));
        ip(side, "link set eth0.7 up");
    }
    attach(lab, "eth0.7");
    true
}

/// A connection to this address of the server.
pub(crate) fn to(lab: &Lab, address: &str) -> Client {
    let address = SocketAddr::new(address.parse().expect("an address"), PORT);
    lab.bed.client().run(|| Client::to(address)).expect("the client's side")
}

/// Checks misses, an upload and a long response on a connection: every byte is the server's.
#[track_caller]
pub(crate) fn user_mode_is_right(client: &mut Client) {
    assert_eq!(client.get("/user.html").body, b"from nginx");
    let content: Vec<u8> = large().into_iter().rev().collect();
    let head = format!(
        "PUT /upload/x HTTP/1.1\r\nHost: server\r\nContent-Length: {}\r\n\r\n",
        content.len()
    );
    client.send([head.as_bytes(), &content].concat());
    let status = client.receive().status;
    assert!(matches!(status, 201 | 204), "{status}");
    assert!(client.get("/upload/x").body == content, "what was uploaded");
    assert!(client.get("/large.html").body == large(), "a long response");
}

/// Nothing in the counts says that a segment had to be dropped.
#[track_caller]
pub(crate) fn nothing_was_dropped(lab: &Lab) {
    let counters = lab.counters();
    let dropped: u64 =
        [Reason::TranslateFailed, Reason::DropUnparsed, Reason::EgressUnparsed, Reason::DropNoWay]
            .iter()
            .map(|reason| counters[*reason])
            .sum();
    assert_eq!(dropped, 0, "{}", lab.tally());
}

/// Checks that every byte is right, whether the kernel or user mode answers.
#[track_caller]
pub(crate) fn everything_is_right(lab: &Lab, client: &mut Client) {
    for _ in 0..3 {
        let reply = client.get("/kernel.html");
        let right: &[u8] =
            if reply.is_from_kernel() { b"from the kernel" } else { b"from nginx, the pinned one" };
        assert_eq!(reply.body, right, "{reply:?}\n{}", lab.tally());
        let reply = client.get("/user.html");
        assert_eq!(reply.body, b"from nginx", "{reply:?}\n{}", lab.tally());
        user_mode_is_right(client);
    }
}

/// A conversation that nobody but user mode holds: every byte is right, and nothing was answered before it.
#[track_caller]
pub(crate) fn user_mode_serves(lab: &Lab, client: &mut Client) {
    let before = lab.count(Reason::Answered);
    for _ in 0..2 {
        assert_eq!(client.get("/kernel.html").body, b"from nginx, the pinned one");
        user_mode_is_right(client);
    }
    assert_eq!(lab.count(Reason::Answered), before, "{}", lab.tally());
}

/// A link for a client's frames. It sends by one interface, to one MAC address and from one. It receives by another, and
/// takes only frames for its own address there, as a network card does.
pub(crate) struct Legs {
    pub(crate) out: PacketSocket,
    pub(crate) from: [u8; 6],
    pub(crate) to: [u8; 6],
    pub(crate) back: PacketSocket,
    pub(crate) own: [u8; 6],
}

impl Link for Legs {
    fn send(&self, frame: &[u8]) {
        let mut frame = frame.to_vec();
        frame[..6].copy_from_slice(&self.to);
        frame[6..12].copy_from_slice(&self.from);
        assert!(self.out.send(&frame).expect("sent"), "the device has room");
    }

    fn receive(&self, frame: &mut [u8], patience: Duration) -> Option<usize> {
        let deadline = Instant::now() + patience;
        loop {
            match self.back.receive(frame).expect("received") {
                Some(length) if frame[..6] == self.own => return Some(length),
                Some(_) => {}
                None => self.back.wait(deadline.checked_duration_since(Instant::now())?),
            }
        }
    }
}

/// The MAC address of an interface.
pub(crate) fn mac(side: &Namespace, interface: &str) -> [u8; 6] {
    side.interface(interface).mac().expect("an address")
}

/// A packet socket on an interface of the client.
pub(crate) fn socket(lab: &Lab, interface: &str) -> PacketSocket {
    let socket = lab.bed.client().run(|| PacketSocket::open(interface));
    socket.expect("the client's side").expect("a packet socket")
}

pub(crate) fn text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// The address of a client made by hand; no kernel has it.
pub(crate) const WIRED: &str = "10.77.200.1";

/// Fixes the interface and the MAC address by which the server reaches this client.
pub(crate) fn server_sends(lab: &Lab, address: &str, interface: &str, mac: [u8; 6]) {
    let server = lab.bed.server();
    ip(server, &format!("route replace {address}/32 dev {interface}"));
    ip(server, &format!("neigh replace {address} lladdr {} dev {interface}", text(mac)));
}

/// A client by hand over these legs, connected.
#[track_caller]
pub(crate) fn wired(legs: Legs) -> RawClient {
    static PORTS: AtomicU16 = AtomicU16::new(30_000);
    let here: IpAddr = WIRED.parse().expect("an address");
    let here = SocketAddr::new(here, PORTS.fetch_add(1, Ordering::Relaxed));
    let there = SocketAddr::new(Bed::SERVER_V4.into(), PORT);
    let mut client = RawClient::new(legs, Default::default(), here, there);
    client.connect();
    client
}

/// nginx in another namespace on the port of the lab, with these files below `folder`.
pub(crate) fn another_server(
    namespace: &Namespace,
    folder: &std::path::Path,
    files: &[(&str, &str)],
) -> Running {
    let www = folder.join("www");
    std::fs::create_dir_all(&www).expect("a folder");
    for (name, content) in files {
        std::fs::write(www.join(name), content).expect("written");
    }
    let main = "user root; master_process off; events { worker_connections 64; }";
    let listen = format!("listen {PORT}; listen [::]:{PORT};");
    let file = folder.join("nginx.conf");
    let text = nginx::configuration(folder, main, "access_log off;", &listen);
    std::fs::write(&file, text).expect("written");
    let mut command = namespace.command(nginx::PROGRAM);
    command.arg("-p").arg(folder).arg("-c").arg(&file);
    let mut server = Running::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
    let address = SocketAddr::from(([127, 0, 0, 1], PORT));
    eventually("the other server", || {
        assert!(server.is_alive(), "nginx ended");
        namespace.run(|| TcpStream::connect(address).is_ok()).expect("inside")
    });
    server
}
