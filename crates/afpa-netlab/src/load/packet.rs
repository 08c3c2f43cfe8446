//! Segments that user mode sends on a flow that its kernel no longer drives.

use std::net::IpAddr;

use crate::object::internet_sum;

/// Flags of a request.
pub(crate) const PUSH_ACK: u8 = 0x18;
/// Flags of the first packet of a connection.
pub(crate) const SYN: u8 = 0x02;
/// Its options behind the timestamps, given as its payload: as `syn_options` in the program.
pub(crate) const SYN_OPTIONS: &[u8] = &[2, 4, 0x05, 0xb4, 4, 2, 3, 3, 7, 1, 1, 1];
/// Flags of a reset.
pub(crate) const RESET_ACK: u8 = 0x14;

const TCP: u8 = 6;

/// Everything a frame says but for its flags, number and payload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment {
    pub(crate) from_link: [u8; 6],
    pub(crate) to_link: [u8; 6],
    pub(crate) from: (IpAddr, u16),
    pub(crate) to: (IpAddr, u16),
    pub(crate) ack: u32,
    /// TSval and TSecr, on a connection that uses timestamps.
    pub(crate) stamps: Option<(u32, u32)>,
}

impl Segment {
    /// A whole Ethernet frame with full checksums.
    pub(crate) fn frame(&self, flags: u8, seq: u32, payload: &[u8]) -> Vec<u8> {
        let tcp = self.tcp(flags, seq, payload);
        let mut frame = [self.to_link, self.from_link].concat();
        match (self.from.0, self.to.0) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                frame.extend([0x08, 0x00]);
                let length = (20 + tcp.len() as u16).to_be_bytes();
                let mut head = vec![0x45, 0, length[0], length[1], 0, 0, 0x40, 0, 64, TCP, 0, 0];
                head.extend(from.octets());
                head.extend(to.octets());
                let sum = !(internet_sum(&head) as u16);
                head[10..12].copy_from_slice(&sum.to_ne_bytes());
                frame.extend(head);
            }
            (from, to) => {
                frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
                frame.extend((tcp.len() as u16).to_be_bytes());
                frame.extend([TCP, 64]);
                frame.extend(octets(from));
                frame.extend(octets(to));
            }
        }
        frame.extend(tcp);
        frame
    }

    fn tcp(&self, flags: u8, seq: u32, payload: &[u8]) -> Vec<u8> {
        let header: u8 = if self.stamps.is_some() { 32 } else { 20 };
        let mut tcp = [self.from.1.to_be_bytes(), self.to.1.to_be_bytes()].concat();
        tcp.extend(seq.to_be_bytes());
        tcp.extend(self.ack.to_be_bytes());
        // What a SYN carries are options.
        let options = if flags & SYN != 0 { payload.len() as u8 } else { 0 };
        tcp.extend([(header + options) << 2, flags, 0xff, 0xff, 0, 0, 0, 0]);
        if let Some((value, echo)) = self.stamps {
            tcp.extend([1, 1, 8, 10]);
            tcp.extend(value.to_be_bytes());
            tcp.extend(echo.to_be_bytes());
        }
        tcp.extend(payload);
        let sum = !(internet_sum(&[self.pseudo_header(tcp.len()), tcp.clone()].concat()) as u16);
        tcp[16..18].copy_from_slice(&sum.to_ne_bytes());
        tcp
    }

    fn pseudo_header(&self, length: usize) -> Vec<u8> {
        let mut pseudo = [octets(self.from.0), octets(self.to.0)].concat();
        pseudo.extend((length as u32).to_be_bytes());
        pseudo.extend([0, 0, 0, TCP]);
        pseudo
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inject::TcpView;

    fn segment(from: &str, to: &str) -> Segment {
        Segment {
            from_link: [2; 6],
            to_link: [4; 6],
            from: (from.parse().unwrap(), 40000),
            to: (to.parse().unwrap(), 80),
            ack: 77,
            stamps: Some((5, 6)),
        }
    }

    #[test]
    fn frames_are_read_back_and_sum_to_zero() {
        for segment in [segment("10.0.0.1", "10.0.0.2"), segment("fd00::1", "fd00::2")] {
            let frame = segment.frame(PUSH_ACK, 99, b"GET /");
            let view = TcpView::of_frame(&frame).unwrap();
            assert_eq!((view.source, view.destination), (40000, 80));
            assert_eq!((view.sequence, view.acknowledgement), (99, 77));
            assert_eq!((view.flags, view.payload), (PUSH_ACK, &b"GET /"[..]));
            let tcp = frame[frame.len() - 37..].to_vec();
            let whole = [segment.pseudo_header(tcp.len()), tcp].concat();
            assert_eq!(internet_sum(&whole), 0xffff);
        }
        let syn = segment("10.0.0.1", "10.0.0.2").frame(SYN, 1, SYN_OPTIONS);
        assert_eq!(TcpView::of_frame(&syn).unwrap().payload, b"");
        let v4 = segment("10.0.0.1", "10.0.0.2").frame(RESET_ACK, 1, b"");
        assert_eq!(internet_sum(&v4[14..34]), 0xffff);
    }
}
