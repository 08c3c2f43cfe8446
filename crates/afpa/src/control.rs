//! Control of a running afpa: where its control socket is, and requests to it.
//!
//! The socket is called `PID.sock` and lies in a folder that only its user can write to. It speaks
//! HTTP/1.1; an answer is a `Content-Length` body.

mod client;

use std::fmt;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use nix::unistd::{Uid, geteuid};

pub use client::Socket;

/// Which afpa is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The only one that is running for this user.
    Any,
    /// The one with this process id.
    Process(u32),
    /// The one behind this socket.
    Socket(PathBuf),
}

/// Where the control socket of this process goes by default.
///
/// `PID.sock` in the folder that the service manager made for us (`RUNTIME_DIRECTORY`); else in
/// `/run/afpa` for root, in `$XDG_RUNTIME_DIR/afpa` for others, and in `/tmp/afpa-UID` where there is
/// no such directory.
pub fn default_path() -> PathBuf {
    own_folder().join(format!("{}.sock", std::process::id()))
}

/// Creates the folder of the default control socket, for this user alone to write to.
///
/// `owner` is the user that afpa will become, so that it can remove its socket when it ends; call
/// this before privileges are dropped.
///
/// # Errors
/// When the folder cannot be created, or belongs to another user, who could then replace the socket.
pub fn prepare_folder(owner: Option<Uid>) -> anyhow::Result<()> {
    prepare(&own_folder(), owner)
}

/// Finds a running afpa: one of this user, or one of the system in `/run/afpa`. Removes stale sockets.
///
/// # Errors
/// When none is running, or several are and `target` does not say which.
pub fn find(target: &Target) -> anyhow::Result<Socket> {
    let mut folders = vec![own_folder(), PathBuf::from(SYSTEM_FOLDER)];
    folders.dedup();
    choose(target, &folders)
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

/// Where root's sockets are, and those of an afpa that the service manager runs.
const SYSTEM_FOLDER: &str = "/run/afpa";

/// An afpa that listens.
struct Running {
    pid: u32,
    socket: PathBuf,
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

fn prepare(folder: &Path, owner: Option<Uid>) -> anyhow::Result<()> {
    let shown = folder.display();
    match DirBuilder::new().mode(0o755).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(error).with_context(|| format!("cannot create {shown}"));
        }
        _ => {}
    }
    // Does not follow a symbolic link that another user may have created.
    let found = fs::symlink_metadata(folder).with_context(|| format!("cannot use {shown}"))?;
    // Root's folder may have been given to the user that an earlier afpa became.
    let ours = geteuid().is_root() || found.uid() == geteuid().as_raw();
    if !found.is_dir() || !ours || found.mode() & 0o022 != 0 {
        bail!(
            "{shown} belongs to or can be written by somebody else: remove it, or set [control] path"
        );
    }
    match owner {
        Some(owner) if owner.as_raw() != found.uid() => chown(folder, Some(owner.as_raw()), None)
            .with_context(|| format!("cannot give {shown} to user {owner}")),
        _ => Ok(()),
    }
}

fn choose(target: &Target, folders: &[PathBuf]) -> anyhow::Result<Socket> {
    if let Target::Socket(path) = target {
        return Ok(Socket::new(path));
    }
    let mut running = running(folders);
    if let Target::Process(pid) = target {
        let list = list(&running);
        running.retain(|running| running.pid == *pid);
        if running.is_empty() {
            bail!("no afpa with process id {pid} is running for this user{list}");
        }
    }
    match running.as_slice() {
        [running] => Ok(Socket::new(&running.socket)),
        [] => bail!("no afpa is running for this user; start one with: afpa serve DIR"),
        several => bail!("several afpa are running: say which with --pid{}", list(several)),
    }
}

/// A line for each, with the command that started it.
fn list(running: &[Running]) -> String {
    let lines = running.iter().map(|running| {
        let line = fs::read(format!("/proc/{}/cmdline", running.pid)).unwrap_or_default();
        let words: Vec<_> = line
            .split(|byte| *byte == 0)
            .filter(|word| !word.is_empty())
            .map(|word| String::from_utf8_lossy(word).escape_debug().to_string())
            .collect();
        format!("\n  --pid {}  {}", running.pid, words.join(" "))
    });
    lines.collect()
}

/// All that accept connections, smallest process id first.
fn running(folders: &[PathBuf]) -> Vec<Running> {
    let mut running: Vec<Running> = folders.iter().flat_map(|folder| sockets(folder)).collect();
    running.retain(|running| match UnixStream::connect(&running.socket) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            // Its process ended without cleaning up. A failure to remove it changes nothing.
            let _ = fs::remove_file(&running.socket);
            false
        }
        Err(error) => error.kind() != io::ErrorKind::NotFound,
        Ok(_) => true,
    });
    running.sort_by_key(|running| running.pid);
    running
}

fn sockets(folder: &Path) -> Vec<Running> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    paths.filter_map(|socket| Some(Running { pid: pid_of(&socket)?, socket })).collect()
}

fn pid_of(socket: &Path) -> Option<u32> {
    socket.file_name()?.to_str()?.strip_suffix(".sock")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
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
        let expected = "no afpa is running for this user; start one with: afpa serve DIR";
        assert_eq!(refused(&Target::Any, &folder), expected);
    }

    #[test]
    fn one_is_found_and_stale_ones_are_removed() {
        let (_temporary, folder) = folder();
        prepare(&folder, None).unwrap();
        let stale = folder.join("7.sock");
        drop(UnixListener::bind(&stale).unwrap());
        fs::write(folder.join("notes"), "").unwrap();
        let _live = UnixListener::bind(folder.join("42.sock")).unwrap();
        let folders = [folder.clone()];
        assert!(choose(&Target::Any, &folders).is_ok());
        assert!(!stale.exists());
        assert!(choose(&Target::Process(42), &folders).is_ok());
        let error = refused(&Target::Process(7), &folder);
        let expected = "no afpa with process id 7 is running for this user\n  --pid 42  ";
        assert!(error.starts_with(expected), "{error}");
    }

    #[test]
    fn several_are_listed() {
        let (_temporary, folder) = folder();
        prepare(&folder, None).unwrap();
        let me = std::process::id();
        let _first = UnixListener::bind(folder.join("1.sock")).unwrap();
        let _second = UnixListener::bind(folder.join(format!("{me}.sock"))).unwrap();
        let error = refused(&Target::Any, &folder);
        assert!(error.starts_with("several afpa are running: say which with --pid\n"), "{error}");
        assert!(error.contains(&format!("--pid {me}  ")), "{error}");
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_refused() {
        let (_temporary, folder) = folder();
        prepare(&folder, None).unwrap();
        prepare(&folder, None).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        let error = prepare(&folder, None).unwrap_err().to_string();
        assert!(error.contains("can be written by somebody else"), "{error}");
    }

    #[test]
    fn a_link_in_the_place_of_the_folder_is_refused() {
        let (temporary, folder) = folder();
        std::os::unix::fs::symlink(temporary.path(), &folder).unwrap();
        assert!(prepare(&folder, None).is_err());
    }
}
