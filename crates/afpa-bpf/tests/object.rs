//! The object itself: its layouts are those of `afpa-abi`, and the prebuilt one is of the same source.

use std::collections::HashMap;
use std::mem::{offset_of, size_of};

use afpa_abi::*;
use libbpf_rs::HasSize;
use libbpf_rs::btf::{Btf, types};

const PREBUILT: &[u8] = include_bytes!("../../../bpf/prebuilt/afpa.bpf.o");
const PREBUILT_CLANG: &str = include_str!("../../../bpf/prebuilt/clang-version");

/// `(C name, size, [(C member, offset)])` of a mirrored structure.
macro_rules! mirrored {
    ($($rust:ident $c:literal { $($field:ident),* })*) => {
        [$(($c, size_of::<$rust>(), vec![$((stringify!($field), offset_of!($rust, $field))),*])),*]
    };
}

#[test]
fn layouts_agree_with_btf() {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), afpa_bpf::OBJECT).expect("written");
    let btf = Btf::from_path(file.path()).expect("the object has BTF");
    let all = mirrored! {
        Date "afpa_date" { second, text, sum_even, sum_odd, reserved }
        Shared "afpa_shared" { pulse, hash_seed, refresh_ns, generation, log_every, checked_mask, bypass_after, pins, answer_max, bypass_time, transfer_ns, dates, ports, paths, interfaces, rtx_ns }
        Endpoint "afpa_endpoint" { address, port, reserved }
        Listener "afpa_listener" { id, any_host_site }
        SiteKey "afpa_site_key" { listener, host_length, host }
        ObjectKey "afpa_object_key" { path_hash, site, path_length }
        Object "afpa_object" { slot }
        Answer "afpa_answer" { length, head_length, date_offset, sum, head_sum }
        Slot "afpa_slot" { version, whole, not_modified, path_length, etag_length, site, pages, reserved, path, etag, last_modified, not_modified_bytes, bytes }
        FlowKey "afpa_flow_key" { client, server, client_port, server_port }
        Flow "afpa_flow" { lock, owner, flags, client_scale, answer_kind, window, mss, rx_offset, tx_offset, client_next, kernel_next, stale_below, acked_to_kernel, response_start, kernel_received, ts_sent, ts_seen, ts_offset, listener, request_seq, request_length, answer_seq, answer_size, answer_slot, answer_date, snd_una, answer_version, used_ns, user_ns, responses_pending, phase, head_bits, chunk, passed, pins, passing_since, path, any_host_site, generation, rtx_stamp, answer_sent, retransmits, rtt_wanted, reserved }
        Page "afpa_page" { bytes, sums }
        Transfer "afpa_transfer" { version, slot, date, flow, lock, at, interface, ethernet, send_pending, place, sender }
        RtxTimer "afpa_rtx_timer" { flow, interface, ethernet, kind, reserved, stamp, due }
        Event "afpa_event" { flow, listener, site, date, version, length, weight, kind, head, reserved, block, block_sequence, spare }
        SiteCount "afpa_site_count" { whole, not_modified }
    };
    for (name, size, fields) in all {
        let found: types::Struct<'_> =
            btf.type_by_name(name).unwrap_or_else(|| panic!("no {name}"));
        assert_eq!(found.size(), size, "{name}");
        let members: Vec<_> = found
            .iter()
            .map(|member| {
                let types::MemberAttr::Normal { offset } = member.attr else {
                    panic!("{name} has bit fields")
                };
                (member.name.and_then(|name| name.to_str()).unwrap_or("?"), offset as usize / 8)
            })
            .collect();
        assert_eq!(members, fields, "{name}");
    }
}

#[test]
fn reasons_are_numbered_as_in_the_header() {
    for (number, reason) in Reason::ALL.iter().enumerate() {
        assert_eq!(*reason as usize, number);
    }
    assert_eq!(Reason::PassNotPinned.name(), "pass_not_pinned");
}

/// Sections that hold instructions, by name. ELF64, little-endian, as every BPF object here is.
fn programs(object: &[u8]) -> HashMap<String, &[u8]> {
    let number = |at: usize, size: usize| {
        object[at..at + size].iter().rev().fold(0usize, |sum, byte| sum << 8 | usize::from(*byte))
    };
    let (table, count, names) = (number(40, 8), number(60, 2), number(62, 2));
    let names = number(table + names * 64 + 24, 8);
    (0..count)
        .map(|index| table + index * 64)
        .filter(|header| number(header + 8, 8) & 4 != 0) // SHF_EXECINSTR
        .map(|header| {
            let name = object[names + number(header, 4)..].split(|byte| *byte == 0).next();
            let (at, size) = (number(header + 24, 8), number(header + 32, 8));
            (String::from_utf8_lossy(name.unwrap_or_default()).into_owned(), &object[at..at + size])
        })
        .collect()
}

#[test]
fn prebuilt_object_is_of_the_same_source() {
    match option_env!("AFPA_CLANG") {
        None => return println!("SKIP: no clang, the prebuilt object is the one in use"),
        Some(clang) if clang != PREBUILT_CLANG.trim() => {
            return println!("SKIP: clang {clang} here, prebuilt with {PREBUILT_CLANG}");
        }
        Some(_) => {}
    }
    let (built, prebuilt) = (programs(afpa_bpf::OBJECT), programs(PREBUILT));
    assert!(built.len() >= 3, "{:?}", built.keys());
    assert!(built == prebuilt, "bpf/prebuilt/afpa.bpf.o is stale: copy the new object there");
}

/// Line information must not tell where it was built.
#[test]
fn prebuilt_object_names_no_absolute_source_path() {
    let text = String::from_utf8_lossy(PREBUILT);
    assert!(!text.split('\0').any(|word| word.starts_with('/') && word.ends_with(".bpf.c")));
}
