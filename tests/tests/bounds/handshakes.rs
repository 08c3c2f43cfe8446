//! Handshakes in progress: the memory that a handshake in progress can hold.

use std::io::Write as _;
use std::net::TcpStream;

use afpa_testkit::{
    Tree, eventually,
    exclusive::exclusive,
    held::{Growth, MIB},
};
use afpa_tests::tls::{Authority, Plan, TlsServer};

/// A ClientHello may be some 64 KiB long. All of this one comes but its last record.
#[test]
fn a_handshake_holds_no_more_than_a_greeting_may_have() {
    const HANDSHAKES: usize = 150;
    const RECORD: usize = 16 * 1024;
    /// A greeting of 64 KiB, the record that is arriving, and the state of the machine.
    const EACH: u64 = 96 * 1024;
    let _alone = exclusive();
    let tree = Tree::new();
    tree.file("hello.txt", "hello");
    let authority = Authority::new();
    let sections = "[timeouts]\nhead = \"120s\"\n".to_owned();
    let plan = Plan { sections, ..Plan::default() };
    let server = TlsServer::with(&authority, tree.path(), plan);
    authority.way(&server).connect().assert_open("/hello.txt");
    server.server.settle();
    let before = server.server.held();
    let mut greeting = vec![1, 0, 0xff, 0xf0, 3, 3];
    greeting.resize(RECORD, 0);
    let record = |content: &[u8]| {
        let length = u16::try_from(content.len()).expect("a record").to_be_bytes();
        [&[22, 3, 1], &length[..], content].concat()
    };
    let mut clients = Vec::new();
    for _ in 0..HANDSHAKES {
        let mut client = TcpStream::connect(server.tls).expect("connected");
        client.set_nonblocking(true).expect("set");
        let first = client.write(&record(&greeting));
        assert!(first.is_ok_and(|sent| sent > 5), "taken");
        clients.push(client);
    }
    // Each client sends two more records: the whole ClientHello but its last record.
    let more = record(&[0; RECORD]);
    for client in &mut clients {
        client.set_nonblocking(false).expect("set");
        client.write_all(&more).expect("taken");
        client.write_all(&more).expect("taken");
    }
    eventually("all are in progress", || server.number("/tls/in_progress") == HANDSHAKES as u64);
    let bound = Growth {
        memory: HANDSHAKES as u64 * EACH + 4 * MIB,
        descriptors: HANDSHAKES + 8,
        threads: 4,
    };
    server.server.held().since(before).is_at_most("greetings that never end", bound);
    drop(clients);
    eventually("they are let go", || server.number("/tls/in_progress") == 0);
    authority.way(&server).connect().assert_open("/hello.txt");
}
