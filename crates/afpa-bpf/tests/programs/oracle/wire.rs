//! Frames: the shapes that a segment may have on its way, and a reader that takes the segment of a frame as a kernel would.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use afpa_testkit::Random;
use afpa_testkit::packet::checksum::sum;

const ETHERNET: usize = 14;
const TCP: u8 = 6;
const HOP_BY_HOP: u8 = 0;
const FRAGMENT: u8 = 44;
const DESTINATION: u8 = 60;

/// A TCP segment as the layer above IP gets it, its checksum right.
#[derive(Clone, Debug)]
pub(super) struct Arrived {
    pub(super) ports: [u16; 2],
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) flags: u8,
    pub(super) ts_value: Option<u32>,
    pub(super) payload: Vec<u8>,
}

type Parts = Vec<(usize, bool, Vec<u8>)>;

/// The IP layer of a host: it drops bad packets, and puts fragments together.
#[derive(Default)]
pub(super) struct Reader {
    parts: HashMap<u32, Parts>,
}

impl Reader {
    /// The segment that TCP gets of this frame. The kernel takes VLAN tags off before the programs run, which a test run
    /// leaves out, so nothing is taken of a tagged frame.
    pub(super) fn take(&mut self, frame: &[u8]) -> Option<Arrived> {
        let packet = frame.get(ETHERNET..)?;
        match frame.get(12..14)? {
            [0x08, 0x00] => self.ipv4(packet),
            [0x86, 0xdd] => self.ipv6(packet),
            _ => None,
        }
    }

    fn ipv4(&mut self, packet: &[u8]) -> Option<Arrived> {
        let header = usize::from(*packet.first()? & 15) * 4;
        let total = usize::from(word(packet, 2)?);
        let fragment = word(packet, 6)?;
        if packet[0] >> 4 != 4 || header < 20 || total < header || *packet.get(9)? != TCP {
            return None;
        }
        let (head, content) = (packet.get(..header)?, packet.get(header..total)?);
        if sum(&[head]) != 0xffff {
            return None;
        }
        let ends =
            [12, 16].map(|at| IpAddr::V4(Ipv4Addr::from(*head[at..].first_chunk().unwrap())));
        let (at, more) = (usize::from(fragment & 0x1fff) * 8, fragment & 0x2000 != 0);
        let whole = self.join(u32::from(word(packet, 4)?), at, more, content)?;
        segment(ends, &whole)
    }

    fn ipv6(&mut self, packet: &[u8]) -> Option<Arrived> {
        let mut next = *packet.get(6)?;
        let mut rest = packet.get(40..40 + usize::from(word(packet, 4)?))?.to_vec();
        let ends =
            [8, 24].map(|at| IpAddr::V6(Ipv6Addr::from(*packet[at..].first_chunk().unwrap())));
        for _ in 0..8 {
            let header = rest.get(..8)?.to_vec();
            match next {
                TCP if packet[0] >> 4 == 6 => return segment(ends, &rest),
                FRAGMENT => {
                    let place = word(&header, 2)?;
                    let id = u32::from_be_bytes(*header[4..].first_chunk()?);
                    let (at, more) = (usize::from(place & 0xfff8), place & 1 != 0);
                    (next, rest) = (header[0], self.join(id, at, more, &rest[8..])?);
                }
                HOP_BY_HOP | DESTINATION => {
                    (next, rest) =
                        (header[0], rest.get(8 + usize::from(header[1]) * 8..)?.to_vec());
                }
                _ => return None,
            }
        }
        None
    }

