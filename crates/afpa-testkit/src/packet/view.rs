//! A TCP segment that stays in its frame.

use super::PSH;

/// A TCP segment inside an Ethernet frame, IPv4 or IPv6 without extension headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpView<'f> {
    /// Source port.
    pub source: u16,
    /// Destination port.
    pub destination: u16,
    /// Sequence number of the first payload byte (or of the SYN).
    pub sequence: u32,
    /// Acknowledgement number.
    pub acknowledgement: u32,
    /// Flag bits, see [`FIN`](super::FIN).
    pub flags: u8,
    /// Window field, not scaled.
    pub window: u16,
    /// Bytes of the options.
    pub options: &'f [u8],
    /// Payload, without Ethernet padding.
    pub payload: &'f [u8],
    /// The whole segment, header and payload.
    pub segment: &'f [u8],
}

impl<'f> TcpView<'f> {
    /// Reads a frame; `None` for anything that is not TCP, or too short.
    pub fn of_frame(frame: &'f [u8]) -> Option<Self> {
        let packet = frame.get(14..)?;
        let segment = match frame.get(12..14)? {
            [0x08, 0x00] => ipv4_payload(packet)?,
            [0x86, 0xdd] => ipv6_payload(packet)?,
            _ => return None,
        };
        let [s0, s1, d0, d1, q0, q1, q2, q3, a0, a1, a2, a3, offset, flags, w0, w1, ..] = *segment
        else {
            return None;
        };
        let header = usize::from(offset >> 4) * 4;
        Some(Self {
            source: u16::from_be_bytes([s0, s1]),
            destination: u16::from_be_bytes([d0, d1]),
            sequence: u32::from_be_bytes([q0, q1, q2, q3]),
            acknowledgement: u32::from_be_bytes([a0, a1, a2, a3]),
            flags,
            window: u16::from_be_bytes([w0, w1]),
            options: segment.get(20..header)?,
            payload: segment.get(header..)?,
            segment,
        })
    }

    /// The last segment of a write that carried data, which Linux marks with PSH: its loss is not followed by
    /// anything that would tell the sender, so only a timer repairs it.
    pub fn is_tail(&self) -> bool {
        !self.payload.is_empty() && self.flags & PSH != 0
    }
}

fn ipv4_payload(packet: &[u8]) -> Option<&[u8]> {
    let [version, _, length0, length1, _, _, fragment0, fragment1, _, protocol, ..] = *packet
    else {
        return None;
    };
    let later_fragment = u16::from_be_bytes([fragment0 & 0x1f, fragment1]) != 0;
    if version >> 4 != 4 || protocol != 6 || later_fragment {
        return None;
    }
    let end = usize::from(u16::from_be_bytes([length0, length1]));
    packet.get(usize::from(version & 0x0f) * 4..end)
}

fn ipv6_payload(packet: &[u8]) -> Option<&[u8]> {
    let [version, _, _, _, length0, length1, next, ..] = *packet else { return None };
    if version >> 4 != 6 || next != 6 {
        return None;
    }
    packet.get(40..40 + usize::from(u16::from_be_bytes([length0, length1])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend([0x08, 0x00]);
        frame.extend([0x45, 0, 0, 43, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame
            .extend([0x1f, 0x90, 0x00, 0x50, 0, 0, 0, 7, 0, 0, 0, 9, 0x50, 0x18, 0, 0, 0, 0, 0, 0]);
        frame.extend(*b"GET");
        frame.extend([0; 5]); // Ethernet padding
        frame
    }

    #[test]
    fn a_segment_is_read_without_padding() {
        let frame = frame();
        let view = TcpView::of_frame(&frame).unwrap();
        assert_eq!((view.source, view.destination), (8080, 80));
        assert_eq!((view.sequence, view.acknowledgement), (7, 9));
        assert_eq!(view.payload, b"GET");
        assert!(view.is_tail());
    }

    #[test]
    fn cut_or_hostile_frames_are_no_segments() {
        let frame = frame();
        for length in 0..57 {
            assert_eq!(TcpView::of_frame(&frame[..length]), None, "{length}");
        }
        let mut lying = frame.clone();
        lying[17] = 255; // longer than the frame
        assert_eq!(TcpView::of_frame(&lying), None);
        let mut offset = frame;
        offset[46] = 0xf0; // header longer than the packet
        assert_eq!(TcpView::of_frame(&offset), None);
    }
}
