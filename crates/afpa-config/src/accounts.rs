//! Users and groups by the settings `user` and `group`, which take a name or a number.

use nix::unistd::{Gid, Group, Uid, User};

/// The user that `user` names, if there is one.
///
/// # Errors
/// When the user database cannot be read.
pub fn user(user: &str) -> nix::Result<Option<User>> {
    match user.parse() {
        Ok(number) => User::from_uid(Uid::from_raw(number)),
        Err(_) => User::from_name(user),
    }
}

/// The group that `group` names, if there is one.
///
/// # Errors
/// As [`user`].
pub fn group(group: &str) -> nix::Result<Option<Group>> {
    match group.parse() {
        Ok(number) => Group::from_gid(Gid::from_raw(number)),
        Err(_) => Group::from_name(group),
    }
}
