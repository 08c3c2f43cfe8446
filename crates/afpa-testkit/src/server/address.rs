//! Addresses that no other test uses.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener},
    sync::atomic::{AtomicU8, AtomicU32, Ordering},
};

/// A loopback address for one server: the kernel gives clients 127.0.0.1 as theirs, and no two
/// servers share an address, so that no port is taken between finding it free and using it.
pub(super) fn own_loopback_address() -> Ipv4Addr {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let [.., high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, high.max(1), low, NEXT.fetch_add(1, Ordering::Relaxed).clamp(1, 254))
}

/// An address that nothing else listens on: for servers that tests start themselves.
pub fn free_address() -> SocketAddr {
    free_port(IpAddr::V4(own_loopback_address()))
}

/// A listener on such an address: between finding and using one, a program of another test may have bound it for all addresses.
pub fn free_listener() -> TcpListener {
    listener_on(IpAddr::V4(own_loopback_address()))
}

/// A port that is free, and stays so until a child process has it: it is below the ports that the system gives to a socket
/// without one.
pub(super) fn free_port(address: IpAddr) -> SocketAddr {
    let listener = listener_on(address);
    listener.local_addr().unwrap_or_else(|error| panic!("no address of {address}: {error}"))
}

fn listener_on(address: IpAddr) -> TcpListener {
    const PORTS: std::ops::Range<u32> = 10_000..32_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(97);
    let free = PORTS.clone().find_map(|_| {
        let place = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = PORTS.start + place % (PORTS.end - PORTS.start);
        TcpListener::bind((address, port as u16)).ok()
    });
    free.unwrap_or_else(|| panic!("no free port of {address}"))
}
