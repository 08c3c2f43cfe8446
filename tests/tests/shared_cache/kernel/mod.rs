//! Kept answers from the kernel: the same as user mode's, no longer than user mode would give them, and none after a purge.

mod lifetimes;
mod purges;
mod requests;

use std::fs;
use std::net::{SocketAddr, UdpSocket};

use afpa_netlab::Bed;
use afpa_testkit::{Client, Endpoint, Server, Tree, eventually};

use rustix::process::Signal;

use crate::lab::{FIREWALL_INTERVAL, Lab, PORT, SELF_CHECK, answers, stats};
use crate::origin::{Asked, Origin, Reply};

/// A proxy in the server's namespace whose kernel answers, before a server on the client's side.
pub(crate) struct Kernel {
    pub(crate) origin: Origin,
    pub(crate) proxy: Server,
    /// Where user mode alone answers for the same site.
    user: Endpoint,
    // Behind the server.
    _lab: Lab,
}

impl Kernel {
    /// `cache`: the lines of `[site.cache]`. `None`: SKIP was said.
    pub(crate) fn before(
        cache: &str,
        reply: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> Option<Self> {
        Self::of("", cache, reply)
    }

    /// With these lines of `[fast_path]`, too.
    pub(crate) fn of(
        fast_path: &str,
        cache: &str,
        reply: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> Option<Self> {
        let lab = Lab::new()?;
        let origin = Origin::start_at(own_address(), reply);
        let (to, mut user) = (origin.to(), None);
        let proxy = lab.server(&Tree::new(), |launch| {
            let socket = Endpoint::Unix(launch.home().join("http.sock"));
            launch.written(|listen| written(fast_path, &[listen, &socket], &to, cache));
            user = Some(socket);
        });
        Some(Self { origin, proxy, user: user.expect("it was launched"), _lab: lab })
    }

    /// A connection on which user mode alone answers.
    pub(crate) fn user(&self) -> Client {
        Client::connect(&self.user).expect("a connection")
    }

    /// Requests that the kernel has answered with kept answers.
    pub(crate) fn hits(&self) -> u64 {
        stats(&self.proxy)["shared_cache"]["hits_in_kernel"].as_u64().expect("a count")
    }

    /// Asks until the kernel answers this request.
    #[track_caller]
    pub(crate) fn warm(&self, request: &str) {
        eventually(&format!("the kernel answers {request:?}"), || {
            let before = self.hits();
            self.proxy.connect().exchange(request);
            self.hits() > before
        });
    }

    /// Whether the kernel answers this request, on a connection of its own.
    #[track_caller]
    pub(crate) fn answers(&self, request: &str) -> bool {
        let before = (self.hits(), answers(&self.proxy));
        self.proxy.connect().exchange(request);
        let after = (self.hits(), answers(&self.proxy));
        assert_eq!(after.0 - before.0, after.1 - before.1, "nothing else is in the kernel");
        after.0 > before.0
    }

    /// Has the same site served with other lines of `[site.cache]`.
    #[track_caller]
    pub(crate) fn reload(&self, cache: &str) {
        let before = self.proxy.log().matches("reloaded").count();
        let listen = Endpoint::Tcp(SocketAddr::new(Bed::SERVER_V4.into(), PORT));
        let text = written("", &[&listen, &self.user], &self.origin.to(), cache);
        let new = self.proxy.home().join("new.toml");
        fs::write(&new, text).expect("written");
        fs::rename(new, self.proxy.configuration()).expect("renamed");
        self.proxy.signal(Signal::HUP);
        eventually("it is read", || self.proxy.log().matches("reloaded").count() > before);
    }
}

pub(crate) fn get(target: &str, fields: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: test\r\n{fields}\r\n")
}

fn written(fast_path: &str, listen: &[&Endpoint], to: &str, cache: &str) -> String {
    let listen: Vec<String> = listen.iter().map(|endpoint| format!("\"{endpoint}\"")).collect();
    let listen = listen.join(", ");
    format!(
        "[internals]\nfirewall_interval = {FIREWALL_INTERVAL}\nself_check = {SELF_CHECK}\n[fast_path]\n{fast_path}\n[limits]\n\
         connections_per_client = 20000\n\n[shared_cache]\nlimit = \"64MiB\"\n\n[[site]]\n\
         listen = [{listen}]\nto = \"{to}\"\ncompress = true\n\n[site.cache]\n{cache}\n"
    )
}

/// An address of this side that the other one reaches.
fn own_address() -> SocketAddr {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    socket.connect((Bed::SERVER_V4, PORT)).expect("a route");
    SocketAddr::new(socket.local_addr().expect("an address").ip(), 0)
}