    fn join(&mut self, id: u32, at: usize, more: bool, content: &[u8]) -> Option<Vec<u8>> {
        if at == 0 && !more {
            return Some(content.to_vec());
        }
        let parts = self.parts.entry(id).or_default();
        parts.push((at, more, content.to_vec()));
        parts.sort();
        parts.dedup();
        let mut whole = Vec::new();
        for (at, more, content) in parts.iter() {
            if *at != whole.len() {
                return None;
            }
            whole.extend(content);
            if !more {
                self.parts.remove(&id);
                return Some(whole);
            }
        }
        None
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn segment([from, to]: [IpAddr; 2], tcp: &[u8]) -> Option<Arrived> {
    let long = |at: usize| Some(u32::from_be_bytes(*tcp.get(at..)?.first_chunk()?));
    let mut pseudo = Vec::new();
    for address in [from, to] {
        match address {
            IpAddr::V4(v4) => pseudo.extend(v4.octets()),
            IpAddr::V6(v6) => pseudo.extend(v6.octets()),
        }
    }
    pseudo.extend([0, TCP]);
    pseudo.extend((tcp.len() as u16).to_be_bytes());
    let header = usize::from(*tcp.get(12)? >> 4) * 4;
    if sum(&[&pseudo, tcp]) != 0xffff || header < 20 {
        return None;
    }
    let options = tcp.get(20..header)?;
    let stamped = options.starts_with(&[1, 1, 8, 10]);
    Some(Arrived {
        ports: [word(tcp, 0)?, word(tcp, 2)?],
        seq: long(4)?,
        ack: long(8)?,
        flags: tcp[13],
        ts_value: if stamped { long(24) } else { None },
        payload: tcp[header..].to_vec(),
    })
}

/// The form in which a segment comes: its frames, and the size of the segments merged into it.
pub(super) struct Shaped {
    pub(super) frames: Vec<Vec<u8>>,
    pub(super) gso_size: u32,
}

const SHAPES: [(&str, usize); 15] = [
    ("plain", 40),
    ("in fragments", 6),
    ("its fragments in disorder", 3),
    ("one fragment only", 2),
    ("cut within the numbers", 2),
    ("behind extension headers or options", 5),
    ("extended and cut", 3),
    ("TCP options", 5),
    ("a priority tag", 2),
    ("a tag, or two", 2),
    ("a wrong length", 3),
    ("a wrong checksum", 4),
    ("odd flags", 4),
    ("truncated", 3),
    ("merged", 3),
];

/// The frame in some shape.
pub(super) fn shape(random: &mut Random, frame: &[u8]) -> Shaped {
    let v6 = frame[12] == 0x86;
    let tcp = ETHERNET + if v6 { 40 } else { 20 };
    let mut frame = frame.to_vec();
    let mut gso_size = 0;
    let content = frame.len() - tcp;
    let frames = match random.weighted(&SHAPES) {
        1 => cut(random, &frame, 24),
        2 => cut(random, &frame, 24).into_iter().rev().collect(),
        3 => {
            let parts = cut(random, &frame, 24);
            vec![random.pick(&parts).clone()]
        }
        4 => cut(random, &frame, 8),
        5 => vec![extend(random, &frame)],
        6 if v6 => {
            let extended = extend(random, &frame);
            cut(random, &extended, 40)
        }
        7 => vec![with_option(random, &frame, tcp)],
        8 => vec![tag(&frame, 0xe000)],
        9 => {
            let once = tag(&frame, 5);
            vec![if random.one_in(2) { tag(&once, 9) } else { once }]
        }
        10 => {
            let at = ETHERNET + if v6 { 5 } else { 3 };
            frame[at] = frame[at].wrapping_add(random.below(255) as u8 + 1);
            mend_header(&mut frame);
            vec![frame]
        }
        11 => {
            let at = ETHERNET + random.below(frame.len() - ETHERNET);
            frame[at] ^= 1 << random.below(8);
            vec![frame]
        }
        12 => {
            frame[tcp + 13] = *random.pick(&[0x00, 0x08, 0x10, 0x30, 0x50, 0x90, 0xd8, 0x38, 0x01]);
            frame[tcp + 13] &= !0x01; // a FIN would have a number
            mend_tcp(&mut frame, tcp);
            vec![frame]
        }
        13 => {
            frame.truncate(tcp + random.below(content));
            vec![frame]
        }
        14 => {
            gso_size = 8 + random.below(1400) as u32;
            vec![frame]
        }
        _ => vec![frame],
    };
    Shaped { frames, gso_size }
}

/// In two fragments; the first has `least` bytes or more.
fn cut(random: &mut Random, frame: &[u8], least: usize) -> Vec<Vec<u8>> {
    let v6 = frame[12] == 0x86;
    let header = ETHERNET + if v6 { 40 } else { usize::from(frame[14] & 15) * 4 };
    let (head, content) = frame.split_at(header);
    let most = (content.len() - 1) / 8;
    let at = least.max(8 * (1 + random.below(most)));
    if at >= content.len() {
        return vec![frame.to_vec()];
    }
    let id = random.next() as u32;
    let part = |content: &[u8], at: usize, more: bool| {
        let mut part = head.to_vec();
        if v6 {
            let place = (at as u16) | u16::from(more);
            part.extend([frame[20], 0]);
            part.extend(place.to_be_bytes());
            part.extend(id.to_be_bytes());
            part[20] = FRAGMENT;
        } else {
            part[18..20].copy_from_slice(&(id as u16).to_be_bytes());
            let place = (at / 8) as u16 | if more { 0x2000 } else { 0 };
            part[20..22].copy_from_slice(&place.to_be_bytes());
        }
        part.extend(content);
        set_length(&mut part);
        part
    };
    vec![part(&content[..at], 0, true), part(&content[at..], at, false)]
}

/// With IPv4 options, or a header in front of TCP.
fn extend(random: &mut Random, frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    if frame[12] == 0x86 {
        let next = *random.pick(&[HOP_BY_HOP, DESTINATION]);
        let header = [frame[20], 0, 1, 4, 0, 0, 0, 0];
        frame.splice(ETHERNET + 40..ETHERNET + 40, header);
        frame[20] = next;
    } else {
        let options = 1 + random.below(3);
        frame.splice(ETHERNET + 20..ETHERNET + 20, vec![1; 4 * options]);
        frame[14] = 0x45 + options as u8;
    }
    set_length(&mut frame);
    frame
}

/// The frame with a TCP option of an unknown kind.
fn with_option(random: &mut Random, frame: &[u8], tcp: usize) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let header = usize::from(frame[tcp + 12] >> 4) * 4;
    let option = [1, 1, 253, 6, 0, 1, random.next() as u8, 2];
    frame.splice(tcp + header..tcp + header, option);
    frame[tcp + 12] += 2 << 4;
    set_length(&mut frame);
    mend_tcp(&mut frame, tcp);
    frame
}

fn tag(frame: &[u8], control: u16) -> Vec<u8> {
    let [high, low] = control.to_be_bytes();
    [&frame[..12], &[0x81, 0, high, low], &frame[12..]].concat()
}

fn set_length(frame: &mut [u8]) {
    let (v6, length) = (frame[12] == 0x86, frame.len() - ETHERNET);
    let (at, length) = if v6 { (18, length - 40) } else { (16, length) };
    frame[at..at + 2].copy_from_slice(&(length as u16).to_be_bytes());
    mend_header(frame);
}

/// The checksum of an IPv4 header.
fn mend_header(frame: &mut [u8]) {
    if frame[12] == 0x86 {
        return;
    }
    let end = ETHERNET + usize::from(frame[14] & 15) * 4;
    frame[24..26].fill(0);
    let right = !sum(&[&frame[ETHERNET..end]]);
    frame[24..26].copy_from_slice(&right.to_be_bytes());
}

fn mend_tcp(frame: &mut [u8], tcp: usize) {
    let addresses = if frame[12] == 0x86 { 22..54 } else { 26..34 };
    let mut pseudo = frame[addresses].to_vec();
    pseudo.extend([0, TCP]);
    pseudo.extend(((frame.len() - tcp) as u16).to_be_bytes());
    frame[tcp + 16..tcp + 18].fill(0);
    let right = !sum(&[&pseudo, &frame[tcp..]]);
    frame[tcp + 16..tcp + 18].copy_from_slice(&right.to_be_bytes());
}
