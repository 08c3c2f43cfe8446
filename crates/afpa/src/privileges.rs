//! Raises resource limits, and drops the privileges that are not needed once everything is bound.
//!
//! The order is: [`raise_limits`], bind and create sockets, [`Identity::find`] and
//! [`Identity::assume`], then start threads.

use std::fmt;

use afpa_config::{accounts, accounts::Account, human_size};
use anyhow::{Context as _, bail};
use nix::sys::prctl;
use nix::unistd::{self, Gid, Uid};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{self, CapabilitySet, CapabilitySets};

/// Users that `auto` tries, the first that exists.
const UNPRIVILEGED: [&str; 2] = ["www-data", "nobody"];

/// The limits of the process that the configuration needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Descriptors (RLIMIT_NOFILE).
    pub descriptors: u64,
    /// Bytes of locked memory (RLIMIT_MEMLOCK).
    pub locked_memory: u64,
}

/// A limit after [`raise_limits`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The limit's name.
    pub name: LimitName,
    /// The value that the configuration needs.
    pub needed: u64,
    /// The value that the process has; `None` is no limit.
    pub granted: Option<u64>,
}

/// The limits AFPA cares about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitName {
    /// RLIMIT_NOFILE.
    Descriptors,
    /// RLIMIT_MEMLOCK.
    LockedMemory,
}

impl Limit {
    /// Whether it is as high as needed.
    pub fn suffices(&self) -> bool {
        self.granted.is_none_or(|granted| granted >= self.needed)
    }

    /// How to raise it; `None` if that is not necessary.
    pub fn remedy(&self) -> Option<String> {
        let needed = self.needed;
        (!self.suffices()).then(|| match self.name {
            LimitName::Descriptors => {
                format!("ulimit -Hn {needed}, or LimitNOFILE={needed} in the unit")
            }
            LimitName::LockedMemory => {
                let kilobytes = needed.div_ceil(1024);
                format!("ulimit -Hl {kilobytes}, or LimitMEMLOCK={needed} in the unit")
            }
        })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |value: u64| match self.name {
            LimitName::Descriptors => value.to_string(),
            LimitName::LockedMemory => human_size(value),
        };
        match self.granted {
            None => f.write_str("unlimited"),
            Some(granted) if self.suffices() => f.write_str(&show(granted)),
            Some(granted) => write!(f, "{} of {} needed", show(granted), show(self.needed)),
        }
    }
}

/// Raises limits that are too low: to the hard limit even if that is more than is needed, and beyond it where this user
/// may and the need is higher.
pub fn raise_limits(needs: Needs) -> [Limit; 2] {
    [
        raise(LimitName::Descriptors, Resource::Nofile, needs.descriptors),
        raise(LimitName::LockedMemory, Resource::Memlock, needs.locked_memory),
    ]
}

/// How many descriptors there may be; `None` is no limit.
pub fn descriptors_granted() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

fn raise(name: LimitName, resource: Resource, needed: u64) -> Limit {
    let now = getrlimit(resource);
    let wanted = now.maximum.map(|maximum| maximum.max(needed));
    // Only a privileged process may exceed the hard limit; any process may go up to it.
    let attempts = [wanted, now.maximum];
    let lacking = now.current.is_some_and(|current| current < needed);
    if lacking {
        let raised = attempts.into_iter().any(|limit| {
            let current = limit.map_or(Some(needed), Some);
            setrlimit(resource, Rlimit { current, maximum: limit }).is_ok()
        });
        tracing::debug!(?name, raised, "resource limit");
    }
    Limit { name, needed, granted: getrlimit(resource).current }
}

/// The user and group that the process becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The user's name.
    pub name: String,
    /// Its number.
    pub uid: Uid,
    /// The group to become.
    pub gid: Gid,
}

impl Identity {
    /// Resolves the settings `user` and `group`; `None` is `auto`.
    ///
    /// `Ok(None)` means that the user stays the same: the process was not started as root, and no other
    /// user was asked for.
    ///
    /// # Errors
    /// When a name does not exist, or another user is asked for without the right to become it.
    pub fn find(user: Option<&str>, group: Option<&str>) -> anyhow::Result<Option<Self>> {
        let me = unistd::geteuid();
        let user = match user {
            Some(name) => user_by_name(name)?,
            None if me.is_root() => unprivileged_user()?,
            None if group.is_none() => return Ok(None),
            None => user_by_name(&me.to_string())?,
        };
        let gid = match group {
            Some(name) => group_by_name(name)?,
            None => user.gid,
        };
        if !me.is_root() && (user.uid != me || gid != unistd::getegid()) {
            bail!(
                "cannot become user {}: start afpa as root, or leave `user` and `group` out",
                user.name
            );
        }
        Ok(Some(Identity { name: user.name, uid: user.uid, gid }))
    }

