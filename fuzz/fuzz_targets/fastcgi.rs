//! Drives `afpa_fuzz::fastcgi::fastcgi`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| afpa_fuzz::fastcgi::fastcgi(data));
