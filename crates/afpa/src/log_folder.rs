//! Whether the access log can be opened anew by the user that the process becomes.

use std::ffi::CString;
use std::fs::{self, Metadata};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use afpa_config::{AccessTarget, Finding, Loaded, Location};
use nix::unistd;

use crate::privileges::Identity;

/// Bits of a class of users.
const WRITE: u32 = 2;
const SEARCH: u32 = 1;

/// A warning, if the file that SIGUSR1 would make could not be made: the old one is kept then. Rights that lists of access
/// control give are believed.
pub(crate) fn warning(loaded: &Loaded) -> Option<Finding> {
    let AccessTarget::File(path) = &loaded.config.log.access else { return None };
    let (user, group) = (&loaded.config.user, &loaded.config.group);
    let identity = Identity::find(user.as_deref(), group.as_deref()).ok().flatten()?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty())?;
    let reaches = folder.ancestors().all(|above| may(&identity, above, SEARCH));
    if reaches && (may(&identity, folder, WRITE) || path.exists() && may(&identity, path, WRITE)) {
        return None;
    }
    let setting = loaded.settings.get("log", "access");
    let location = setting.map_or(Location::Nowhere, |setting| setting.location.clone());
    let (name, shown) = (&identity.name, folder.display());
    let cause = format!(
        "{name} cannot write to {shown}, so the access log cannot be opened anew after it was renamed"
    );
    let remedy = format!(
        "chown {name} {shown}, or have the program that renames it create a file that {name} may write"
    );
    Some(Finding::warning(location, cause, remedy))
}

/// Whether somebody has these rights; of what is not there, that is not known.
fn may(identity: &Identity, path: &Path, bits: u32) -> bool {
    let Ok(about) = fs::metadata(path) else { return true };
    identity.uid.is_root()
        || has_list(path)
        || (about.permissions().mode() >> class(identity, &about)) & bits == bits
}

/// The place of the bits of the class that somebody is in.
fn class(identity: &Identity, about: &Metadata) -> u32 {
    if about.uid() == identity.uid.as_raw() {
        return 6;
    }
    let name = CString::new(identity.name.as_str()).unwrap_or_default();
    let groups = unistd::getgrouplist(&name, identity.gid).unwrap_or_default();
    let is_member = groups.iter().chain([&identity.gid]).any(|gid| gid.as_raw() == about.gid());
    if is_member { 3 } else { 0 }
}

fn has_list(path: &Path) -> bool {
    let mut nothing: [u8; 0] = [];
    rustix::fs::getxattr(path, "system.posix_acl_access", &mut nothing).is_ok()
}
