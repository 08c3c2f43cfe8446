//! Drives `afpa_fuzz::fleet::fleet_questions`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| afpa_fuzz::fleet::fleet_questions(data));
