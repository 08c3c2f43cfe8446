//! `afpa attach` beside what else decides about connections: another server on the same port, and the firewall.

use std::fs;
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use afpa_netlab::Bed;
use afpa_testkit::{Asked, Client, Running, eventually, nginx, skip};
use afpa_tests::attach::{Kind, Lab, PORT};

const PATH: &str = "/page.html";

/// Another nginx, which listens on the same port for IPv6 alone.
struct Other(#[allow(dead_code, reason = "kept for its drop")] Running);

impl Other {
    fn start(lab: &Lab) -> Self {
        let folder = lab.folder.path().join("other");
        fs::create_dir_all(folder.join("www")).expect("a folder");
        fs::write(folder.join("www/page.html"), "the other server's").expect("written");
        let configuration = nginx::configuration(
            &folder,
            "worker_processes 1; events { worker_connections 64; }",
            "access_log off; types { text/html html; }",
            &format!("listen [::]:{PORT} ipv6only=on;"),
        );
        fs::write(folder.join("nginx.conf"), configuration).expect("written");
        let mut command = lab.bed().server().command(nginx::PROGRAM);
        command.arg("-c").arg(folder.join("nginx.conf"));
        Self(Running::start(command.stdout(Stdio::null()).stderr(Stdio::null())))
    }
}

fn connect_v6(lab: &Lab) -> Option<Client> {
    let address = SocketAddr::new(Bed::SERVER_V6.into(), PORT);
    let stream = lab.bed().client().run(move || std::net::TcpStream::connect(address));
    Some(Client::of(stream.expect("the namespace").ok()?))
}

fn get(client: &mut Client) -> String {
    client.send(format!("GET {PATH} HTTP/1.1\r\nHost: localhost:{PORT}\r\n\r\n"));
    let response = client.receive();
    assert_eq!(response.status, 200, "{response:?}");
    String::from_utf8(response.body).expect("text")
}

#[test]
fn another_server_on_the_same_port_is_never_answered_for() {
    let lab = lab!(Kind::Nginx);
    lab.file("page.html", "the first server's");
    let _other = Other::start(&lab);
    eventually("the other server answers", || connect_v6(&lab).is_some());
    let root = lab.folder.path().join("other/www");
    // By `[::]` the first server would be asked, too, and a path on which two servers differ is not pinned.
    let own = SocketAddr::new(Bed::SERVER_V6.into(), PORT);
    let attached = lab.attach_to(&own.to_string(), &root, &[]);
    assert!(attached.pinned() > 0, "{}", lab.log());
    for _ in 0..3 {
        let mut first = lab.connect();
        for _ in 0..3 {
            assert_eq!(get(&mut first), "the first server's");
        }
    }
    let before = attached.answered();
    let mut other = connect_v6(&lab).expect("connected");
    for _ in 0..3 {
        assert_eq!(get(&mut other), "the other server's");
    }
    assert!(attached.answered() > before, "its own connections are accelerated: {}", lab.log());
}

/// A client that is banned while its connection is open gets nothing any more, and again when the ban ends.
#[test]
fn a_ban_ends_answers_on_open_connections() {
    let lab = lab!(Kind::Nginx);
    lab.file("page.html", "the page");
    let attached = lab.attach(&["--firewall-interval", "1000"]);
    let ban = |change: &str| {
        let mut iptables = lab.bed().server().command("iptables");
        let rule = ["INPUT", "-p", "tcp", "--dport", "8080", "-j", "DROP"];
        iptables.arg(change).args(rule).status().is_ok_and(|status| status.success())
    };
    let mut client = lab.connect();
    let before = attached.answered();
    assert_eq!(get(&mut client), "the page");
    assert_eq!(attached.answered(), before + 1, "a fresh connection is answered at once");
    if !ban("-I") {
        skip!("no iptables here");
    }
    std::thread::sleep(Duration::from_secs(2));
    let before = attached.answered();
    client.set_patience(Duration::from_millis(500)).expect("set");
    client.send(format!("GET {PATH} HTTP/1.1\r\nHost: localhost:{PORT}\r\n\r\n"));
    assert!(client.try_receive(Asked::Body).is_err(), "a client that is banned was answered");
    assert_eq!(attached.answered(), before);
    assert!(ban("-D"));
    client.set_patience(Duration::from_secs(10)).expect("set");
    assert_eq!(client.receive().body, b"the page", "its request is sent again, and arrives");
    assert_eq!(get(&mut client), "the page");
    assert_eq!(attached.answered(), before + 1, "it is answered in the kernel again");
}
