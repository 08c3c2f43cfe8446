//! Drives `afpa_fuzz::dns::zone_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| afpa_fuzz::dns::zone_file(data));
