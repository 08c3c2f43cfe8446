//! Frames for test runs of the programs, IPv4 or IPv6.

use std::net::SocketAddr;

use afpa_bpf::FlowKey;
use afpa_testkit::packet::{ACK, PSH, Segment};

use super::{PORT, SERVER_V4, SERVER_V6};

/// One TCP segment in an Ethernet frame. Numbers are as sent, from either side.
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
            if self.ipv6 { ("fd77::2", SERVER_V6) } else { ("10.77.0.2", SERVER_V4) };
        let end = |address: &str, port| SocketAddr::new(address.parse().expect("an address"), port);
        (end(client, 40_000), end(server, self.server_port))
    }

    pub fn key(&self) -> FlowKey {
        let (client, server) = self.ends();
        FlowKey::new(client, server)
    }

    pub fn bytes(&self) -> Vec<u8> {
        let (client, server) = self.ends();
        let (from, to) = if self.from_server { (server, client) } else { (client, server) };
        let segment = Segment {
            seq: self.seq,
            ack: self.ack,
            flags: self.flags,
            window: 256,
            sack: self.sack.clone(),
            payload: self.payload.clone(),
            ..Segment::new(from, to)
        };
        // For `lo`, on which programs are run: a frame for another card would not be taken.
        segment.frame(&[0; 12])
    }
}
