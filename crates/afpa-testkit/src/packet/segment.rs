//! One TCP segment in an Ethernet frame: built and parsed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::TcpView;
use super::checksum::sum;

/// Flag bits of the TCP header.
pub const FIN: u8 = 0x01;
/// See [`FIN`].
pub const SYN: u8 = 0x02;
/// See [`FIN`].
pub const RST: u8 = 0x04;
/// See [`FIN`].
pub const PSH: u8 = 0x08;
/// See [`FIN`].
pub const ACK: u8 = 0x10;
/// See [`FIN`].
pub const URG: u8 = 0x20;
/// Congestion was experienced (RFC 3168).
pub const ECE: u8 = 0x40;
/// The congestion window was reduced (RFC 3168).
pub const CWR: u8 = 0x80;

/// Link addresses as a frame has them: the destination's six bytes, then the source's.
pub type MacPair = [u8; 12];

const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
const ETHERNET: usize = 14;
const PROTOCOL_TCP: u8 = 6;

/// A TCP segment, to send or as it came. A segment that is built and parsed again is equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Source address and port.
    pub from: SocketAddr,
    /// Destination address and port, of the same family.
    pub to: SocketAddr,
    /// Sequence number of its first byte, or of the SYN.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Flag bits.
    pub flags: u8,
    /// Window field, not scaled.
    pub window: u16,
    /// The options that a SYN offers.
    pub syn: SynOptions,
    /// Timestamp value (RFC 7323); 0: the segment has no timestamps.
    pub ts_value: u32,
    /// Timestamp echo.
    pub ts_echo: u32,
    /// SACK blocks (RFC 2018): first byte, and the byte behind the last.
    pub sack: Vec<(u32, u32)>,
    /// Content.
    pub payload: Vec<u8>,
    /// ECN bits of the IP header (RFC 3168).
    pub ecn: u8,
    /// No router may cut the packet. Always true of IPv6.
    pub dont_fragment: bool,
    /// The TCP checksum is right. A segment that is sent with `false` gets a wrong one.
    pub checksum_holds: bool,
}

/// Options that only a SYN carries; an absent option is not offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SynOptions {
    /// Maximum segment size.
    pub mss: Option<u16>,
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Shift of the window (RFC 7323).
    pub scale: Option<u8>,
}

impl Segment {
    /// An empty segment with the ACK flag, full window and all numbers 0.
    pub fn new(from: SocketAddr, to: SocketAddr) -> Self {
        Self {
            from,
            to,
            seq: 0,
            ack: 0,
            flags: ACK,
            window: u16::MAX,
            syn: SynOptions::default(),
            ts_value: 0,
            ts_echo: 0,
            sack: Vec::new(),
            payload: Vec::new(),
            ecn: 0,
            dont_fragment: true,
            checksum_holds: true,
        }
    }

    /// The sequence number behind it.
    pub fn end(&self) -> u32 {
        let flags = u32::from(self.flags & FIN != 0) + u32::from(self.flags & SYN != 0);
        self.seq.wrapping_add(self.payload.len() as u32).wrapping_add(flags)
    }

