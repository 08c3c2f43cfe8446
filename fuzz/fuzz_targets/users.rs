//! Drives `afpa_fuzz::users::users`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| afpa_fuzz::users::users(data));
