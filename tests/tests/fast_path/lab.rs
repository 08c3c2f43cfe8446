//! A bed with a server on one side; the test itself is on the other.

use std::net::{IpAddr, SocketAddr};
use std::sync::OnceLock;

use afpa_netlab::{Bed, BedOptions};
use afpa_testkit::{Client, Endpoint, Launch, Server, bpf_fs, eventually};
use serde_json::Value;

/// Port of the server whose kernel answers; the next one is for a server without.
pub(crate) const PORT: u16 = 8080;

/// Tests ask slowly: that clients pass once a second is not what they count.
pub(crate) const FIREWALL_INTERVAL: &str = "\"1h\"";
/// They count requests and read the log: one in 4096 answers that is asked again has a place of its own in both.
pub(crate) const SELF_CHECK: u32 = 0;

pub(crate) struct Lab {
    bed: Bed,
}

impl Lab {
    /// Moves the calling thread to the client's side for good. `None`, said aloud, where it cannot be.
    pub(crate) fn new() -> Option<Self> {
        if let Some(reason) = afpa_netlab::missing_privilege() {
            afpa_testkit::aloud::say("SKIP", &reason);
            return None;
        }
        // Tests that need a BPF file system look for the maps and links that are kept in it.
        if let Err(reason) = bpf_fs::private() {
            afpa_testkit::aloud::say("SKIP", &format!("no BPF file system of our own: {reason}"));
        }
        if let Some(unavailable) = unavailable() {
            afpa_testkit::aloud::say("SKIP", unavailable);
            return None;
        }
        let bed = Bed::create(&BedOptions::default()).expect("a bed");
        bed.client().enter().expect("the client's side");
        Some(Self { bed })
    }

    /// Name of the server's namespace.
    pub(crate) fn namespace(&self) -> &str {
        self.bed.server().name()
    }

    /// The two sides.
    pub(crate) fn bed(&self) -> &Bed {
        &self.bed
    }

    /// Starts a server that insists on the fast path, on a wildcard of both families.
    #[track_caller]
    pub(crate) fn server(
        &self,
        tree: &afpa_testkit::Tree,
        configure: impl FnOnce(&mut Launch),
    ) -> Server {
        self.server_on(PORT, tree, |launch| {
            launch.fast_path("on");
            configure(launch);
        })
    }

    #[track_caller]
    pub(crate) fn server_on(
        &self,
        port: u16,
        tree: &afpa_testkit::Tree,
        configure: impl FnOnce(&mut Launch),
    ) -> Server {
        let server = Server::start(tree.path(), |launch| {
            let address = SocketAddr::new(IpAddr::V4(Bed::SERVER_V4), port);
            launch.inside(self.namespace(), Endpoint::Tcp(address));
            launch.set(|settings| {
                settings.set("internals.firewall_interval", FIREWALL_INTERVAL);
                settings.set("internals.self_check", SELF_CHECK);
            });
            configure(launch);
        });
        // It listens a moment before it says so.
        eventually("it introduces itself", || server.log().contains("  control "));
        server
    }

    /// Runs on a thread of the server's side.
    pub(crate) fn on_the_server<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.bed.server().run(work).expect("the server's side")
    }

    /// Programs on the server's interfaces: two on each for every fast path.
    pub(crate) fn attached(&self) -> u32 {
        self.on_the_server(|| {
            // A kernel with modules of tunnels makes their devices in each namespace, before ours.
            ["lo", Bed::DEVICE]
                .map(|name| nix::net::if_::if_nametoindex(name).expect("an interface"))
                .map(|index| afpa_bpf::Interfaces::programs_on(index).expect("asked"))
                .iter()
                .sum()
        })
    }
}

/// Why there can be no fast path here. Asked once: loading takes half a second of a core.
fn unavailable() -> Option<&'static str> {
    static REASON: OnceLock<Option<String>> = OnceLock::new();
    let reason = REASON.get_or_init(|| {
        let settings = afpa_bpf::Settings { objects: 16, flows: 16, ..Default::default() };
        afpa_bpf::FastPath::load(settings).err().map(|unavailable| unavailable.to_string())
    });
    reason.as_deref()
}

/// The statistics of a server.
pub(crate) fn stats(server: &Server) -> Value {
    let output = server.command(&["stats", "--json"]);
    serde_json::from_slice(&output.stdout).expect("statistics are JSON")
}

/// Requests the kernel has answered for a server.
pub(crate) fn answers(server: &Server) -> u64 {
    stats(server)["fast_path"]["answers"].as_u64().expect("a count")
}

/// Gets `target` until the kernel answers: from the second time on, as a rule.
#[track_caller]
pub(crate) fn warm(server: &Server, target: &str) {
    warm_with(server, target, "Host: test\r\n");
}

#[track_caller]
pub(crate) fn warm_with(server: &Server, target: &str, lines: &str) {
    eventually(&format!("the kernel answers {target}"), || {
        let before = answers(server);
        server.connect().exchange(format!("GET {target} HTTP/1.1\r\n{lines}\r\n"));
        answers(server) > before
    });
}

/// Whether the kernel answers a request on this connection.
#[track_caller]
pub(crate) fn is_from_kernel(server: &Server, client: &mut Client, target: &str) -> bool {
    let before = answers(server);
    assert_eq!(client.get(target).status, 200);
    answers(server) > before
}