    /// Becomes this user for good, with all of its groups, and keeps no capability but `keep`.
    ///
    /// # Errors
    /// When the system refuses any step; the process must not go on then.
    pub fn assume(&self, keep: CapabilitySet) -> anyhow::Result<()> {
        let Identity { name, uid, gid } = self;
        if !uid.is_root() {
            empty_bounding_set().context("cannot empty the capability bounding set")?;
        }
        if unistd::geteuid() != *uid || unistd::getegid() != *gid {
            prctl::set_keepcaps(!keep.is_empty()).context("cannot keep capabilities")?;
            let login = std::ffi::CString::new(name.as_str()).context("a user name with a NUL")?;
            // Groups first: afterwards there is no right left to change them.
            let groups = match name.parse::<u32>() {
                // It has no name, by which groups could have it for a member.
                Ok(_) => unistd::setgroups(&[*gid]),
                Err(_) => unistd::initgroups(&login, *gid),
            };
            groups.with_context(|| format!("cannot take the groups of {name}"))?;
            unistd::setresgid(*gid, *gid, *gid)
                .with_context(|| format!("cannot become group {gid}"))?;
            unistd::setresuid(*uid, *uid, *uid).with_context(|| format!("cannot become {name}"))?;
            prctl::set_keepcaps(false).context("cannot stop keeping capabilities")?;
        }
        restrict(keep)?;
        let may_return = keep.contains(CapabilitySet::SETUID) || uid.is_root();
        if !may_return && unistd::setuid(Uid::from_raw(0)).is_ok() {
            bail!("{name} can become root again");
        }
        Ok(())
    }
}

/// For a process whose user stays the same: drops the capabilities that it was started with, except `keep`.
///
/// A process that is configured to stay root keeps all capabilities.
///
/// # Errors
/// As [`Identity::assume`].
pub fn restrict(keep: CapabilitySet) -> anyhow::Result<()> {
    prctl::set_no_new_privs().context("cannot set no_new_privs")?;
    if unistd::geteuid().is_root() {
        return Ok(());
    }
    keep_only(keep)
}

/// For a thread that is there before the process becomes `identity`: keeps only the capabilities for that step, which the C
/// library has every thread take. [`restrict`] takes those away as well.
///
/// # Errors
/// As [`Identity::assume`].
pub fn precede(identity: Option<&Identity>) -> anyhow::Result<()> {
    prctl::set_no_new_privs().context("cannot set no_new_privs")?;
    if identity.map_or(unistd::geteuid(), |identity| identity.uid).is_root() {
        return Ok(());
    }
    keep_only(CapabilitySet::SETUID | CapabilitySet::SETGID)
}

/// Capabilities belong to threads: those started later inherit what this one has left.
fn keep_only(keep: CapabilitySet) -> anyhow::Result<()> {
    empty_bounding_set().context("cannot empty the capability bounding set")?;
    thread::clear_ambient_capability_set().context("cannot clear the ambient capabilities")?;
    let had = thread::capabilities(None).context("cannot read the capabilities")?;
    let kept = had.permitted & keep;
    let sets =
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    thread::set_capabilities(None, sets).context("cannot give up capabilities")
}

