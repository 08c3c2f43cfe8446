//! The unit tests of the build script's modules, and its work on the real header.

#[path = "../build/header.rs"]
mod header;
#[path = "../build/layout.rs"]
mod layout;
#[path = "../build/rust.rs"]
mod rust;

use afpa_abi::*;

const ABI: &str = include_str!("../../../bpf/include/afpa/abi.h");

#[test]
fn every_definition_of_the_header_is_in_rust() {
    let header = header::read(ABI).expect("the subset");
    let defined = |word: &str| {
        ABI.lines().filter(|line| line.starts_with(word) && line.ends_with('{')).count()
    };
    assert_eq!((header.structs.len(), header.enums.len()), (defined("struct "), defined("enum ")));
    assert_eq!(STRUCTS.len(), header.structs.len());
    let text = rust::write(&header).expect("can be written");
    assert!(text.contains("pub struct FlowKey {"));
}

#[test]
fn bytes_and_back() {
    let mut key = FlowKey { client: [1; 16], server: [2; 16], client_port: 3, server_port: 4 };
    let bytes = key.to_bytes();
    assert_eq!(bytes[15..17], [1, 2]);
    assert_eq!(bytes[32..36], [3u16.to_ne_bytes(), 4u16.to_ne_bytes()].concat());
    assert_eq!(FlowKey::from_bytes(&bytes), Some(key));
    assert_eq!(FlowKey::from_bytes(&bytes[1..]), None);
    key = FlowKey::default();
    assert_eq!((key.to_bytes(), Shared::ZERO.to_bytes().iter().max()), ([0; 36], Some(&0)));
}
