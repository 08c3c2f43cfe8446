//! Compiles the eBPF programs of `bpf/generator` with clang.
//!
//! Without clang the crate still builds; loading a program then says what is missing.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result};

const PROGRAMS: [&str; 3] = ["generator", "queries", "reflector"];

fn main() -> Result<()> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf/generator");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed={}", sources.display());
    println!("cargo::rerun-if-env-changed=CLANG");

    write_headers(&out.join("include/bpf"))?;
    for program in PROGRAMS {
        compile(&sources.join(format!("{program}.bpf.c")), &out, program)?;
    }
    Ok(())
}

fn write_headers(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    for (name, text) in libbpf_sys::API_HEADERS {
        fs::write(folder.join(name), text)?;
    }
    Ok(())
}

fn compile(source: &Path, out: &Path, program: &str) -> Result<()> {
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let object = out.join(format!("{program}.o"));
    let status = Command::new(&clang)
        .args(["-g", "-O2", "-target", "bpf", "-mcpu=v3", "-Wall", "-Werror"])
        .arg("-I")
        .arg(out.join("include"))
        // <asm/types.h> of distributions with multi-architecture folders
        .arg(format!("-I/usr/include/{}-linux-gnu", env::var("CARGO_CFG_TARGET_ARCH")?))
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(&object)
        .status();
    match status {
        Ok(status) => anyhow::ensure!(status.success(), "{clang} failed on {}", source.display()),
        Err(error) => {
            println!("cargo::warning={clang}: {error}: built without eBPF programs");
            fs::write(&object, []).context("cannot write an empty object")?;
        }
    }
    Ok(())
}
