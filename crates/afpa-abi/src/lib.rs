//! The interface between AFPA's eBPF programs and user mode: `bpf/include/afpa/abi.h` and `reasons.h` for Rust.
//!
//! The build script makes the constants, enums and structs of these headers, with their comments as
//! documentation. Every offset is asserted at compile time, and `afpa-bpf` compares the layouts with the
//! BTF of the object that is loaded. This file has only conversions. Numbers are in host byte order;
//! addresses have 16 bytes, IPv4 as `::ffff:a.b.c.d`.
#![forbid(unsafe_code)]

mod plain;

use std::net::{IpAddr, SocketAddr};

pub use generated::*;

/// The headers in Rust.
mod generated {
    #![allow(missing_docs)] // some members say what they are by their names

    use std::mem::{offset_of, size_of};

    use crate::StructLayout;
    use crate::plain::Plain;

    include!(concat!(env!("OUT_DIR"), "/layouts.rs"));
    include!(concat!(env!("OUT_DIR"), "/reasons.rs"));
}

/// The part that the programs for DNS share with user mode: `bpf/include/afpa/dns/abi.h` and `reasons.h` there.
pub mod dns {
    #![allow(missing_docs)] // some members say what they are by their names

    use std::mem::{offset_of, size_of};

    use crate::StructLayout;
    use crate::plain::Plain;

    include!(concat!(env!("OUT_DIR"), "/dns_layouts.rs"));
    include!(concat!(env!("OUT_DIR"), "/dns_reasons.rs"));
}

/// The part that the program for QUIC shares with user mode: `bpf/include/afpa/quic/abi.h` and `reasons.h` there.
pub mod quic {
    #![allow(missing_docs)] // some members say what they are by their names

    use std::mem::{offset_of, size_of};

    use crate::StructLayout;
    use crate::plain::Plain;

    include!(concat!(env!("OUT_DIR"), "/quic_layouts.rs"));
    include!(concat!(env!("OUT_DIR"), "/quic_reasons.rs"));
}

/// The layout of a struct, for the comparison with the BTF of the programs.
#[derive(Clone, Copy, Debug)]
pub struct StructLayout {
    /// Its name in C.
    pub name: &'static str,
    /// Its bytes.
    pub size: usize,
    /// Name and offset of each member, in order.
    pub members: &'static [(&'static str, usize)],
}

impl Endpoint {
    /// The map key of a local address.
    pub fn new(address: SocketAddr) -> Self {
        Self { address: address_bytes(address.ip()), port: address.port(), reserved: 0 }
    }
}

impl FlowKey {
    /// The key of a connection, seen from the server.
    pub fn new(client: SocketAddr, server: SocketAddr) -> Self {
        Self {
            client: address_bytes(client.ip()),
            server: address_bytes(server.ip()),
            client_port: client.port(),
            server_port: server.port(),
        }
    }
}

/// The 16 bytes of an address, IPv4 mapped.
pub fn address_bytes(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

const _: () = assert!(Reason::ALL.len() <= REASONS_MAX);
