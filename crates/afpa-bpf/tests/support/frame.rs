//! Frames made by hand, IPv4 or IPv6.

use std::net::{IpAddr, SocketAddr};

use afpa_bpf::FlowKey;

use super::{PORT, SERVER_V4, SERVER_V6};

pub const FIN: u8 = 1;
pub const SYN: u8 = 2;
pub const RST: u8 = 4;
pub const PSH: u8 = 8;
pub const ACK: u8 = 16;
pub const URG: u8 = 32;
pub const ECE: u8 = 64;

/// One TCP segment in an Ethernet frame. Numbers are as sent, whoever sends it.
#[derive(Clone, Debug)]
pub struct Frame {
    pub ipv6: bool,
    pub from_server: bool,
    pub server_port: u16,
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub sack: Vec<(u32, u32)>,
    pub payload: Vec<u8>,
}

impl Frame {
    pub fn request(text: &str) -> Self {
        Self {
            ipv6: false,
            from_server: false,
            server_port: PORT,
            seq: 1000,
            ack: 2000,
            flags: ACK | PSH,
            sack: Vec::new(),
            payload: text.as_bytes().to_vec(),
        }
    }

    fn ends(&self) -> (SocketAddr, SocketAddr) {
        let (client, server) =
            if self.ipv6 { ("fd99::2", SERVER_V6) } else { ("10.99.0.2", SERVER_V4) };
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        (
            SocketAddr::new(address(client), 40_000),
            SocketAddr::new(address(server), self.server_port),
        )
    }

    pub fn key(&self) -> FlowKey {
        let (client, server) = self.ends();
        FlowKey::new(client, server)
    }

    pub fn bytes(&self) -> Vec<u8> {
        let (client, server) = self.ends();
        let (from, to) = if self.from_server { (server, client) } else { (client, server) };
        let mut tcp = Vec::new();
        tcp.extend(from.port().to_be_bytes());
        tcp.extend(to.port().to_be_bytes());
        tcp.extend(self.seq.to_be_bytes());
        tcp.extend(self.ack.to_be_bytes());
        let options = if self.sack.is_empty() { 0 } else { 4 + 8 * self.sack.len() };
        tcp.extend([((20 + options) / 4 * 16) as u8, self.flags, 1, 0, 0, 0, 0, 0]);
        if options > 0 {
            tcp.extend([1, 1, 5, options as u8 - 2]);
            self.sack
                .iter()
                .for_each(|(from, to)| tcp.extend([from.to_be_bytes(), to.to_be_bytes()].concat()));
        }
        tcp.extend(&self.payload);
        let addresses = [octets(from.ip()), octets(to.ip())].concat();
        let length = tcp.len() as u16;
        let sum = !checksum(&[&addresses, &[0, 6], &length.to_be_bytes(), &tcp]);
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        let (kind, ip) = if self.ipv6 {
            (
                [0x86, 0xdd],
                [&[0x60, 0, 0, 0][..], &length.to_be_bytes(), &[6, 64], &addresses].concat(),
            )
        } else {
            let total = (length + 20).to_be_bytes();
            let mut ip =
                [&[0x45, 0][..], &total, &[0, 1, 0x40, 0, 64, 6, 0, 0], &addresses].concat();
            let sum = !checksum(&[&ip]);
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
            ([8, 0], ip)
        };
        [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..], &kind, &ip, &tcp].concat()
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// RFC 1071; pieces of even length but the last.
pub fn checksum(pieces: &[&[u8]]) -> u16 {
    let word = |pair: &[u8]| u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
    let mut sum: u32 = pieces.iter().flat_map(|piece| piece.chunks(2)).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
