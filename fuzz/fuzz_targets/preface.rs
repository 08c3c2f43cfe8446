//! Drives `afpa_fuzz::routing::preface`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| afpa_fuzz::routing::preface(data));
