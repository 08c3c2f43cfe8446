//! How many connections without a socket a client may have.

use afpa_bpf::{Reason, Settings};
use afpa_testkit::eventually;
use afpa_testkit::tcp::RawClient;

use crate::support::socketless::{Bench, SOON, learn, syn_ack};

const MOST: u32 = 4;

fn bench() -> Option<Bench> {
    Bench::with(Settings { client_connections: MOST, ..Settings::default() })
}

#[test]
fn a_client_opens_as_many_as_it_may_and_then_the_kernel_does() {
    let Some(bench) = bench() else { return };
    let mut open: Vec<_> = (0..MOST).map(|_| bench.open()).collect();
    let client = open[0].address().ip();
    assert_eq!(bench.fast_path.clients.connections_of(client), MOST);
    assert_eq!(bench.fast_path.clients.without_socket(), MOST as usize, "of all clients");
    let mut further = bench.raw();
    further.connect();
    assert_eq!(bench.count(Reason::SocketlessOpened), u64::from(MOST), "{:?}", bench.counts());
    assert!(bench.count(Reason::SocketlessTooMany) >= 1);
    assert_ne!(bench.sockets_of(further.address()), "", "it is the kernel's from the beginning");

    // One ends, another is assigned: there is room for two.
    let mut first = open.remove(0);
    first.finish();
    let fin = first.answers(SOON);
    first.accept(&fin[0]);
    first.acknowledge();
    bench.await_count(Reason::SocketlessClosed, 1);
    open[0].ask_user();
    assert_eq!(bench.fast_path.clients.connections_of(client), MOST - 2, "{:?}", bench.counts());
    let again: Vec<_> = (0..2).map(|_| bench.open()).collect();
    assert_eq!(bench.fast_path.clients.connections_of(client), MOST);

    for one in open.iter().skip(1).chain(&again) {
        one.reset();
    }
    bench.world.raw().collect(SOON);
    assert_eq!(bench.fast_path.clients.connections_of(client), 0, "{:?}", bench.counts());
    assert_eq!(bench.fast_path.clients.without_socket(), 0, "{:?}", bench.counts());
}

/// Where there are enough, those that are open are answered, and others have sockets.
#[test]
fn all_are_counted_and_no_more_begin_where_there_are_enough() {
    let Some(bench) = Bench::new() else { return };
    let mut open: Vec<_> = (0..3).map(|_| bench.open()).collect();
    assert_eq!(bench.fast_path.clients.without_socket(), 3);
    bench.fast_path.socketless.set_full(true);
    let mut further = bench.raw();
    further.connect();
    assert_ne!(bench.sockets_of(further.address()), "", "it is the kernel's from the beginning");
    for client in &mut open {
        let reply = client.ask(&client.get("/kernel.html"));
        assert!(reply.text().ends_with("from the kernel"), "{reply:?}");
    }
    assert_eq!(bench.fast_path.clients.without_socket(), 3);
    bench.fast_path.socketless.set_full(false);
    open.push(bench.open());
    open.iter().for_each(RawClient::reset);
    eventually("they are gone", || bench.fast_path.clients.without_socket() == 0);
}

/// All SYNs before the first acknowledgement: cookies know no limit, connections do.
#[test]
fn many_cookies_open_no_more_than_a_client_may_have() {
    let Some(bench) = bench() else { return };
    let one = || {
        let mut client = bench.raw();
        let answer = syn_ack(&mut client, |_| ());
        learn(&mut client, &answer);
        client
    };
    let mut clients: Vec<_> = (0..MOST + 2).map(|_| one()).collect();
    for client in &mut clients {
        client.acknowledge();
    }
    let address = clients[0].address().ip();
    let mut answers = 0;
    for client in &mut clients {
        let reply = client.ask(&client.get("/kernel.html"));
        answers += u32::from(reply.is_from_kernel());
        assert!(reply.text().ends_with("from the kernel") || reply.text().contains("nginx"));
    }
    assert_eq!(answers, MOST, "the others are the server's: {:?}", bench.counts());
    assert_eq!(bench.fast_path.clients.connections_of(address), MOST);
}
