//! Users and groups by the settings `user` and `group`, which take a name or a number. A number needs no user database,
//! which small container images do not have.

use nix::errno::Errno;
use nix::unistd::{Gid, Group, Uid, User};

/// A user that a process may become, with its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The name; the number, if it has none.
    pub name: String,
    /// The user.
    pub uid: Uid,
    /// The user's group. Of a number without an entry in the database, the group of the same number.
    pub gid: Gid,
}

/// The user that `user` names, if there is one.
///
/// # Errors
/// When the user database cannot be read.
pub fn user(user: &str) -> nix::Result<Option<Account>> {
    let Ok(number) = user.parse() else { return Ok(found(User::from_name(user))?.map(account)) };
    let known = found(User::from_uid(Uid::from_raw(number)))?.map(account);
    let alone = || Account { name: user.to_owned(), uid: number.into(), gid: number.into() };
    Ok(Some(known.unwrap_or_else(alone)))
}

/// The group that `group` names, if there is one.
///
/// # Errors
/// As [`user`].
pub fn group(group: &str) -> nix::Result<Option<Gid>> {
    match group.parse() {
        Ok(number) => Ok(Some(Gid::from_raw(number))),
        Err(_) => Ok(found(Group::from_name(group))?.map(|group| group.gid)),
    }
}

/// Why no name can be found at all, if that is so.
pub fn missing_database() -> Option<&'static str> {
    ["/etc/passwd", "/etc/group"].into_iter().find(|file| !std::path::Path::new(file).exists())
}

fn account(user: User) -> Account {
    Account { name: user.name, uid: user.uid, gid: user.gid }
}

/// No entry: getpwnam(3) lists these errors for an entry that does not exist, or for a missing database.
fn found<T>(looked_up: nix::Result<Option<T>>) -> nix::Result<Option<T>> {
    match looked_up {
        Err(Errno::ENOENT | Errno::ESRCH | Errno::EBADF | Errno::EPERM) => Ok(None),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_needs_no_entry_and_a_name_does() {
        let alone = user("4000000001").unwrap().unwrap();
        assert_eq!((alone.name.as_str(), alone.uid.as_raw()), ("4000000001", 4_000_000_001));
        assert_eq!(alone.gid.as_raw(), 4_000_000_001);
        assert_eq!(group("4000000001"), Ok(Some(Gid::from_raw(4_000_000_001))));
        assert_eq!(user("no-such-user"), Ok(None));
        assert_eq!(group("no-such-group"), Ok(None));
        assert_eq!(found::<()>(Err(Errno::ENOENT)), Ok(None));
        assert!(found::<()>(Err(Errno::EIO)).is_err());
    }
}
