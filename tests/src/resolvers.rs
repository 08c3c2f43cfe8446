//! Resolvers as Debian has them, which ask a name server of a test for all names of one zone, and keep no answer.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use afpa_netlab::Namespace;
use afpa_testkit::Running;

/// A resolver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolver {
    /// Unbound, which mixes capitals into names.
    Unbound,
    /// dnsmasq.
    Dnsmasq,
    /// systemd-resolved, without the systemd around it.
    Resolved,
}

/// Puts what systemd's own unit and package give it into a mount namespace of its own: a user, a folder, the configuration.
const RESOLVED: &str = r#"
set -e
mount -t tmpfs none /run
mkdir -p /run/systemd/resolve
for file in passwd group; do cp "/etc/$file" "/run/$file"; done
grep -q ^systemd-resolve: /run/passwd || echo systemd-resolve:x:64999:64999::/:/usr/sbin/nologin >>/run/passwd
grep -q ^systemd-resolve: /run/group || echo systemd-resolve:x:64999: >>/run/group
for file in passwd group; do mount --bind "/run/$file" "/etc/$file"; done
chown systemd-resolve: /run/systemd/resolve
mount --bind "$1" /etc/systemd
exec "$2"
"#;

impl Resolver {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Unbound, Self::Dnsmasq, Self::Resolved];

    /// Listens at `at`, and asks `server` for the names of this zone; inside of a namespace, if one is given. Its files are in the
    /// folder. An error is a reason to skip the test.
    ///
    /// # Errors
    /// When the program is missing.
    pub fn start(
        self,
        inside: Option<&Namespace>,
        folder: &Path,
        (at, server): (SocketAddr, SocketAddr),
        zone: &str,
    ) -> Result<Running, String> {
        let mut words = self.words(folder, (at, server), zone)?;
        if let Some(namespace) = inside {
            let enter = format!("--net=/run/netns/{}", namespace.name());
            words.splice(..0, ["nsenter".into(), enter]);
        }
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null());
        Ok(Running::start(command.stderr(Stdio::null())))
    }

    fn program(self) -> Result<PathBuf, String> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let more = ["/usr/sbin", "/usr/lib/systemd"].map(PathBuf::from);
        let name = match self {
            Self::Unbound => "unbound",
            Self::Dnsmasq => "dnsmasq",
            Self::Resolved => "systemd-resolved",
        };
        let mut places = std::env::split_paths(&path).chain(more).map(|folder| folder.join(name));
        places.find(|place| place.is_file()).ok_or_else(|| format!("{name} is not installed"))
    }

    fn words(
        self,
        folder: &Path,
        (at, server): (SocketAddr, SocketAddr),
        zone: &str,
    ) -> Result<Vec<String>, String> {
        let program = self.program()?.display().to_string();
        let (ip, port) = (at.ip(), at.port());
        let (to, to_port) = (server.ip(), server.port());
        let write = |name: &str, text: String| {
            let file = folder.join(name);
            fs::write(&file, text).expect("written");
            file.display().to_string()
        };
        Ok(match self {
            Self::Unbound => {
                let text = format!(
                    "server:\n interface: {ip}\n port: {port}\n do-daemonize: no\n chroot: \"\"\n username: \"\"\n pidfile: \"\"\n\
                     directory: \"{}\"\n do-not-query-localhost: no\n module-config: \"iterator\"\n use-syslog: no\n\
                     use-caps-for-id: yes\n cache-max-ttl: 0\n cache-max-negative-ttl: 0\n local-zone: \"test.\" nodefault\n\
                     remote-control:\n control-enable: no\nstub-zone:\n name: \"{zone}\"\n stub-addr: {to}@{to_port}\n",
                    folder.display()
                );
                vec![program, "-c".into(), write("unbound.conf", text)]
            }
            Self::Dnsmasq => [
                program.as_str(),
                "--no-daemon",
                "--conf-file=/dev/null",
                "--no-resolv",
                "--no-hosts",
                "--bind-interfaces",
                "--cache-size=0",
                "--pid-file=",
                "--user=root",
                &format!("--listen-address={ip}"),
                &format!("--port={port}"),
                &format!("--server=/{zone}/{to}#{to_port}"),
            ]
            .map(str::to_owned)
            .into(),
            Self::Resolved => {
                let settings = folder.join("systemd");
                fs::create_dir_all(&settings).expect("a folder");
                // It has given up root's rights when it reads its configuration again.
                for readable in [folder, &settings] {
                    let rights = fs::Permissions::from_mode(0o755);
                    fs::set_permissions(readable, rights).expect("rights");
                }
                let text = format!(
                    "[Resolve]\nDNS={to}:{to_port}\nDomains=~.\nDNSSEC=no\nLLMNR=no\nMulticastDNS=no\nCache=no\nReadEtcHosts=no\n\
                     DNSStubListener=no\nDNSStubListenerExtra={ip}:{port}\n"
                );
                write("systemd/resolved.conf", text);
                let settings = settings.display().to_string();
                ["unshare", "--mount", "sh", "-c", RESOLVED, "sh", &settings, &program]
                    .map(str::to_owned)
                    .into()
            }
        })
    }
}
