//! Compiles the worker once, with sanitizers, for all tests of this crate and those that use it.

#[path = "src/compile.rs"]
#[allow(dead_code, unreachable_pub)]
mod compile;

use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=c");
    println!("cargo:rerun-if-changed=src/compile.rs");
    println!("cargo:rerun-if-changed=../../bpf/include/afpa/tcp");
    let out = std::env::var_os("OUT_DIR").expect("set by cargo");
    let worker = Path::new(&out).join("worker");
    let options = ["-O2", "-g", "-Wall", "-Werror"];
    compile::worker(Path::new("../../bpf/include"), &worker, &options, "address,undefined")
        .unwrap_or_else(|error| panic!("{error}"));
    println!("cargo:rustc-env=AFPA_TCP_WORKER={}", worker.display());
}
