#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| blklab_oracles::target("host_file")(data));
