//! Segments inside Ethernet frames, IPv4 and IPv6: made and read field by field.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use afpa_netlab::PacketSocket;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Flag bits.
pub const FIN: u8 = 1;
/// See [`FIN`].
pub const SYN: u8 = 2;
/// See [`FIN`].
pub const RST: u8 = 4;
/// See [`FIN`].
pub const PSH: u8 = 8;
/// See [`FIN`].
pub const ACK: u8 = 16;
/// Congestion was experienced (RFC 3168).
pub const ECE: u8 = 64;
/// The congestion window was reduced.
pub const CWR: u8 = 128;

/// A segment to send.
#[derive(Clone, Debug, Default)]
pub struct Segment {
    /// Sequence number of its first byte.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Flag bits.
    pub flags: u8,
    /// Window field, not scaled.
    pub window: u16,
    /// Content.
    pub payload: Vec<u8>,
    /// Bytes of options as they stand, a multiple of four.
    pub options: Vec<u8>,
    /// ECN bits of the IP header.
    pub ecn: u8,
}

/// A segment that came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Source port.
    pub source: u16,
    /// Destination port.
    pub destination: u16,
    /// Sequence number of its first byte.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Flag bits.
    pub flags: u8,
    /// Window field, not scaled.
    pub window: u16,
    /// Timestamp value and echo; 0 without.
    pub ts_value: u32,
    /// See `ts_value`.
    pub ts_echo: u32,
    /// SACK blocks.
    pub sack: Vec<(u32, u32)>,
    /// Shift of the window, from a SYN.
    pub scale: Option<u8>,
    /// Content.
    pub payload: Vec<u8>,
    /// ECN bits of the IP header.
    pub ecn: u8,
    /// The TCP checksum is right.
    pub checksum_holds: bool,
}

impl Received {
    /// Sequence number behind it.
    pub fn end(&self) -> u32 {
        let flags = u32::from(self.flags & FIN != 0) + u32::from(self.flags & SYN != 0);
        self.seq.wrapping_add(self.payload.len() as u32).wrapping_add(flags)
    }

    /// Content as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.payload).into_owned()
    }

    /// Is it (the start of) an answer of a [`Sample`](super::Sample)?
    pub fn is_from_kernel(&self) -> bool {
        self.text().contains("Server: afpa-kernel\r\n")
    }

    /// A whole frame; None: not TCP.
    pub(crate) fn whole(frame: &[u8]) -> Option<Self> {
        let (ip, addresses, length, ecn) = network(frame)?;
        let tcp = frame.get(ip..ip + length)?;
        let mut received = parse(tcp)?;
        received.payload = tcp[usize::from(tcp[12] >> 4) * 4..].to_vec();
        received.ecn = ecn;
        received.checksum_holds = checksum(&[addresses, &pseudo(length), tcp]) == 0xffff;
        Some(received)
    }

    /// The headers of a frame, and the length of its payload.
    pub(crate) fn headers(frame: &[u8], most: usize) -> Option<(Self, usize)> {
        let (ip, _, length, _) = network(frame)?;
        let tcp = frame.get(ip..frame.len().min(most))?;
        let received = parse(tcp)?;
        let header = usize::from(tcp[12] >> 4) * 4;
        Some((received, length.checked_sub(header)?))
    }
}

/// A frame that carries `segment`; `macs`: destination and source.
pub(crate) fn build(macs: &[u8], from: SocketAddr, to: SocketAddr, segment: &Segment) -> Vec<u8> {
    let mut tcp = Vec::new();
    tcp.extend(from.port().to_be_bytes());
    tcp.extend(to.port().to_be_bytes());
    tcp.extend(segment.seq.to_be_bytes());
    tcp.extend(segment.ack.to_be_bytes());
    tcp.extend([((20 + segment.options.len()) / 4 * 16) as u8, segment.flags]);
    tcp.extend(segment.window.to_be_bytes());
    tcp.extend([0; 4]);
    tcp.extend(&segment.options);
    tcp.extend(&segment.payload);
    let addresses = [octets(from.ip()), octets(to.ip())].concat();
    let sum = !checksum(&[&addresses, &pseudo(tcp.len()), &tcp]);
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
    let length = tcp.len() as u16;
    let (kind, ip) = match from.ip() {
        IpAddr::V4(_) => ([0x08, 0x00], ipv4(&addresses, length, segment.ecn)),
        IpAddr::V6(_) => ([0x86, 0xdd], ipv6(&addresses, length, segment.ecn)),
    };
    [macs, &kind, &ip, &tcp].concat()
}

