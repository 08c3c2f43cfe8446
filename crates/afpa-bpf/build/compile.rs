//! Compiles a source for BPF with clang. The build script and the tests that bring programs of their own share this file.

use std::path::Path;
use std::process::Command;
use std::{env, fs, io};

use libbpf_rs::{Linker, libbpf_sys};

/// Compiles `source` into `object`, with the headers of the libbpf that loads it. Files of work come and go in `folder`.
///
/// Version 3 of the instruction set: 32-bit arithmetic and atomics, in every kernel that has tcx. clang adds DWARF to the
/// types (BTF) that libbpf needs; libbpf's linker leaves it out, and with it the paths of this machine.
pub(crate) fn compile(source: &str, object: &Path, folder: &Path, arguments: &[&str]) {
    let headers = folder.join("headers");
    write_headers(&headers).expect("libbpf's headers are written");
    let compiled = folder.join("compiled.bpf.o");
    let status = Command::new("clang")
        .args(arguments)
        .args(["-mcpu=v3", "-Wall", "-Werror", "-fno-stack-protector", "-g", "-O2"])
        .arg("-I")
        .arg(&headers)
        .arg(format!("-D__TARGET_ARCH_{}", architecture()))
        .args(["-target", "bpf", "-c", source, "-o"])
        .arg(&compiled)
        .status()
        .expect("clang is there");
    assert!(status.success(), "clang cannot compile {source}");
    let mut linker = Linker::new(object).expect("a linker of libbpf");
    linker.add_file(&compiled).expect("clang has made an object");
    linker.link().expect("the object is written");
    fs::remove_file(&compiled).expect("the object was there");
}

fn write_headers(folder: &Path) -> io::Result<()> {
    let headers = folder.join("bpf");
    fs::create_dir_all(&headers)?;
    libbpf_sys::API_HEADERS.iter().try_for_each(|(name, text)| fs::write(headers.join(name), text))
}

/// The architecture for which this is built, by its name in libbpf's headers.
fn architecture() -> String {
    let name = env::var("CARGO_CFG_TARGET_ARCH");
    match name.as_deref().unwrap_or(env::consts::ARCH) {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        "riscv64" => "riscv",
        "s390x" => "s390",
        other => other,
    }
    .to_owned()
}