/// No program that this thread, or one that it makes, ever runs can get a capability from its file. Without CAP_SETPCAP
/// only `no_new_privs` sees to that.
fn empty_bounding_set() -> rustix::io::Result<()> {
    for bit in 0..u64::BITS {
        match thread::remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << bit))
        {
            Ok(()) => {}
            // The kernel has no more capabilities, or this process may not drop them.
            Err(Errno::INVAL | Errno::PERM) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn user_by_name(name: &str) -> anyhow::Result<Account> {
    let remedy = || match accounts::missing_database() {
        None => format!("user {name:?} does not exist: create it or correct `user`"),
        Some(file) => {
            format!("there is no {file} in which user {name:?} could be: give `user` as a number")
        }
    };
    accounts::user(name).context("the users cannot be looked up")?.with_context(remedy)
}

fn group_by_name(name: &str) -> anyhow::Result<Gid> {
    let remedy = || match accounts::missing_database() {
        None => format!("group {name:?} does not exist: create it or correct `group`"),
        Some(file) => {
            format!("there is no {file} in which group {name:?} could be: give `group` as a number")
        }
    };
    accounts::group(name).context("the groups cannot be looked up")?.with_context(remedy)
}

fn unprivileged_user() -> anyhow::Result<Account> {
    for name in UNPRIVILEGED {
        if let Some(user) = accounts::user(name).context("the users cannot be looked up")? {
            return Ok(user);
        }
    }
    let names = UNPRIVILEGED.join(" or ");
    match accounts::missing_database() {
        Some(file) => bail!(
            "started as root, afpa becomes {names}, but there is no {file}: say whom to become by number (--user 65534, or \
             `user = \"65534\"`)"
        ),
        None => bail!("there is no user {names}: say whom to become with `user`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn limits_say_what_is_missing() {
        let limit = |name, needed, granted| Limit { name, needed, granted };
        let enough = limit(LimitName::Descriptors, 10, Some(20));
        assert_eq!((enough.to_string(), enough.remedy()), ("20".to_owned(), None));
        let lacking = limit(LimitName::Descriptors, 5000, Some(1024));
        assert_eq!(lacking.to_string(), "1024 of 5000 needed");
        let remedy = "ulimit -Hn 5000, or LimitNOFILE=5000 in the unit";
        assert_eq!(lacking.remedy().as_deref(), Some(remedy));
        let memory = limit(LimitName::LockedMemory, 1 << 30, Some(8 << 20));
        assert_eq!(memory.to_string(), "8.0 MiB of 1.0 GiB needed");
        let remedy = "ulimit -Hl 1048576, or LimitMEMLOCK=1073741824 in the unit";
        assert_eq!(memory.remedy().as_deref(), Some(remedy));
        assert_eq!(limit(LimitName::LockedMemory, 1, None).to_string(), "unlimited");
    }

    #[test]
    fn raising_never_lowers() {
        let before = getrlimit(Resource::Nofile).current;
        let needs = Needs { descriptors: 64, locked_memory: 4096 };
        let [descriptors, memory] = raise_limits(needs);
        assert_eq!(descriptors.granted, before);
        assert!(descriptors.suffices() && memory.needed == 4096);
    }

    #[test]
    fn unknown_names_say_so() {
        let error = Identity::find(Some("no-such-user"), None).unwrap_err().to_string();
        let expected = "user \"no-such-user\" does not exist: create it or correct `user`";
        assert_eq!(error, expected);
        let error = Identity::find(Some("root"), Some("no-such-group")).unwrap_err().to_string();
        assert!(error.starts_with("group \"no-such-group\" does not exist"), "{error}");
    }

    #[test]
    fn root_becomes_nobody_in_particular() {
        if !unistd::geteuid().is_root() {
            assert_eq!(Identity::find(None, None).unwrap(), None);
            println!("SKIP the rest: not started as root");
            return;
        }
        let identity = Identity::find(None, None).unwrap().unwrap();
        assert!(UNPRIVILEGED.contains(&identity.name.as_str()), "{identity:?}");
        assert!(!identity.uid.is_root());
    }

    /// Becoming another user is for good, so it is tried in a process of its own: this test, run
    /// again with a variable set.
    #[test]
    fn another_user_is_assumed_for_good() {
        const CHILD: &str = "AFPA_TEST_ASSUME";
        if let Some(keep) = std::env::var_os(CHILD) {
            let bind = CapabilitySet::NET_BIND_SERVICE;
            let keep = if keep == "bind" { bind } else { CapabilitySet::empty() };
            return become_nobody_and_look(keep);
        }
        if !unistd::geteuid().is_root() {
            println!("SKIP: not started as root");
            return;
        }
        for keep in ["nothing", "bind"] {
            let mut test = Command::new(std::env::current_exe().unwrap());
            test.args(["--exact", "privileges::tests::another_user_is_assumed_for_good"]);
            let output = test.args(["--nocapture"]).env(CHILD, keep).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && text.contains("1 passed"), "{keep}: {text}");
        }
    }

    fn become_nobody_and_look(keep: CapabilitySet) {
        let identity = Identity::find(Some("nobody"), None).unwrap().unwrap();
        identity.assume(keep).unwrap();
        assert_eq!((unistd::getuid(), unistd::geteuid()), (identity.uid, identity.uid));
        assert_eq!(unistd::getgid(), identity.gid);
        assert!(!unistd::getgroups().unwrap().contains(&Gid::from_raw(0)));
        assert!(unistd::setuid(Uid::from_raw(0)).is_err());
        assert!(prctl::get_no_new_privs().unwrap());
        let left = thread::capabilities(None).unwrap();
        assert_eq!((left.effective, left.permitted), (keep, keep));
        assert_eq!(left.inheritable, CapabilitySet::empty());
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        assert!(status.contains("CapBnd:\t0000000000000000\n"), "{status}");
        // The other threads of the process are the new user, too.
        let status = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        for task in status {
            let text = std::fs::read_to_string(task.path().join("status")).unwrap();
            let uids = text.lines().find(|line| line.starts_with("Uid:")).unwrap();
            let all = uids.split_whitespace().skip(1).all(|uid| uid == identity.uid.to_string());
            assert!(all, "{uids}");
        }
    }
}