    /// Content as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.payload).into_owned()
    }

    /// Flag letters, as tcpdump has them.
    pub fn letters(&self) -> String {
        let names =
            [(FIN, 'F'), (SYN, 'S'), (RST, 'R'), (PSH, 'P'), (ACK, '.'), (ECE, 'E'), (CWR, 'W')];
        names.iter().filter(|(bit, _)| self.flags & bit != 0).map(|(_, letter)| letter).collect()
    }

    /// The whole Ethernet frame.
    ///
    /// # Panics
    /// When the two ends are of different families.
    pub fn frame(&self, macs: &MacPair) -> Vec<u8> {
        let tcp = self.tcp();
        let length = tcp.len() as u16;
        let (kind, ip) = match (self.from.ip(), self.to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => (IPV4, self.ipv4(from, to, length)),
            (IpAddr::V6(from), IpAddr::V6(to)) => (IPV6, self.ipv6(from, to, length)),
            (from, to) => panic!("{from} and {to} are of different families"),
        };
        [macs, &kind[..], &ip, &tcp].concat()
    }

    /// The segment in a frame; `None` for anything that is not TCP, or too short.
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let view = TcpView::of_frame(frame)?;
        let mut segment = Self::from_headers(frame, &view)?;
        segment.payload = view.payload.to_vec();
        let addresses = [octets(segment.from.ip()), octets(segment.to.ip())].concat();
        segment.checksum_holds =
            sum(&[&addresses, &pseudo(view.segment.len()), view.segment]) == 0xffff;
        Some(segment)
    }

    /// The headers of a frame, and the length of the payload, which is not copied; nor is the checksum looked at.
    pub fn parse_headers(frame: &[u8]) -> Option<(Self, usize)> {
        let view = TcpView::of_frame(frame)?;
        Some((Self::from_headers(frame, &view)?, view.payload.len()))
    }

    fn from_headers(frame: &[u8], view: &TcpView<'_>) -> Option<Self> {
        let ip = frame.get(ETHERNET..)?;
        let (from, to, ecn, dont_fragment): (IpAddr, IpAddr, _, _) = match ip.first()? >> 4 {
            4 => (v4(ip, 12)?.into(), v4(ip, 16)?.into(), ip[1] & 3, ip[6] & 0x40 != 0),
            _ => (v6(ip, 8)?.into(), v6(ip, 24)?.into(), ip[1] >> 4 & 3, true),
        };
        let mut segment = Self {
            seq: view.sequence,
            ack: view.acknowledgement,
            flags: view.flags,
            window: view.window,
            ecn,
            dont_fragment,
            ..Self::new(SocketAddr::new(from, view.source), SocketAddr::new(to, view.destination))
        };
        segment.read_options(view.options)?;
        Some(segment)
    }

    fn tcp(&self) -> Vec<u8> {
        let options = self.options();
        let mut tcp = Vec::with_capacity(20 + options.len() + self.payload.len());
        tcp.extend(self.from.port().to_be_bytes());
        tcp.extend(self.to.port().to_be_bytes());
        tcp.extend(self.seq.to_be_bytes());
        tcp.extend(self.ack.to_be_bytes());
        tcp.extend([((20 + options.len()) / 4 * 16) as u8, self.flags]);
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(options);
        tcp.extend(&self.payload);
        let addresses = [octets(self.from.ip()), octets(self.to.ip())].concat();
        let sum = !sum(&[&addresses, &pseudo(tcp.len()), &tcp]);
        tcp[16..18].copy_from_slice(&(sum ^ u16::from(!self.checksum_holds)).to_be_bytes());
        tcp
    }

    fn ipv4(&self, from: Ipv4Addr, to: Ipv4Addr, length: u16) -> Vec<u8> {
        let mut ip = vec![0x45, self.ecn];
        ip.extend((20 + length).to_be_bytes());
        ip.extend([0, 1, u8::from(self.dont_fragment) << 6, 0, 64, PROTOCOL_TCP, 0, 0]);
        ip.extend(from.octets());
        ip.extend(to.octets());
        let sum = !sum(&[&ip]);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        ip
    }

    fn ipv6(&self, from: Ipv6Addr, to: Ipv6Addr, length: u16) -> Vec<u8> {
        let mut ip = vec![0x60, self.ecn << 4, 0, 0];
        ip.extend(length.to_be_bytes());
        ip.extend([PROTOCOL_TCP, 64]);
        ip.extend(from.octets());
        ip.extend(to.octets());
        ip
    }

    fn options(&self) -> Vec<u8> {
        let mut options = Vec::new();
        if let Some(mss) = self.syn.mss {
            options.extend([2, 4]);
            options.extend(mss.to_be_bytes());
        }
        if self.syn.sack {
            options.extend([4, 2, 1, 1]);
        }
        if let Some(shift) = self.syn.scale {
            options.extend([1, 3, 3, shift]);
        }
        if self.ts_value != 0 {
            options.extend([1, 1, 8, 10]);
            options.extend(self.ts_value.to_be_bytes());
            options.extend(self.ts_echo.to_be_bytes());
        }
        if !self.sack.is_empty() {
            options.extend([1, 1, 5, 2 + 8 * self.sack.len() as u8]);
            for (from, to) in &self.sack {
                options.extend([from.to_be_bytes(), to.to_be_bytes()].concat());
            }
        }
        assert!(options.len() <= 40, "a TCP header has no room for {options:?}");
        options
    }

    fn read_options(&mut self, mut options: &[u8]) -> Option<()> {
        while let [kind, rest @ ..] = options {
            match (kind, rest) {
                (0, _) => break,
                (1, _) => options = rest,
                (_, [length, ..]) if (2..=options.len()).contains(&usize::from(*length)) => {
                    let (option, after) = options.split_at(usize::from(*length));
                    self.read_option(*kind, &option[2..]);
                    options = after;
                }
                _ => return None,
            }
        }
        Some(())
    }

    fn read_option(&mut self, kind: u8, value: &[u8]) {
        let words: Vec<u32> =
            value.as_chunks().0.iter().map(|word| u32::from_be_bytes(*word)).collect();
        match (kind, value, words.as_slice()) {
            (2, [high, low], _) => self.syn.mss = Some(u16::from_be_bytes([*high, *low])),
            (3, [shift], _) => self.syn.scale = Some(*shift),
            (4, [], _) => self.syn.sack = true,
            (5, _, edges) => {
                self.sack = edges.as_chunks().0.iter().map(|[a, b]| (*a, *b)).collect()
            }
            (8, _, [value, echo]) => (self.ts_value, self.ts_echo) = (*value, *echo),
            _ => {}
        }
    }
}

