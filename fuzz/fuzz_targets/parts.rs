//! Drives `afpa_fuzz::parts`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| afpa_fuzz::parts(data));