fn ipv4(addresses: &[u8], length: u16, ecn: u8) -> Vec<u8> {
    let mut ip = vec![0x45, ecn];
    ip.extend((20 + length).to_be_bytes());
    ip.extend([0, 1, 0x40, 0, 64, 6, 0, 0]);
    ip.extend(addresses);
    let sum = !checksum(&[&ip]);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    ip
}

fn ipv6(addresses: &[u8], length: u16, ecn: u8) -> Vec<u8> {
    let mut ip = vec![0x60, ecn << 4, 0, 0];
    ip.extend(length.to_be_bytes());
    ip.extend([6, 64]);
    ip.extend(addresses);
    ip
}

/// Where TCP starts, the two addresses, the length of the segment, ECN bits.
fn network(frame: &[u8]) -> Option<(usize, &[u8], usize, u8)> {
    let ip = frame.get(14..)?;
    match frame.get(12..14)? {
        [0x08, 0x00] if ip.len() >= 20 && ip[0] == 0x45 && ip[9] == 6 => {
            let length = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
            Some((34, &ip[12..20], length.checked_sub(20)?, ip[1] & 3))
        }
        [0x86, 0xdd] if ip.len() >= 40 && ip[6] == 6 => {
            let length = usize::from(u16::from_be_bytes([ip[4], ip[5]]));
            Some((54, &ip[8..40], length, ip[1] >> 4 & 3))
        }
        _ => None,
    }
}

fn parse(tcp: &[u8]) -> Option<Received> {
    let word = |at: usize| Some(u32::from_be_bytes(*tcp.get(at..)?.first_chunk()?));
    let half = |at: usize| Some(u16::from_be_bytes(*tcp.get(at..)?.first_chunk()?));
    let mut received = Received {
        source: half(0)?,
        destination: half(2)?,
        seq: word(4)?,
        ack: word(8)?,
        flags: *tcp.get(13)?,
        window: half(14)?,
        ..Received::default()
    };
    let mut options = tcp.get(20..usize::from(tcp[12] >> 4) * 4)?;
    while let [kind, rest @ ..] = options {
        match (kind, rest) {
            (0, _) => break,
            (1, _) => options = rest,
            (_, [length, ..]) if (2..=options.len()).contains(&usize::from(*length)) => {
                let (option, after) = options.split_at(usize::from(*length));
                read_option(&mut received, *kind, &option[2..]);
                options = after;
            }
            _ => return None,
        }
    }
    Some(received)
}

fn read_option(received: &mut Received, kind: u8, value: &[u8]) {
    let words: Vec<u32> = value
        .chunks_exact(4)
        .map(|word| u32::from_be_bytes(word.try_into().expect("four bytes")))
        .collect();
    match (kind, words.as_slice()) {
        (3, _) => received.scale = value.first().copied(),
        (5, edges) => received.sack = edges.chunks_exact(2).map(|e| (e[0], e[1])).collect(),
        (8, [value, echo]) => (received.ts_value, received.ts_echo) = (*value, *echo),
        _ => {}
    }
}

/// Wait until the socket has something to read, or the time is over.
pub(crate) fn await_readable(socket: &PacketSocket, patience: Duration) {
    let timeout =
        Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: patience.subsec_nanos().into() };
    let mut polled = [PollFd::new(socket, PollFlags::IN)];
    let _interrupted = poll(&mut polled, Some(&timeout));
}

/// Flag letters.
pub(crate) fn letters(flags: u8) -> String {
    let names =
        [(FIN, 'F'), (SYN, 'S'), (RST, 'R'), (PSH, 'P'), (ACK, '.'), (ECE, 'E'), (CWR, 'W')];
    names.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, letter)| letter).collect()
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

fn pseudo(length: usize) -> [u8; 4] {
    let length = (length as u16).to_be_bytes();
    [0, 6, length[0], length[1]]
}

/// RFC 1071; pieces of even length but the last.
fn checksum(pieces: &[&[u8]]) -> u16 {
    let word = |pair: &[u8]| u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
    let mut sum: u32 = pieces.iter().flat_map(|piece| piece.chunks(2)).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
