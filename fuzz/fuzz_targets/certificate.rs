//! Drives `afpa_fuzz::tls::certificate`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| afpa_fuzz::tls::certificate(data));
