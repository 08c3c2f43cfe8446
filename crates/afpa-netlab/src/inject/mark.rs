//! Congestion marks in IP headers (RFC 3168).

const CONGESTED: u8 = 3;

/// Marks the packet in a frame; `false` when it is not IP, or its sender does not take marks.
pub(crate) fn mark(frame: &mut [u8]) -> bool {
    match frame {
        [.., _] if frame.len() < 34 => false,
        [_, _, _, _, _, _, _, _, _, _, _, _, 0x08, 0x00, ip @ ..] => mark_ipv4(ip),
        [_, _, _, _, _, _, _, _, _, _, _, _, 0x86, 0xdd, _, class, ..] => {
            let capable = *class >> 4 & CONGESTED != 0;
            *class |= if capable { CONGESTED << 4 } else { 0 };
            capable
        }
        _ => false,
    }
}

fn mark_ipv4(ip: &mut [u8]) -> bool {
    let before = ip[1];
    if before & CONGESTED == 0 {
        return false;
    }
    ip[1] |= CONGESTED;
    // The sum of the header follows by the difference (RFC 1624).
    let sum = u16::from_be_bytes([ip[10], ip[11]]);
    let sum = u32::from(!sum) + u32::from(!u16::from(before)) + u32::from(ip[1]);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(ip: &[u8]) -> u16 {
        let words = ip.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
        let sum: u32 = words.sum();
        (sum as u16).wrapping_add((sum >> 16) as u16)
    }

    #[test]
    fn capable_packets_are_marked_and_keep_a_right_sum() {
        for (ecn, capable) in [(0, false), (1, true), (2, true), (3, true)] {
            let mut frame = vec![0; 12];
            frame.extend([0x08, 0x00]);
            frame.extend([0x45, ecn, 0, 20, 0, 7, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
            let whole = (!sum(&frame[14..])).to_be_bytes();
            frame[24..26].copy_from_slice(&whole);
            assert_eq!(mark(&mut frame), capable);
            assert_eq!((frame[15], sum(&frame[14..])), (if capable { 3 } else { 0 }, 0xffff));
            let mut six = [vec![0; 12], vec![0x86, 0xdd, 0x60, ecn << 4], vec![0; 38]].concat();
            assert_eq!(mark(&mut six), capable);
            assert_eq!(six[15], if capable { 0x30 } else { 0 });
        }
        assert!(!mark(&mut [0; 60]) && !mark(&mut []));
    }
}
