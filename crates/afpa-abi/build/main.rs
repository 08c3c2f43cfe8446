//! Makes Rust of the headers that the eBPF programs share with user mode: `abi.h` and `reasons.h`, and those
//! of the same names for DNS and QUIC.

mod header;
mod layout;
mod reasons;
mod rust;
mod tokens;

use std::path::{Path, PathBuf};

const HEADERS: &str = "../../bpf/include/afpa";

fn main() {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("set by cargo"));
    for (folder, name) in [("", ""), ("dns/", "dns_"), ("quic/", "quic_")] {
        let reasons = reasons::write(&text(&format!("{folder}reasons.h")));
        let layouts = layouts(&format!("{folder}abi.h"));
        for (what, text) in [("reasons", reasons), ("layouts", layouts)] {
            std::fs::write(out.join(format!("{name}{what}.rs")), text)
                .expect("OUT_DIR is writable");
        }
    }
}

fn layouts(path: &str) -> String {
    let header = header::read(&text(path)).unwrap_or_else(|refusal| panic!("{path}, {refusal}"));
    rust::write(&header).unwrap_or_else(|why| panic!("{path}: {why}"))
}

fn text(name: &str) -> String {
    let path = Path::new(HEADERS).join(name);
    println!("cargo:rerun-if-changed={}", path.display());
    std::fs::read_to_string(path).expect("the header is part of the source tree")
}
