//! Makes Rust of the headers that the eBPF programs share with user mode: `abi.h` and `reasons.h`.

mod header;
mod layout;
mod reasons;
mod rust;

use std::path::{Path, PathBuf};

const HEADERS: &str = "../../bpf/include/afpa";

fn main() {
    let reasons = reasons::write(&text("reasons.h"));
    let header = header::read(&text("abi.h")).unwrap_or_else(|refusal| panic!("abi.h, {refusal}"));
    let layouts = rust::write(&header).unwrap_or_else(|why| panic!("abi.h: {why}"));
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("set by cargo"));
    for (name, text) in [("reasons.rs", reasons), ("layouts.rs", layouts)] {
        std::fs::write(out.join(name), text).expect("OUT_DIR is writable");
    }
}

fn text(name: &str) -> String {
    let path = Path::new(HEADERS).join(name);
    println!("cargo:rerun-if-changed={}", path.display());
    std::fs::read_to_string(path).expect("the header is part of the source tree")
}
