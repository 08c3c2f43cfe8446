//! The options of a load.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use super::ports::PORTS;
use super::request::Target;

/// Requests outstanding when nothing else is asked for: well below the packet queue's limit.
const MOST_ACTIVE: u32 = 512;
/// The same of connections that take turns: there an acknowledgement goes beside each request.
const MOST_IN_TURN: u32 = 256;

/// The requests of a load, its server, and the connections that carry it.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// The server.
    pub to: SocketAddr,
    /// Connections at once.
    pub connections: u32,
    /// When the first of the connections that are kept is opened, and the time from each to the next. Several loads of one
    /// server can so open theirs in turns.
    pub pace: Option<(Instant, Duration)>,
    /// Each carries one request, and is opened and closed by the program. The requests should ask
    /// for it (`Connection: close`): the server has to close first.
    pub once: bool,
    /// Requests outstanding at any time, at most one on a connection: all connections take their
    /// turns. More than some 900 overflow the queue that a core has for packets of virtual
    /// interfaces (`net.core.netdev_max_backlog`), without [`late_acks`](Self::late_acks) half of
    /// that. 0: one on each connection; of more than 512 connections 512 or 256 at a time.
    pub active: u32,
    /// With fewer requests outstanding than connections: a response is acknowledged by the next
    /// request on its connection, and not at once. A server whose own TCP sends responses takes
    /// them for lost when a connection's turn comes too late for it.
    pub late_acks: bool,
    /// A response may have more or fewer digits in its Age than the first one had: a cache's answers get
    /// older. Everything else of it has to be as long as it was.
    pub ages: bool,
    /// The targets of requests, in proportion to their weights.
    pub targets: Vec<Target>,
    /// The client's interface.
    pub interface: String,
    /// First of `sources` consecutive client addresses; `None`: the address that the kernel chooses.
    pub first_source: Option<IpAddr>,
    /// Client addresses in use: each is good for some 64,000 connections.
    pub sources: u32,
}

impl LoadOptions {
    /// 64 connections from one address over `eth0`.
    pub fn new(to: SocketAddr, targets: Vec<Target>) -> Self {
        Self {
            to,
            connections: 64,
            pace: None,
            once: false,
            active: 0,
            late_acks: false,
            ages: false,
            targets,
            interface: crate::Bed::DEVICE.into(),
            first_source: None,
            sources: 1,
        }
    }

    /// Rings of connections that take turns: as many as requests are outstanding.
    pub(super) fn rings(&self) -> usize {
        let active = match self.active {
            0 if self.connections <= MOST_ACTIVE => self.connections,
            0 if self.late_acks => MOST_ACTIVE,
            0 => MOST_IN_TURN,
            active => active.min(self.connections),
        };
        active.max(1) as usize
    }
}

/// Addresses times ports, less what is no multiple of slots: each slot has flows of its own.
pub(crate) fn total(options: &LoadOptions) -> u32 {
    let slots = options.connections.max(1);
    PORTS * options.sources / slots * slots
}
