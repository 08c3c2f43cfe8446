//! The state that older versions of AFPA left in the BPF file system.

use std::path::Path;

/// Makes AFPA's folder there as older versions did.
pub fn make_home_for_root_alone() -> std::io::Result<()> {
    let home = Path::new(afpa_bpf::HOME);
    std::fs::create_dir(home)?;
    std::fs::set_permissions(home, std::os::unix::fs::PermissionsExt::from_mode(0o755))
}
