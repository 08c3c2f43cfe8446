//! Drives `afpa_fuzz::request`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| afpa_fuzz::request(data));
