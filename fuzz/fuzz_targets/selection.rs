//! Drives `afpa_fuzz::selection`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| afpa_fuzz::selection(data));
