//! Drives `afpa_fuzz::fleet::fleet_messages`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| afpa_fuzz::fleet::fleet_messages(data));
