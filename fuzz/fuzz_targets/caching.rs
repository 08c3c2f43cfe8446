//! Drives `afpa_fuzz::caching`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| afpa_fuzz::caching(data));
