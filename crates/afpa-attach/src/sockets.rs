//! The listening sockets of the server: the kernel answers on their connections, and on no others.

use std::net::SocketAddr;

use afpa_bpf::{FastPath, ServedSockets};
use anyhow::Context as _;

use crate::say::say;

/// The served sockets, by the address that was given.
pub(crate) struct Sockets(Vec<(SocketAddr, ServedSockets)>);

impl Sockets {
    /// Serves the sockets that listen on these addresses.
    ///
    /// # Errors
    /// When they cannot be found.
    pub(crate) fn begin(fast_path: &FastPath, addresses: &[SocketAddr]) -> anyhow::Result<Self> {
        let serve = |address: &SocketAddr| {
            let sockets = fast_path
                .sockets
                .serve_server(*address)
                .with_context(|| format!("the sockets that listen on {address} cannot be found"))?;
            say_unserved(&sockets, *address);
            Ok((*address, sockets))
        };
        addresses.iter().map(serve).collect::<anyhow::Result<_>>().map(Self)
    }

    /// A server that was started anew has other sockets. While they come and go, some cannot be marked; the next
    /// look finds them.
    pub(crate) fn look(&mut self, fast_path: &FastPath) {
        for (address, known) in &mut self.0 {
            match fast_path.sockets.serve_server(*address) {
                Ok(sockets) if sockets == *known => {}
                Ok(sockets) => {
                    say_unserved(&sockets, *address);
                    *known = sockets;
                }
                Err(error) => {
                    say(&format!("the sockets that listen on {address} cannot be found: {error}"))
                }
            }
        }
    }
}

/// On which sockets' connections the kernel does not answer.
fn say_unserved(sockets: &ServedSockets, address: SocketAddr) {
    if sockets.served.is_empty() {
        let why = match sockets.is_multipath {
            true => "the server listens with Multipath TCP (remedy: let it listen with plain TCP)",
            false => "no process that is seen from here listens (remedy: share its PID namespace)",
        };
        say(&format!("nothing is answered on {address} for now: {why}"));
    } else if !sockets.others.is_empty() {
        let others: Vec<String> = sockets.others.iter().map(ToString::to_string).collect();
        say(&format!("connections are left to the servers that listen on {}", others.join(", ")));
    }
}
