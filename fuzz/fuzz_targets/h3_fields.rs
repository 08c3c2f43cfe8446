//! Drives `afpa_fuzz::h3::h3_fields`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| afpa_fuzz::h3::h3_fields(data));
