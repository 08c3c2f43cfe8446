//! The object itself: its layouts are those of `afpa-abi`, and the prebuilt one is of the same source.

use std::collections::HashMap;

use afpa_abi::{Reason, STRUCTS, StructLayout, dns, quic};
use afpa_bpf::Packed;
use libbpf_rs::HasSize;
use libbpf_rs::btf::{Btf, types};

const PREBUILT: &[u8] = include_bytes!("../../../../bpf/prebuilt/afpa.bpf.o");
const DNS_PREBUILT: &[u8] = include_bytes!("../../../../bpf/prebuilt/dns.bpf.o");
const QUIC_PREBUILT: &[u8] = include_bytes!("../../../../bpf/prebuilt/quic.bpf.o");
const PREBUILT_CLANG: &str = include_str!("../../../../bpf/prebuilt/clang-version");
const PREBUILT_SOURCES: &str = include_str!("../../../../bpf/prebuilt/sources");

#[path = "../../build/sources.rs"]
mod sources;

#[test]
fn layouts_agree_with_btf() {
    agree(&built(afpa_bpf::OBJECT), STRUCTS);
    agree(&built(afpa_bpf::DNS_OBJECT), dns::STRUCTS);
    agree(&built(afpa_bpf::QUIC_OBJECT), quic::STRUCTS);
}

fn built(object: Packed) -> Vec<u8> {
    object.unpacked().expect("packed by the build script")
}

fn agree(object: &[u8], structs: &[StructLayout]) {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), object).expect("written");
    let btf = Btf::from_path(file.path()).expect("the object has BTF");
    for StructLayout { name, size, members: expected } in structs {
        let found: types::Struct<'_> =
            btf.type_by_name(name).unwrap_or_else(|| panic!("no {name}"));
        assert_eq!(found.size(), *size, "{name}");
        let members: Vec<_> = found
            .iter()
            .map(|member| {
                let types::MemberAttr::Normal { offset } = member.attr else {
                    panic!("{name} has bit fields")
                };
                (member.name.and_then(|name| name.to_str()).unwrap_or("?"), offset as usize / 8)
            })
            .collect();
        assert_eq!(members, *expected, "{name}");
    }
}

#[test]
fn reasons_are_numbered_as_in_the_header() {
    for (number, reason) in Reason::ALL.iter().enumerate() {
        assert_eq!(*reason as usize, number);
    }
    assert_eq!(Reason::PassNotPinned.name(), "pass_not_pinned");
    for (number, reason) in dns::Reason::ALL.iter().enumerate() {
        assert_eq!(*reason as usize, number);
    }
    for (number, reason) in quic::Reason::ALL.iter().enumerate() {
        assert_eq!(*reason as usize, number);
    }
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
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf");
    let mark = sources::mark(&folder).expect("the sources");
    assert_eq!(mark, PREBUILT_SOURCES.trim(), "bpf/prebuilt is stale: make prebuilt");
    match option_env!("AFPA_CLANG") {
        None => return println!("SKIP: no clang, the prebuilt object is the one in use"),
        Some(clang) if clang != PREBUILT_CLANG.trim() => {
            return println!("SKIP: clang {clang} here, prebuilt with {PREBUILT_CLANG}");
        }
        Some(_) => {}
    }
    let objects = [
        ("afpa", afpa_bpf::OBJECT, PREBUILT),
        ("dns", afpa_bpf::DNS_OBJECT, DNS_PREBUILT),
        ("quic", afpa_bpf::QUIC_OBJECT, QUIC_PREBUILT),
    ];
    for (name, packed, prebuilt) in objects {
        let object = built(packed);
        let (built, prebuilt) = (programs(&object), programs(prebuilt));
        assert!(!built.is_empty(), "{:?}", built.keys());
        assert!(built == prebuilt, "bpf/prebuilt/{name}.bpf.o is stale: make prebuilt");
    }
}

/// Line information must not tell where it was built.
#[test]
fn prebuilt_object_names_no_absolute_source_path() {
    for prebuilt in [PREBUILT, DNS_PREBUILT, QUIC_PREBUILT] {
        let text = String::from_utf8_lossy(prebuilt);
        assert!(!text.split('\0').any(|word| word.starts_with('/') && word.ends_with(".bpf.c")));
    }
}
