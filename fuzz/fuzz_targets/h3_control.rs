//! Drives `afpa_fuzz::h3::h3_control`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| afpa_fuzz::h3::h3_control(data));
