//! Compiles `c/worker.c` over a copy of `bpf/include`.

use std::path::Path;
use std::process::Command;

/// The worker over the headers in `include`, into the file `worker`, with these sanitizers. `cc` links every Rust program, so it
/// is there; only the sanitizers' libraries may be missing, which is said aloud.
pub fn worker(
    include: &Path,
    worker: &Path,
    options: &[&str],
    sanitizers: &str,
) -> Result<(), String> {
    let sanitizers = format!("-fsanitize={sanitizers}");
    let compile = |sanitizers: &[&str]| {
        let out = Command::new("cc")
            .args(options)
            .args(sanitizers)
            .arg("-fno-strict-aliasing")
            .arg("-I")
            .arg(include)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/c/worker.c"))
            .arg("-o")
            .arg(worker)
            .output()
            .map_err(|error| format!("cc does not start: {error}"))?;
        if out.status.success() {
            return Ok(());
        }
        Err(format!("cc does not compile worker.c:\n{}", String::from_utf8_lossy(&out.stderr)))
    };
    let Err(error) = compile(&[&sanitizers, "-fno-sanitize-recover=all"]) else { return Ok(()) };
    compile(&[]).map_err(|_| error)?;
    println!(
        "cargo:warning=SKIP: no libraries of the sanitizers: the TCP sender is tested without"
    );
    Ok(())
}