fn v4(ip: &[u8], at: usize) -> Option<Ipv4Addr> {
    Some(Ipv4Addr::from(*ip.get(at..)?.first_chunk::<4>()?))
}

fn v6(ip: &[u8], at: usize) -> Option<Ipv6Addr> {
    Some(Ipv6Addr::from(*ip.get(at..)?.first_chunk::<16>()?))
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

/// The part of the pseudo-header behind the addresses.
fn pseudo(length: usize) -> [u8; 4] {
    let [high, low] = (length as u16).to_be_bytes();
    [0, PROTOCOL_TCP, high, low]
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACS: MacPair = [2, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4, 4];

    fn segment(from: &str, to: &str) -> Segment {
        Segment {
            seq: 99,
            ack: 77,
            flags: ACK | PSH,
            window: 500,
            ts_value: 5,
            ts_echo: 6,
            sack: vec![(200, 300), (400, 500)],
            payload: b"GET /".to_vec(),
            ecn: 2,
            ..Segment::new(from.parse().expect("an address"), to.parse().expect("an address"))
        }
    }

    fn both() -> [Segment; 2] {
        [segment("10.0.0.1:40000", "10.0.0.2:80"), segment("[fd00::1]:40000", "[fd00::2]:80")]
    }

    #[test]
    fn what_is_built_is_parsed_again() {
        for segment in both() {
            let syn = SynOptions { mss: Some(1460), sack: true, scale: Some(7) };
            let first = Segment {
                flags: SYN,
                syn,
                sack: Vec::new(),
                payload: Vec::new(),
                ..segment.clone()
            };
            let bare = Segment { ts_value: 0, ts_echo: 0, sack: Vec::new(), ..segment.clone() };
            let spoilt = Segment { checksum_holds: false, ..segment.clone() };
            for segment in [segment, first, bare, spoilt] {
                assert_eq!(Segment::parse(&segment.frame(&MACS)), Some(segment));
            }
        }
        let cut = Segment { dont_fragment: false, ..segment("10.0.0.1:1", "10.0.0.2:2") };
        assert_eq!(Segment::parse(&cut.frame(&MACS)), Some(cut));
    }

    #[test]
    fn the_header_of_ipv4_sums_up() {
        let frame = segment("10.0.0.1:40000", "10.0.0.2:80").frame(&MACS);
        assert_eq!(sum(&[&frame[14..34]]), 0xffff);
        assert_eq!(frame[..12], MACS);
    }

    #[test]
    fn headers_are_read_without_the_payload() {
        for segment in both() {
            let (headers, length) = Segment::parse_headers(&segment.frame(&MACS)).expect("TCP");
            assert_eq!(length, segment.payload.len());
            assert_eq!(headers, Segment { payload: Vec::new(), ..segment });
        }
    }

    #[test]
    fn an_option_that_is_longer_than_the_header_is_refused() {
        let segment = Segment { sack: Vec::new(), ..segment("10.0.0.1:40000", "10.0.0.2:80") };
        let mut frame = segment.frame(&MACS);
        frame[14 + 20 + 20 + 3] = 200; // the length of the timestamps
        assert_eq!(Segment::parse(&frame), None);
    }
}
