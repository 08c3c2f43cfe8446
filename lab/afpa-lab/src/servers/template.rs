//! Configurations: templates in `lab/servers/`, with `@name@` for what a run decides.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use super::ServerSetup;

/// Fills `text` in and writes it as `name` into the server's folder.
///
/// # Errors
/// When a name is left without a value, or the file cannot be written.
pub(super) fn write(setup: &ServerSetup<'_>, name: &str, text: &str) -> Result<PathBuf> {
    let text = if is_root() { text.to_owned() } else { without_user(text) };
    let filled = fill(&text, &values(setup));
    let left = filled.lines().filter(|line| !line.trim_start().starts_with('#'));
    let left: Vec<&str> = left.filter(|line| line.matches('@').count() > 1).collect();
    ensure!(left.is_empty(), "{name}: nobody fills in {left:?}");
    let path = setup.folder.join(name);
    fs::write(&path, filled).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// Whether servers are started as root.
pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Only root can change its user; h2o fails when another user names even itself.
fn without_user(text: &str) -> String {
    text.split_inclusive('\n').filter(|line| !line.starts_with("user")).collect()
}

/// Fills in the addresses of the servers behind a proxy: `@server0@` and so on.
pub(super) fn with_backends(text: &str, backends: &[SocketAddr]) -> String {
    let numbered = backends.iter().enumerate();
    numbered.fold(text.to_owned(), |text, (number, backend)| {
        text.replace(&format!("@server{number}@"), &backend.to_string())
    })
}

/// Where the origin of a cache listens: reached from the server's namespace only.
pub(super) fn origin(setup: &ServerSetup<'_>) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), setup.address.port().wrapping_add(1))
}

/// Processes or threads of a server that has one for each connection.
pub(super) fn workers(setup: &ServerSetup<'_>) -> u32 {
    setup.connections.saturating_add(SPARE)
}

/// Processes beyond the number of connections: a closed connection keeps its process until that has noticed.
const SPARE: u32 = 16;

fn values(setup: &ServerSetup<'_>) -> Vec<(&'static str, String)> {
    let (ip, origin) = (setup.address.ip(), origin(setup));
    let (user, group) = unprivileged();
    vec![
        ("address", setup.address.to_string()),
        ("ip", if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() }),
        ("port", setup.address.port().to_string()),
        ("root", setup.root.display().to_string()),
        ("folder", setup.folder.display().to_string()),
        ("connections", workers(setup).to_string()),
        ("most", setup.connections.saturating_add(1000).to_string()),
        ("origin", origin.to_string()),
        ("origin_ip", origin.ip().to_string()),
        ("origin_port", origin.port().to_string()),
        ("self", "root".to_owned()),
        ("user", user.to_owned()),
        ("group", group.to_owned()),
        ("modules", APACHE_MODULES.to_owned()),
    ]
}

/// Where Debian has Apache's modules.
pub(super) const APACHE_MODULES: &str = "/usr/lib/apache2/modules";

/// For a server that refuses to serve as root: Debian's user for web servers, else nobody.
fn unprivileged() -> (&'static str, &'static str) {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    match users.lines().any(|line| line.starts_with("www-data:")) {
        true => ("www-data", "www-data"),
        false => ("nobody", "nogroup"),
    }
}

/// Braces, dollars and percent signs all mean something in one of these languages; `@` does not.
fn fill(template: &str, values: &[(&str, String)]) -> String {
    values
        .iter()
        .fold(template.to_owned(), |text, (name, value)| text.replace(&format!("@{name}@"), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_names_a_user() {
        let texts = [
            include_str!("../../../servers/nginx.conf"),
            include_str!("../../../servers/h2o.conf"),
        ];
        for text in texts {
            assert!(text.contains("@self@"));
            assert!(!without_user(text).contains("@self@"));
        }
    }

    #[test]
    fn names_are_replaced_wherever_they_stand() {
        let values = [("port", "80".to_owned()), ("root", "/srv".to_owned())];
        assert_eq!(fill("@root@:@port@ @root@ @other@", &values), "/srv:80 /srv @other@");
    }
}
