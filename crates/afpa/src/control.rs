//! Control of a running afpa: where its control socket is, and requests to it.
//!
//! The socket is called `PID.sock`, or `attach-NAMESPACE-PORT.sock`, and lies in a folder that only its user can
//! write to. It speaks HTTP/1.1; an answer is a `Content-Length` body.

mod client;
mod folders;

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use afpa_bpf::Process;
use afpa_server::socket_file;
use anyhow::bail;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::geteuid;

use crate::privileges::Identity;

pub use client::Socket;

/// Which afpa is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The only one that is running for this user in this network namespace.
    Any,
    /// The process with this id.
    Process(u32),
    /// The process behind this socket.
    Socket(PathBuf),
}

/// Makes the folder of this process's control socket, for its user alone to write to.
///
/// It is the folder that the service manager made for us (`RUNTIME_DIRECTORY`); else `/run/afpa` for root,
/// `$XDG_RUNTIME_DIR/afpa` for others, and `/tmp/afpa-UID` where there is no such directory. A process that becomes
/// another user, `owner`, has a folder of that user in it, so that it can remove its socket when it ends, and
/// cannot touch root's. Call this before privileges are dropped.
///
/// # Errors
/// When the folder cannot be made, or belongs to another user, who could then replace the socket.
pub fn prepare_folder(owner: Option<&Identity>) -> anyhow::Result<PathBuf> {
    folders::prepare(&own_folder(), owner)
}

/// The control socket of this process in its folder.
pub fn path_in(folder: &Path) -> PathBuf {
    folder.join(format!("{}.sock", std::process::id()))
}

/// All folders in which there may be control sockets that this user can use.
pub fn all_folders() -> Vec<PathBuf> {
    let mut folders = vec![own_folder(), PathBuf::from(SYSTEM_FOLDER)];
    folders.dedup();
    folders::with_inner(folders)
}

/// Finds a running afpa: one of this user, or one of the system in `/run/afpa`. Removes stale sockets.
///
/// # Errors
/// When none is running, or several are and `target` does not say which.
pub fn find(target: &Target) -> anyhow::Result<Socket> {
    choose(target, &all_folders())
}

/// The path and query of a URL, which may also be a path alone.
///
/// # Errors
/// When it is neither.
pub fn path_of_url(url: &str) -> Result<&str, NotAUrl> {
    let refuse = || NotAUrl(url.to_owned());
    let path = match url.split_once("://") {
        Some(("http" | "https", rest)) => rest.find('/').map_or("/", |slash| &rest[slash..]),
        Some(_) => return Err(refuse()),
        None if url.starts_with('/') => url,
        None => return Err(refuse()),
    };
    let path = path.split(['?', '#']).next().unwrap_or(path);
    if path.bytes().any(|byte| byte.is_ascii_control()) { Err(refuse()) } else { Ok(path) }
}

/// The query of a URL, without its question mark.
pub fn query_of_url(url: &str) -> Option<&str> {
    let url = url.split('#').next().unwrap_or(url);
    url.split_once('?').map(|(_, query)| query)
}

/// The host of a URL, with its port; a path alone has none.
pub fn host_of_url(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    rest.split(['/', '?', '#']).next().filter(|host| !host.is_empty())
}

/// Percent-encodes `path` as the value of a query parameter.
pub fn escape(path: &str) -> String {
    let mut escaped = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

/// A text that is neither a URL nor a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAUrl(String);

impl fmt::Display for NotAUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a URL: write a path such as /news/, or http://host/news/", self.0)
    }
}

impl std::error::Error for NotAUrl {}

/// The folder of root's sockets, and of those of an afpa that the service manager runs.
const SYSTEM_FOLDER: &str = "/run/afpa";

/// An afpa that listens.
struct Running {
    /// As this process sees it; 0 if it does not, as from one container to another.
    pid: u32,
    socket: PathBuf,
    /// It serves in another network namespace, so only a command that names it is for it.
    is_elsewhere: bool,
}

fn own_folder() -> PathBuf {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    if let Some(folder) = variable("RUNTIME_DIRECTORY") {
        return folder;
    }
    let user = geteuid();
    if user.is_root() {
        return PathBuf::from(SYSTEM_FOLDER);
    }
    let runtime = variable("XDG_RUNTIME_DIR").map(|folder| folder.join("afpa"));
    runtime.unwrap_or_else(|| PathBuf::from(format!("/tmp/afpa-{user}")))
}

fn choose(target: &Target, folders: &[PathBuf]) -> anyhow::Result<Socket> {
    if let Target::Socket(path) = target {
        return Ok(Socket::new(path));
    }
    let mut running = running(folders);
    let all = list(&running);
    match target {
        Target::Process(pid) => {
            running.retain(|running| running.pid == *pid);
            if running.is_empty() {
                bail!("no afpa with process id {pid} is running for this user{all}");
            }
        }
        _ => running.retain(|running| !running.is_elsewhere),
    }
    match running.as_slice() {
        [running] => Ok(Socket::new(&running.socket)),
        [] if !all.is_empty() => bail!(
            "no afpa is running in this network namespace: if one of another is meant, say which{all}"
        ),
        [] => bail!(
            "no afpa is running for this user; start one with: afpa serve DIR, or afpa attach; or ask that of another \
             user, as the packages have it, with sudo; or name the socket of one that has `path` in [control]: \
             --control PATH"
        ),
        several => bail!("several afpa are running: say which with --pid{}", list(several)),
    }
}

