//! Notifications of the service manager (sd_notify(3)): datagrams to the socket that `NOTIFY_SOCKET`
//! names. Without one every call does nothing.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The way to the service manager, if there is one.
#[derive(Debug, Default)]
pub struct Notifier {
    manager: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
}

impl Notifier {
    /// As the environment says.
    ///
    /// # Errors
    /// When the socket in `NOTIFY_SOCKET` cannot be used. AFPA can go on without it: log a warning, and use
    /// [`Notifier::default`].
    pub fn from_environment() -> io::Result<Self> {
        let variable = |name| std::env::var_os(name);
        let Some(socket) = variable("NOTIFY_SOCKET") else { return Ok(Notifier::default()) };
        let watchdog = watchdog_interval(
            variable("WATCHDOG_USEC").as_deref(),
            variable("WATCHDOG_PID").as_deref(),
            std::process::id(),
        );
        Ok(Notifier { watchdog, ..Notifier::to(&socket)? })
    }

    /// Everything is bound and set up.
    pub fn ready(&self) {
        self.send("READY=1\nSTATUS=Serving\n");
    }

    /// Another process serves from now on. Must be sent by the process that the manager knows.
    pub fn main_process(&self, pid: u32) {
        self.send(&format!("MAINPID={pid}\n"));
    }

    /// A reload begins. [`ready`](Self::ready) ends it, whether it succeeded or not.
    pub fn reloading(&self) {
        // systemd.service(5), Type=notify-reload: the time tells this reload from an earlier one.
        let now = clock_gettime(ClockId::Monotonic);
        let microseconds = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={microseconds}\n"));
    }

    /// The end has begun.
    pub fn stopping(&self) {
        self.send("STOPPING=1\nSTATUS=Stopping\n");
    }

    /// A line for `systemctl status`.
    pub fn status(&self, status: &str) {
        self.send(&format!("STATUS={}\n", status.replace('\n', " ")));
    }

    /// How often [`watchdog`](Self::watchdog) is to be called; `None`: not at all.
    pub fn watchdog_interval(&self) -> Option<Duration> {
        self.watchdog
    }

    /// Still alive.
    pub fn watchdog(&self) {
        self.send("WATCHDOG=1\n");
    }

    fn to(socket: &OsStr) -> io::Result<Self> {
        let address = match socket.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            _ => SocketAddr::from_pathname(socket)?,
        };
        let sender = UnixDatagram::unbound()?;
        // A service manager that does not read must not stop us.
        sender.set_nonblocking(true)?;
        Ok(Notifier { manager: Some((sender, address)), watchdog: None })
    }

    fn send(&self, message: &str) {
        let Some((sender, address)) = &self.manager else { return };
        if let Err(error) = sender.send_to_addr(message.as_bytes(), address) {
            tracing::debug!(%error, "cannot tell the service manager");
        }
    }
}

/// Half of the manager's watchdog time, if it watches this process (sd_watchdog_enabled(3)).
fn watchdog_interval(limit: Option<&OsStr>, pid: Option<&OsStr>, me: u32) -> Option<Duration> {
    let number = |text: &OsStr| text.to_str()?.parse::<u64>().ok();
    let microseconds = number(limit?).filter(|limit| *limit > 1)?;
    let watched = pid.is_none_or(|pid| number(pid) == Some(u64::from(me)));
    watched.then(|| Duration::from_micros(microseconds / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(manager: &UnixDatagram) -> String {
        manager.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut buffer = [0; 256];
        let length = manager.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }

    #[test]
    fn a_manager_hears_each_state() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        let notifier = Notifier::to(path.as_os_str()).unwrap();
        notifier.ready();
        assert_eq!(heard(&manager), "READY=1\nSTATUS=Serving\n");
        notifier.stopping();
        assert_eq!(heard(&manager), "STOPPING=1\nSTATUS=Stopping\n");
        notifier.watchdog();
        assert_eq!(heard(&manager), "WATCHDOG=1\n");
        notifier.main_process(7);
        assert_eq!(heard(&manager), "MAINPID=7\n");
        notifier.status("two\nlines");
        assert_eq!(heard(&manager), "STATUS=two lines\n");
    }

    #[test]
    fn a_reload_carries_the_time() {
        let name = format!("afpa-notify-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let manager = UnixDatagram::bind_addr(&address).unwrap();
        let notifier = Notifier::to(OsStr::new(&format!("@{name}"))).unwrap();
        notifier.reloading();
        let message = heard(&manager);
        let time = message.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap().trim();
        assert!(time.parse::<u64>().unwrap() > 0, "{message}");
    }

    #[test]
    fn nobody_to_tell_is_no_trouble() {
        Notifier::default().ready();
        let gone = Notifier::to(OsStr::new("/nowhere/notify")).unwrap();
        gone.ready();
    }

    #[test]
    fn the_watchdog_is_ours_only_with_our_number() {
        let text = |text: &'static str| Some(OsStr::new(text));
        assert_eq!(watchdog_interval(text("3000000"), None, 7), Some(Duration::from_millis(1500)));
        assert_eq!(watchdog_interval(text("2"), text("7"), 7), Some(Duration::from_micros(1)));
        assert_eq!(watchdog_interval(text("2"), text("8"), 7), None);
        assert_eq!(watchdog_interval(text("0"), None, 7), None);
        assert_eq!(watchdog_interval(text("x"), None, 7), None);
        assert_eq!(watchdog_interval(None, None, 7), None);
    }
}
