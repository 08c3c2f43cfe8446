//! A mark of the sources that the objects are made of. The build script and a test share this file.

use std::path::Path;
use std::{fs, io};

use flate2::Crc;

/// The same for the same sources. Nobody has to be kept from making others with the same mark, so a checksum does.
pub(crate) fn mark(folder: &Path) -> io::Result<String> {
    let mut files = Vec::new();
    for name in ["afpa.bpf.c", "dns.bpf.c", "quic.bpf.c", "include", "programs"] {
        list(folder, name, &mut files)?;
    }
    files.sort();
    let mut sum = Crc::new();
    for name in &files {
        let content = fs::read(folder.join(name))?;
        sum.update(format!("{name}\n{}\n", content.len()).as_bytes());
        sum.update(&content);
    }
    Ok(format!("{:08x}", sum.sum()))
}

/// The file, or those below the folder, of that name in `folder`.
fn list(folder: &Path, name: &str, files: &mut Vec<String>) -> io::Result<()> {
    if !folder.join(name).is_dir() {
        files.push(name.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(folder.join(name))? {
        let below = entry?.file_name().to_string_lossy().into_owned();
        list(folder, &format!("{name}/{below}"), files)?;
    }
    Ok(())
}
