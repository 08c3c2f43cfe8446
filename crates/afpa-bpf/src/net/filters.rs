//! The eBPF filters of an interface, by rtnetlink.

use std::io;

use libbpf_rs::libbpf_sys::BPF_TCX_INGRESS;

use crate::net::rtnetlink::{attributes, dump, text, word};

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) priority: u32,
    pub(crate) handle: u32,
    /// The number of its program.
    pub(crate) program: u32,
    /// The name that it was given, usually that of its program.
    pub(crate) name: String,
}

const GET_FILTER: u16 = 46;
const NEW_FILTER: u16 = 44;
/// `struct tcmsg`
const INFO: usize = 20;
const OPTIONS: u16 = 2;
const BPF_NAME: u16 = 7;
const BPF_ID: u16 = 11;
/// `TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)`, and egress
const INGRESS: u32 = 0xffff_fff2;
const EGRESS: u32 = 0xffff_fff3;

/// Those on a hook of an interface, of the calling thread's network namespace.
pub(crate) fn on(interface: u32, hook: u32) -> io::Result<Vec<Found>> {
    let parent = if hook == BPF_TCX_INGRESS { INGRESS } else { EGRESS };
    let mut request = [0; INFO];
    request[4..8].copy_from_slice(&interface.to_ne_bytes());
    request[12..16].copy_from_slice(&parent.to_ne_bytes());
    let mut found = Vec::new();
    dump(GET_FILTER, &request, |kind, message| {
        if kind == NEW_FILTER {
            found.extend(filter(message));
        }
    })?;
    Ok(found)
}

/// None: of another kind, or what stands for all filters of a priority.
fn filter(message: &[u8]) -> Option<Found> {
    let (handle, info) = (word(message, 8)?, word(message, 16)?);
    let (mut program, mut name) = (None, String::new());
    let options = attributes(message.get(INFO..)?).find(|(kind, _)| *kind == OPTIONS)?.1;
    for (kind, value) in attributes(options) {
        match kind {
            BPF_NAME => name = text(value),
            BPF_ID => program = word(value, 0),
            _ => {}
        }
    }
    Some(Found { priority: info >> 16, handle, program: program?, name })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::rtnetlink::attribute;

    fn message(options: &[Vec<u8>]) -> Vec<u8> {
        let words = [0, 3u32, 1, INGRESS, 49152 << 16 | 3];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.extend(attribute(1, b"bpf\0"));
        bytes.extend(attribute(OPTIONS | 0x8000, &options.concat()));
        bytes
    }

    #[test]
    fn a_filter_is_read() {
        let options = [
            attribute(BPF_NAME, b"afpa_ingress:[12]\0"),
            attribute(8, &1u32.to_ne_bytes()),
            attribute(BPF_ID, &12u32.to_ne_bytes()),
        ];
        let expected =
            Found { priority: 49152, handle: 1, program: 12, name: "afpa_ingress:[12]".into() };
        assert_eq!(filter(&message(&options)), Some(expected));
        assert_eq!(filter(&message(&options[..2])), None, "it runs no program of eBPF");
    }

    #[test]
    fn cut_and_broken_messages_are_read_without_harm() {
        let whole = message(&[attribute(BPF_ID, &12u32.to_ne_bytes())]);
        for cut in 0..whole.len() {
            filter(&whole[..cut]);
            let mut broken = whole.clone();
            broken[cut] ^= 0xff;
            filter(&broken);
        }
    }
}
