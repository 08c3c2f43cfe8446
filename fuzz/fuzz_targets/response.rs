//! Drives `afpa_fuzz::proxy::response`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| afpa_fuzz::proxy::response(data));
