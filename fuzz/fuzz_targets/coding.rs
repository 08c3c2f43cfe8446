//! Drives `afpa_fuzz::coding`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| afpa_fuzz::coding(data));
