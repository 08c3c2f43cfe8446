//! Drives `afpa_fuzz::proxy::forward`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| afpa_fuzz::proxy::forward(data));
