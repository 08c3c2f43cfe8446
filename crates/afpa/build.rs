//! Has the linker make a smaller program: docs/decisions/size.md.

use std::env::var;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| var(name).is_ok_and(|found| found == value);
    // There Rust brings a linker of its own, which can do that.
    let has_own_linker = is("CARGO_CFG_TARGET_ARCH", "x86_64")
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu");
    if !is("PROFILE", "release") || !has_own_linker {
        return;
    }
    // Functions that are the same byte for byte are kept once.
    println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
    let is_static = var("CARGO_CFG_TARGET_FEATURE").is_ok_and(|all| all.contains("crt-static"));
    if !is_static && var("HOST") == var("TARGET") && glibc_is_at_least(2, 36) {
        // A bit for each address that is relative to the program's, in place of 24 bytes.
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// That of the machine which builds is the oldest on which the program is to run.
fn glibc_is_at_least(major: u32, minor: u32) -> bool {
    let said = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let said = said.map(|out| String::from_utf8_lossy(&out.stdout).into_owned());
    let version = said.ok().and_then(|said| {
        let (major, minor) = said.trim().strip_prefix("glibc ")?.split_once('.')?;
        Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
    });
    version.is_some_and(|version| version >= (major, minor))
}
