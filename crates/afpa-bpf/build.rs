//! Compiles the sources of the objects in `bpf/`, or takes the prebuilt objects of the same sources where clang is missing.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::write::ZlibEncoder;
#[path = "build/compile.rs"]
mod compile;
#[path = "build/sources.rs"]
mod sources;

/// The objects, by the names of their sources.
const OBJECTS: [&str; 3] = ["afpa", "dns", "quic"];
const SOURCES: &str = "../../bpf";
const INCLUDE: &str = "../../bpf/include";
const PREBUILT: &str = "../../bpf/prebuilt";

fn main() {
    println!("cargo:rerun-if-changed=../../bpf");
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rerun-if-env-changed=AFPA_BPF_PREBUILT");
    compile_explain();
    println!("cargo:rustc-check-cfg=cfg(afpa_bpf_compiled)");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("set by cargo"));
    let wish = std::env::var_os("AFPA_BPF_PREBUILT");
    let renews = wish.as_ref().is_some_and(|wish| wish == "renew");
    if renews || (wish.is_none() && clang_is_there()) {
        for name in OBJECTS {
            compile(&format!("{SOURCES}/{name}.bpf.c"), &out.join(format!("{name}.bpf.o")), &out);
        }
        println!("cargo:rustc-env=AFPA_CLANG={}", clang_version()); // for tests/programs/object.rs
        println!("cargo:rustc-cfg=afpa_bpf_compiled");
        if renews {
            renew(&out);
        }
    } else {
        if wish.is_none() {
            println!("cargo:warning=no clang: using the prebuilt eBPF objects");
        }
        refuse_stale();
        for object in OBJECTS.map(|name| format!("{name}.bpf.o")) {
            std::fs::copy(Path::new(PREBUILT).join(&object), out.join(&object))
                .expect("the prebuilt objects are part of the source tree");
        }
    }
    for name in OBJECTS {
        pack(&out.join(format!("{name}.bpf.o")));
    }
}

/// Objects of other sources would be programs with other layouts and rules than those that the rest of the build has.
fn refuse_stale() {
    if prebuilt("sources") != sources::mark(Path::new(SOURCES)).expect("the sources are here") {
        refuse(
            "the objects in bpf/prebuilt are made of other sources than those in bpf: install clang and build again, or \
             have them made anew, with `make prebuilt`, where there is clang",
        );
    }
}

/// Puts the new objects into bpf/prebuilt, with the mark of their sources.
fn renew(out: &Path) {
    let (here, wanted) = (clang_version(), prebuilt("clang-version"));
    if here != wanted {
        refuse(&format!("prebuilt objects are made by clang {wanted}, and this is {here}"));
    }
    let folder = Path::new(PREBUILT);
    for object in OBJECTS.map(|name| format!("{name}.bpf.o")) {
        std::fs::copy(out.join(&object), folder.join(&object)).expect("copied");
    }
    let mark = sources::mark(Path::new(SOURCES)).expect("the sources are here");
    std::fs::write(folder.join("sources"), mark + "\n").expect("written");
}

fn prebuilt(name: &str) -> String {
    let text = std::fs::read_to_string(Path::new(PREBUILT).join(name)).unwrap_or_default();
    text.trim().to_owned()
}

fn refuse(why: &str) -> ! {
    println!("cargo::error={why}");
    std::process::exit(1);
}

/// The program has the objects in it. Packed, they take a quarter of the room.
fn pack(object: &Path) {
    let content = std::fs::read(object).expect("the object was made");
    let mut packer = ZlibEncoder::new(Vec::new(), Compression::best());
    packer.write_all(&content).expect("packed");
    std::fs::write(object.with_extension("z"), packer.finish().expect("packed")).expect("written");
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

fn compile(source: &str, object: &Path, out: &Path) {
    let include = format!("-I{INCLUDE}");
    // Line information must not depend on where the sources lie.
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("set by cargo");
    let nowhere = format!("-ffile-prefix-map={here}=.");
    compile::compile(source, object, out, &[&include, &nowhere]);
}
