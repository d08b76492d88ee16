//! Tells the library whether the build used a profile.

use std::env;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(profile_guided)");
    for name in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    if env::var("CARGO_ENCODED_RUSTFLAGS").is_ok_and(|flags| flags.contains("profile-use=")) {
        println!("cargo::rustc-cfg=profile_guided");
    }
}
