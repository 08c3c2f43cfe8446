//! Debian's PHP-FPM, with a pool of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use afpa_testkit::server::free_address;
use afpa_testkit::{Running, eventually};
use rustix::process::{Pid, Signal, kill_process};

/// A PHP-FPM. Ended when dropped, with its processes.
#[derive(Debug)]
pub struct PhpFpm {
    child: Running,
    to: String,
    folder: tempfile::TempDir,
}

impl PhpFpm {
    /// A PHP-FPM with so many processes, on a unix socket or over TCP, whose pool has these further settings.
    ///
    /// # Errors
    /// When it is not installed: a reason to skip the test.
    pub fn start(by_unix: bool, processes: usize, settings: &str) -> Result<Self, String> {
        let program = program().ok_or("php-fpm is not installed")?;
        let folder = tempfile::Builder::new().prefix("afpa-php").tempdir().expect("a folder");
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(folder.path(), open).expect("open to all");
        let socket = folder.path().join("fpm.sock");
        let (listen, to) = match by_unix {
            true => (socket.display().to_string(), format!("unix:{}", socket.display())),
            false => {
                let address = free_address();
                (address.to_string(), address.to_string())
            }
        };
        let path = folder.path().display();
        let text = format!(
            "[global]\nerror_log = {path}/fpm.log\ndaemonize = no\nprocess_control_timeout = 10s\n\
             [www]\nuser = root\ngroup = root\nlisten = {listen}\nlisten.mode = 0666\npm = static\n\
             pm.max_children = {processes}\nping.path = /ping\n\
             php_admin_value[session.save_path] = {path}\nphp_admin_value[upload_tmp_dir] = {path}\n\
             {settings}\n"
        );
        let file = folder.path().join("fpm.conf");
        fs::write(&file, text).expect("a configuration");
        let mut command = Command::new(program);
        command.args(["-R", "-F", "-n", "-y"]).arg(&file);
        let child = Running::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
        let fpm = Self { child, to, folder };
        eventually("PHP-FPM is ready", || fpm.log().contains("ready to handle connections"));
        Ok(fpm)
    }

    /// Its address, for `php`.
    pub fn to(&self) -> &str {
        &self.to
    }

    /// Has it start its processes anew, as `systemctl reload` does.
    pub fn reload(&self) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("an id")).expect("an id");
        kill_process(pid, Signal::USR2).expect("it is there");
    }

    /// The lines of its log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("fpm.log")).unwrap_or_default()
    }
}

impl Drop for PhpFpm {
    fn drop(&mut self) {
        // Its processes end with it only after a signal that it can catch.
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::INT);
            eventually("PHP-FPM has ended", || !self.child.is_alive());
        }
    }
}

/// The program, whatever its version.
fn program() -> Option<PathBuf> {
    let entries = fs::read_dir(Path::new("/usr/sbin")).ok()?;
    let mut found = entries.filter_map(|entry| Some(entry.ok()?.path()));
    found.find(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("php-fpm")
    })
}