/// A line for each, with the command that started it.
fn list(running: &[Running]) -> String {
    let lines = running.iter().map(|running| {
        if running.pid == 0 {
            return format!("\n  --control {}  (of another container)", running.socket.display());
        }
        let place = if running.is_elsewhere { "  (in another network namespace)" } else { "" };
        let command = Process::new(running.pid).command;
        format!("\n  --pid {}  {command}{place}", running.pid)
    });
    lines.collect()
}

/// All that accept connections, smallest process id first.
fn running(folders: &[PathBuf]) -> Vec<Running> {
    let sockets = folders.iter().flat_map(|folder| sockets(folder));
    let mut running: Vec<Running> = sockets.filter_map(|socket| ask_who(&socket)).collect();
    running.sort_by_key(|running| running.pid);
    running
}

/// The process behind a socket. Removes the socket of one that is gone.
fn ask_who(socket: &Path) -> Option<Running> {
    let named = pid_of(socket);
    let socket = socket.to_owned();
    match UnixStream::connect(&socket) {
        Ok(stream) => {
            // The name may have its number in another PID namespace.
            let peer = getsockopt(&stream, PeerCredentials).ok();
            let pid = peer.map(|peer| peer.pid().unsigned_abs()).or(named)?;
            let is_elsewhere = pid == 0 || is_elsewhere(&format!("/proc/{pid}/ns/net"));
            Some(Running { pid, socket, is_elsewhere })
        }
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            // Its process ended without cleaning up. A failure to remove it changes nothing.
            let _ = socket_file::remove_stale(&socket);
            None
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(_) => Some(Running { pid: named?, socket, is_elsewhere: false }),
    }
}

/// Whether a network namespace is another one than ours. A namespace that cannot be inspected counts as ours: then
/// this user can give orders only to processes of its own there.
fn is_elsewhere(namespace: &str) -> bool {
    let identity = |path: &str| {
        let found = fs::metadata(path).ok()?;
        Some((found.dev(), found.ino()))
    };
    match (identity(namespace), identity("/proc/self/ns/net")) {
        (Some(theirs), Some(ours)) => theirs != ours,
        _ => false,
    }
}

/// `PID.sock` of those that serve, `attach-NAMESPACE-PORT.sock` of attachments.
fn sockets(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        pid_of(path).is_some() || (name.starts_with("attach-") && name.ends_with(".sock"))
    };
    paths.filter(is_ours).collect()
}

fn pid_of(socket: &Path) -> Option<u32> {
    socket.file_name()?.to_str()?.strip_suffix(".sock")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("afpa");
        (temporary, path)
    }

    fn refused(target: &Target, folder: &Path) -> String {
        choose(target, &[folder.to_owned()]).unwrap_err().to_string()
    }

    #[test]
    fn a_url_is_reduced_to_its_path() {
        assert_eq!(path_of_url("/a/b"), Ok("/a/b"));
        assert_eq!(path_of_url("http://host:80/a?b#c"), Ok("/a"));
        assert_eq!(path_of_url("https://host"), Ok("/"));
        for url in ["a/b", "ftp://host/a", "", "/a\nb"] {
            assert!(path_of_url(url).is_err(), "{url:?}");
        }
        assert_eq!(
            path_of_url("news").unwrap_err().to_string(),
            "\"news\" is not a URL: write a path such as /news/, or http://host/news/"
        );
    }

    #[test]
    fn a_path_survives_the_query() {
        assert_eq!(escape("/a b%20&c=ü"), "/a%20b%2520%26c%3D%C3%BC");
    }

    #[test]
    fn nobody_is_running_without_a_folder() {
        let (_temporary, folder) = folder();
        let error = refused(&Target::Any, &folder);
        assert!(error.starts_with("no afpa is running for this user; start one"), "{error}");
        assert!(error.contains("with sudo") && error.ends_with("--control PATH"), "{error}");
    }

    #[test]
    fn one_is_found_and_stale_ones_are_removed() {
        let (_temporary, folder) = folder();
        folders::prepare(&folder, None).unwrap();
        let stale = folder.join("7.sock");
        drop(UnixListener::bind(&stale).unwrap());
        fs::write(folder.join("notes"), "").unwrap();
        let me = std::process::id();
        // As a container calls it, which has numbers of its own.
        let _live = UnixListener::bind(folder.join("1.sock")).unwrap();
        let folders = [folder.clone()];
        assert!(choose(&Target::Any, &folders).is_ok());
        assert!(!stale.exists());
        assert!(choose(&Target::Process(me), &folders).is_ok());
        let error = refused(&Target::Process(7), &folder);
        let expected =
            format!("no afpa with process id 7 is running for this user\n  --pid {me}  ");
        assert!(error.starts_with(&expected), "{error}");
    }

    #[test]
    fn several_are_listed() {
        let (_temporary, folder) = folder();
        folders::prepare(&folder, None).unwrap();
        let me = std::process::id();
        let _first = UnixListener::bind(folder.join("1.sock")).unwrap();
        let _second = UnixListener::bind(folder.join(format!("{me}.sock"))).unwrap();
        let error = refused(&Target::Any, &folder);
        assert!(error.starts_with("several afpa are running: say which with --pid\n"), "{error}");
        assert!(error.contains(&format!("--pid {me}  ")), "{error}");
    }

    #[test]
    fn an_attachment_is_found_by_its_process() {
        let (_temporary, folder) = folder();
        folders::prepare(&folder, None).unwrap();
        let _attach = UnixListener::bind(folder.join("attach-4026-80.sock")).unwrap();
        let folders = [folder];
        assert!(choose(&Target::Any, &folders).is_ok());
        assert!(choose(&Target::Process(std::process::id()), &folders).is_ok());
    }
}
