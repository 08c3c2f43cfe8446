//! Drives `afpa_fuzz::includes::includes`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| afpa_fuzz::includes::includes(data));
