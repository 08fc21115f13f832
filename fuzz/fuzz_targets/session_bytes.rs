#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| longhaul_tests::fuzz::session_bytes(data));
