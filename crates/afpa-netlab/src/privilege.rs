//! May this process set up a test bed?

use std::sync::OnceLock;

use crate::tool;

/// Why namespaces, packet sockets and eBPF programs cannot be used here; `None` when they can.
///
/// A test that gets a reason prints it and returns:
///
/// ```
/// if let Some(reason) = afpa_netlab::missing_privilege() {
///     eprintln!("SKIP: {reason}");
///     return;
/// }
/// ```
pub fn missing_privilege() -> Option<String> {
    static ASKED: OnceLock<Option<String>> = OnceLock::new();
    ASKED.get_or_init(first_missing).clone()
}

fn first_missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("needs root: network namespaces, packet sockets, eBPF".into());
    }
    for program in ["ip", "ethtool", "sysctl", "taskset"] {
        if tool::run("sh", &["-c", &format!("command -v {program}")]).is_err() {
            return Some(format!("needs the program {program}"));
        }
    }
    unshare_refused()
}

/// Containers often run as root without the right to make namespaces: try it on a thread.
fn unshare_refused() -> Option<String> {
    let attempt = std::thread::spawn(|| nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET));
    match attempt.join() {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(format!("network namespaces are refused: {error}")),
        Err(_) => Some("network namespaces cannot be tried".into()),
    }
}
