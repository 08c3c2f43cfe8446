//! The eBPF filters of an interface, by rtnetlink.

use std::io;

use libbpf_rs::libbpf_sys::BPF_TCX_INGRESS;

use crate::net::rtnetlink::{attributes, dump, text, word};

/// A filter on an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) priority: u32,
    pub(crate) handle: u32,
    /// The number of its program.
    pub(crate) program: u32,
    /// The name that it was given, usually that of its program.
    pub(crate) name: String,
}

impl Found {
    /// Whether its program is an AFPA's, this one's or another's.
    pub(crate) fn runs_afpa(&self) -> bool {
        self.name.starts_with("afpa_")
    }
}

const GET_FILTER: u16 = 46;
const NEW_FILTER: u16 = 44;
/// `struct tcmsg`
const INFO: usize = 20;
const KIND: u16 = 1;
const OPTIONS: u16 = 2;
const CHAIN: u16 = 11;
const BPF_NAME: u16 = 7;
const BPF_ID: u16 = 11;
/// `TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)`, and egress
const INGRESS: u32 = 0xffff_fff2;
const EGRESS: u32 = 0xffff_fff3;

/// The filters on a hook of an interface, of the calling thread's network namespace.
pub(crate) fn on(interface: u32, hook: u32) -> io::Result<Vec<Found>> {
    let mut found = Vec::new();
    list(interface, hook, |message| found.extend(filter(message)))?;
    Ok(found)
}

/// Whether no filters but those of AFPAs come before the one that runs `program`. Where that one is gone, this is false.
/// To ask needs no rights.
pub(crate) fn is_first(interface: u32, hook: u32, program: u32) -> io::Result<bool> {
    let mut first = None;
    list(interface, hook, |message| first = first.or_else(|| decide(message, program)))?;
    Ok(first.unwrap_or(false))
}

/// The priority of the filter that the kernel asks first, of any kind.
pub(crate) fn lowest_priority(interface: u32, hook: u32) -> io::Result<Option<u32>> {
    let mut lowest = None;
    list(interface, hook, |message| {
        if is_in_first_chain(message) {
            lowest = lowest.or_else(|| priority(message));
        }
    })?;
    Ok(lowest)
}

/// Shows all filters of a hook, of any kind, in the order in which the kernel asks them.
fn list(interface: u32, hook: u32, mut visit: impl FnMut(&[u8])) -> io::Result<()> {
    let parent = if hook == BPF_TCX_INGRESS { INGRESS } else { EGRESS };
    let mut request = [0; INFO];
    request[4..8].copy_from_slice(&interface.to_ne_bytes());
    request[12..16].copy_from_slice(&parent.to_ne_bytes());
    dump(GET_FILTER, &request, |kind, message| {
        if kind == NEW_FILTER {
            visit(message);
        }
    })
}

/// Whether the program comes first, if this filter decides it.
fn decide(message: &[u8], program: u32) -> Option<bool> {
    if !is_in_first_chain(message) {
        return None;
    }
    match filter(message) {
        Some(found) if found.program == program => Some(true),
        Some(found) if found.runs_afpa() => None,
        Some(_) => Some(false),
        // Each priority is listed before its filters.
        None if is_priority_of_programs(message) => None,
        None => Some(false),
    }
}

/// Other chains begin where a filter of the first one sends packets.
fn is_in_first_chain(message: &[u8]) -> bool {
    attribute_of(message, CHAIN).and_then(|chain| word(chain, 0)).unwrap_or(0) == 0
}

fn is_priority_of_programs(message: &[u8]) -> bool {
    let kind = attribute_of(message, KIND).map(text);
    kind.as_deref() == Some("bpf") && word(message, 8) == Some(0)
}

fn attribute_of(message: &[u8], wanted: u16) -> Option<&[u8]> {
    let mut all = attributes(message.get(INFO..)?);
    all.find_map(|(kind, value)| (kind == wanted).then_some(value))
}

fn priority(message: &[u8]) -> Option<u32> {
    Some(word(message, 16)? >> 16)
}

/// A filter of ours. None: one of another kind, or the entry that stands for all filters of a priority.
fn filter(message: &[u8]) -> Option<Found> {
    let (handle, priority) = (word(message, 8)?, priority(message)?);
    let (mut program, mut name) = (None, String::new());
    for (kind, value) in attributes(attribute_of(message, OPTIONS)?) {
        match kind {
            BPF_NAME => name = text(value),
            BPF_ID => program = word(value, 0),
            _ => {}
        }
    }
    Some(Found { priority, handle, program: program?, name })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::rtnetlink::attribute;

    fn message(options: &[Vec<u8>]) -> Vec<u8> {
        let words = [0, 3u32, 1, INGRESS, 49152 << 16 | 3];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.extend(attribute(KIND, b"bpf\0"));
        bytes.extend(attribute(OPTIONS | 0x8000, &options.concat()));
        bytes
    }

    fn of_program(program: u32, name: &[u8]) -> Vec<u8> {
        message(&[attribute(BPF_NAME, name), attribute(BPF_ID, &program.to_ne_bytes())])
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
    fn a_filter_that_runs_no_afpa_is_before_ours() {
        let ours = of_program(12, b"afpa_ingress:[12]\0");
        assert_eq!(decide(&ours, 12), Some(true));
        assert_eq!(decide(&ours, 13), None, "another AFPA's");
        assert_eq!(decide(&of_program(12, b"cil_from_netdev\0"), 13), Some(false));
        assert_eq!(decide(&message(&[]), 13), Some(false), "a program of classic BPF");
        let kind = |kind: &[u8]| {
            let words = [0, 3u32, 0, INGRESS, 1 << 16 | 3];
            let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            bytes.extend(attribute(KIND, kind));
            bytes
        };
        assert_eq!(decide(&kind(b"bpf\0"), 13), None, "its filters follow");
        assert_eq!(decide(&kind(b"u32\0"), 13), Some(false));
        let mut elsewhere = kind(b"u32\0");
        elsewhere.extend(attribute(CHAIN, &5u32.to_ne_bytes()));
        assert_eq!(decide(&elsewhere, 13), None, "in another chain");
    }

    #[test]
    fn cut_and_broken_messages_are_read_without_harm() {
        let whole = message(&[attribute(BPF_ID, &12u32.to_ne_bytes())]);
        for cut in 0..whole.len() {
            filter(&whole[..cut]);
            decide(&whole[..cut], 12);
            let mut broken = whole.clone();
            broken[cut] ^= 0xff;
            filter(&broken);
            decide(&broken, 12);
        }
    }
}
