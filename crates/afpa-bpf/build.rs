//! Compiles `bpf/afpa.bpf.c`, or takes the prebuilt object of the same source where clang is missing.

use std::path::{Path, PathBuf};
use std::process::Command;

use libbpf_cargo::SkeletonBuilder;

const SOURCE: &str = "../../bpf/afpa.bpf.c";
const INCLUDE: &str = "../../bpf/include";
const PREBUILT: &str = "../../bpf/prebuilt/afpa.bpf.o";

fn main() {
    println!("cargo:rerun-if-changed=../../bpf");
    println!("cargo:rerun-if-env-changed=AFPA_BPF_PREBUILT");
    compile_explain();
    println!("cargo:rustc-check-cfg=cfg(afpa_bpf_compiled)");
    let object =
        PathBuf::from(std::env::var_os("OUT_DIR").expect("set by cargo")).join("afpa.bpf.o");
    if std::env::var_os("AFPA_BPF_PREBUILT").is_none() && clang_is_there() {
        compile(&object);
        println!("cargo:rustc-env=AFPA_CLANG={}", clang_version()); // for tests/programs/object.rs
        println!("cargo:rustc-cfg=afpa_bpf_compiled");
    } else {
        println!("cargo:warning=no clang: using the prebuilt eBPF object");
        std::fs::copy(PREBUILT, &object).expect("the prebuilt object is part of the source tree");
    }
}

/// The programs' parser as a library, for `afpa explain`.
fn compile_explain() {
    println!("cargo:rerun-if-changed=explain");
    println!("cargo:rerun-if-changed=tests/agree/user_space.c");
    println!("cargo:rerun-if-changed=tests/agree/verdict.h");
    cc::Build::new()
        .file("explain/explain.c")
        .include(INCLUDE)
        .include("tests/agree")
        .opt_level(2)
        .flag("-fno-strict-aliasing")
        .flag("-Wno-unused-parameter")
        .compile("afpa_explain");
}

/// As in `bpf/prebuilt/clang-version`: other compilers make other, equally good objects.
fn clang_version() -> String {
    let out = Command::new("clang")
        .arg("-dumpversion")
        .output()
        .map(|out| out.stdout)
        .unwrap_or_default();
    String::from_utf8_lossy(&out).trim().to_owned()
}

fn clang_is_there() -> bool {
    Command::new("clang").arg("--version").output().is_ok_and(|out| out.status.success())
}

/// Version 3 of the instruction set: 32-bit arithmetic and atomics, in every kernel that has tcx.
fn compile(object: &Path) {
    let include = format!("-I{INCLUDE}");
    // Line information must not depend on where the sources lie.
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("set by cargo");
    let nowhere = format!("-ffile-prefix-map={here}=.");
    SkeletonBuilder::new()
        .source(SOURCE)
        .obj(object)
        .clang_args([include.as_str(), nowhere.as_str(), "-mcpu=v3", "-Wall", "-Werror"])
        .build()
        .expect("the eBPF programs compile");
}
