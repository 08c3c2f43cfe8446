//! Drives `afpa_fuzz::chunked`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| afpa_fuzz::chunked(data));
