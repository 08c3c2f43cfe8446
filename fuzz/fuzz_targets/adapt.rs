//! Drives `afpa_fuzz::adapt::adapt`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| afpa_fuzz::adapt::adapt(data));
