//! Drives `afpa_fuzz::tls::records`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| afpa_fuzz::tls::records(data));
