//! Drives `afpa_fuzz::h2::h2_client`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| afpa_fuzz::h2::h2_client(data));
