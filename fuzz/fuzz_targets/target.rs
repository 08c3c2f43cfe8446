//! Drives `afpa_fuzz::target`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| afpa_fuzz::target(data));
