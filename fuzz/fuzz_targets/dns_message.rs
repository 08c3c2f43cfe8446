//! Drives `afpa_fuzz::dns::dns_message`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| afpa_fuzz::dns::dns_message(data));
