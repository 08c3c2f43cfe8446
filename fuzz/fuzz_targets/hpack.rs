//! Drives `afpa_fuzz::h2::hpack`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| afpa_fuzz::h2::hpack(data));
