//! Drives `afpa_fuzz::tls::handshake`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| afpa_fuzz::tls::handshake(data));
