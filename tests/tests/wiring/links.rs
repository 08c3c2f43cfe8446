//! Links whose addresses mean something on that link alone.

use std::net::{Ipv6Addr, SocketAddrV6, TcpStream};

use afpa_bpf::{Reason, Settings, Socketless};
use afpa_netlab::Bed;
use afpa_testkit::Client;
use afpa_tests::tcp::{Lab, PORT, Plan};
use socket2::{Domain, Socket, Type};

use crate::support::{
    SIDE, attach_to_all, everything_is_right, ip, nothing_was_dropped, second_pair,
};

const SERVER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const CLIENT: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);

/// From a port of the client's address on this link, to the server's on the same.
fn on_link(lab: &Lab, interface: &str, port: u16) -> Client {
    let connect = || -> std::io::Result<TcpStream> {
        let scope = nix::net::if_::if_nametoindex(interface)?;
        let socket = Socket::new(Domain::IPV6, Type::STREAM, None)?;
        socket.bind(&SocketAddrV6::new(CLIENT, port, 0, scope).into())?;
        socket.connect(&SocketAddrV6::new(SERVER, PORT, 0, scope).into())?;
        Ok(socket.into())
    };
    let stream = lab.bed.client().run(connect).expect("the client's side").expect("connected");
    Client::of(stream)
}

/// Both links have a client and a server of the same addresses, which are of that link alone, and the ports are the same, too:
/// two connections of one tuple. None of them is answered, since their numbers would be confused.
#[test]
fn connections_of_one_tuple_on_two_links_do_not_meet() {
    for socketless in [false, true] {
        if socketless && Socketless::refusal().is_some() {
            continue;
        }
        let settings = Settings { socketless, ..Settings::default() };
        let Some(lab) = Lab::with_sample(Plan { settings, ..Plan::default() }) else { return };
        second_pair(&lab, "10.78.0.1/24", "10.78.0.2/24");
        for link in [Bed::DEVICE, SIDE] {
            ip(lab.bed.server(), &format!("addr add {SERVER}/64 dev {link} nodad"));
            ip(lab.bed.client(), &format!("addr add {CLIENT}/64 dev {link} nodad"));
        }
        attach_to_all(&lab);
        for port in 40_000..40_004 {
            let mut clients = [Bed::DEVICE, SIDE].map(|link| on_link(&lab, link, port));
            for _ in 0..3 {
                for client in &mut clients {
                    everything_is_right(&lab, client);
                }
            }
            clients.into_iter().for_each(Client::end);
        }
        nothing_was_dropped(&lab);
        assert!(lab.count(Reason::PassLinkLocal) > 0, "{}", lab.tally());
        let mut other = lab.client();
        lab.converse(&mut other);
        other.end();
    }
}
