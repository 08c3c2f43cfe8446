//! Peers that serve files themselves, each tuned as its documentation advises. The configurations in
//! `lab/servers/` have the settings and the reasons.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::installed::Origin;
use super::running::Launch;
use super::{Running, Server, ServerSetup, template};

/// nginx of this Debian and of Debian 13, h2o, Apache in two forms, lighttpd, Caddy.
pub(super) fn peers() -> Vec<Box<dyn Server>> {
    let peers = [NGINX, NGINX_DEBIAN13, H2O, PREFORK, EVENT, LIGHTTPD, CADDY];
    peers.into_iter().map(|peer| Box::new(peer) as Box<dyn Server>).collect()
}

/// nginx, for the servers that put something before it.
pub(super) const NGINX: Peer = Peer {
    name: "nginx",
    about: "nginx: one process, epoll, sendfile, open_file_cache",
    program: "nginx",
    package: "nginx",
    version: "-v",
    file: "nginx.conf",
    text: include_str!("../../../servers/nginx.conf"),
    launch: |launch, setup, file| nginx(launch, setup.folder, file),
    origin: Origin::Here,
};

const NGINX_DEBIAN13: Peer = Peer {
    name: "nginx-debian13",
    about: "Debian 13's nginx, configured like the other",
    origin: Origin::Debian13,
    ..NGINX
};

const H2O: Peer = Peer {
    name: "h2o",
    about: "h2o: one thread, its own event loop and cache of open files",
    program: "h2o",
    package: "h2o",
    version: "-v",
    file: "h2o.conf",
    text: include_str!("../../../servers/h2o.conf"),
    launch: |launch, _, file| launch.args(["-m", "worker", "-c"]).arg(file),
    origin: Origin::Here,
};

const PREFORK: Peer = Peer {
    name: "apache-prefork",
    about: "Apache, prefork: a process for each connection",
    program: "apache2",
    package: "apache2-bin",
    version: "-v",
    file: "apache-prefork.conf",
    text: include_str!("../../../servers/apache-prefork.conf"),
    launch: apache,
    origin: Origin::Here,
};

const EVENT: Peer = Peer {
    name: "apache-event",
    about: "Apache, event: threads for requests, a listener for idle connections",
    program: "apache2",
    package: "apache2-bin",
    version: "-v",
    file: "apache-event.conf",
    text: include_str!("../../../servers/apache-event.conf"),
    launch: apache,
    origin: Origin::Here,
};

const LIGHTTPD: Peer = Peer {
    name: "lighttpd",
    about: "lighttpd: one process, epoll, sendfile, a cache of file states",
    program: "lighttpd",
    package: "lighttpd",
    version: "-v",
    file: "lighttpd.conf",
    text: include_str!("../../../servers/lighttpd.conf"),
    launch: |launch, _, file| launch.arg("-D").arg("-f").arg(file),
    origin: Origin::Here,
};

const CADDY: Peer = Peer {
    name: "caddy",
    about: "Caddy: Go's net/http and its scheduler, sendfile",
    program: "caddy",
    package: "caddy",
    version: "version",
    file: "Caddyfile",
    text: include_str!("../../../servers/Caddyfile"),
    launch: caddy,
    origin: Origin::Here,
};

/// A server that has one program and one configuration.
pub(super) struct Peer {
    name: &'static str,
    about: &'static str,
    program: &'static str,
    package: &'static str,
    /// The argument that makes it tell its version.
    version: &'static str,
    /// The configuration's file name, and its template.
    file: &'static str,
    text: &'static str,
    /// Adds the arguments, among them the configuration.
    launch: fn(Launch, &ServerSetup<'_>, &Path) -> Launch,
    origin: Origin,
}

impl Server for Peer {
    fn name(&self) -> &str {
        self.name
    }

    fn about(&self) -> &str {
        self.about
    }

    fn lacks(&self) -> Option<String> {
        self.origin.lacks(self.program, self.package)
    }

    fn version(&self) -> String {
        self.origin.version(self.program, self.version)
    }

    fn start<'a>(&self, setup: &ServerSetup<'a>) -> Result<Running<'a>> {
        let launch = Launch::of(self.origin, self.program)?;
        if self.program == "apache2" {
            readable_by_everybody(setup.root)?;
        }
        let file = template::write(setup, self.file, &self.origin.configuration(self.text))?;
        let launch = (self.launch)(launch, setup, &file);
        Running::nothing(setup).with_configuration(file).and(setup, launch, setup.address)
    }
}

/// nginx's arguments: where it works, and its configuration.
pub(super) fn nginx(launch: Launch, folder: &Path, file: &Path) -> Launch {
    launch.arg("-p").arg(folder).arg("-c").arg(file).arg("-e").arg(folder.join("errors.txt"))
}

/// Caddy's arguments.
pub(super) fn caddy(launch: Launch, setup: &ServerSetup<'_>, file: &Path) -> Launch {
    let launch = launch.args(["run", "--adapter", "caddyfile", "--config"]).arg(file);
    // By default Caddy would write into root's home.
    launch.env("XDG_CONFIG_HOME", setup.folder).env("XDG_DATA_HOME", setup.folder)
}

fn apache(launch: Launch, _: &ServerSetup<'_>, file: &Path) -> Launch {
    launch.args(["-D", "FOREGROUND", "-f"]).arg(file)
}

/// Apache serves as another user. This check gives a clearer error than a thousand answers of 403.
fn readable_by_everybody(root: &Path) -> Result<()> {
    for folder in root.ancestors() {
        let about = || format!("cannot look at {}", folder.display());
        let mode = fs::metadata(folder).with_context(about)?.permissions().mode();
        ensure!(mode & 0o001 != 0, "{} is closed to Apache's user", folder.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_folder_on_the_way_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("closed/www");
        fs::create_dir_all(&root).expect("made");
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
        };
        mode(folder.path(), 0o755);
        mode(&folder.path().join("closed"), 0o700);
        let error = readable_by_everybody(&root).expect_err("it is closed").to_string();
        assert!(error.contains("closed is closed"), "{error}");
        mode(&folder.path().join("closed"), 0o711);
        readable_by_everybody(&root).expect("it is open");
    }
}
