//! Drives `afpa_fuzz::routing::route`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| afpa_fuzz::routing::route(data));
