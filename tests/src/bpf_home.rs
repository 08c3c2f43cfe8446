//! What an AFPA of old left in the BPF file system.

use std::path::Path;

/// AFPA's folder there, as an AFPA of old made it.
pub fn make_home_for_root_alone() -> std::io::Result<()> {
    let home = Path::new(afpa_bpf::HOME);
    std::fs::create_dir(home)?;
    std::fs::set_permissions(home, std::os::unix::fs::PermissionsExt::from_mode(0o755))
}
