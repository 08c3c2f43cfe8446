//! Settings of exchanges.

use std::time::Duration;

use crate::pool::BUFFER;
use crate::request::RequestPolicy;

/// Time-outs and limits towards the servers of a group, with safe defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// For a connection to a server.
    pub connect: Duration,
    /// From the last byte of the request to the first of the response.
    pub first_byte: Duration,
    /// Between two arrivals of a response, and between two bytes that the server takes of a request.
    pub idle: Duration,
    /// For the whole exchange; `None`: as long as bytes move.
    pub total: Option<Duration>,
    /// In a tunnel, without a byte in either direction.
    pub tunnel_idle: Duration,
    /// How often an idempotent request is repeated with another server after its server failed.
    pub repeats: u32,
    /// Connections to each server that a core keeps though no request needed them for a while; with 0 it keeps none.
    pub idle_connections: usize,
    /// How long it keeps them.
    pub idle_connection_timeout: Duration,
    /// Bytes of a response head; beyond it 502. At most [`Settings::MOST_HEAD`].
    pub head_limit: usize,
    /// Bytes of a request's content; beyond it 413. Content is passed on as it arrives and never stored, so
    /// there is no limit unless one is set.
    pub largest_content: Option<u64>,
    /// The treatment of a request whose client has ended its sending direction.
    pub half_closed: HalfClosed,
    /// Fields that tell servers where a request came from.
    pub request: RequestPolicy,
}

/// The treatment of a request whose client sends nothing more (a FIN, or close_notify of TLS). A client that goes away
/// looks the same until something is sent to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HalfClosed {
    /// It is answered.
    #[default]
    Answer,
    /// Its client counts as gone.
    Cancel,
}

impl Settings {
    /// The longest response head that can be allowed: half of a buffer.
    pub const MOST_HEAD: usize = BUFFER / 2;

    /// The shortest time-out, for the engine's sweep.
    pub fn shortest(&self) -> Duration {
        let all = [self.connect, self.first_byte, self.idle, self.tunnel_idle];
        all.into_iter().chain(self.total).min().unwrap_or_default()
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(3),
            first_byte: Duration::from_secs(60),
            idle: Duration::from_secs(60),
            total: None,
            tunnel_idle: Duration::from_secs(600),
            repeats: 1,
            idle_connections: 64,
            idle_connection_timeout: Duration::from_secs(15),
            head_limit: 32 * 1024,
            largest_content: None,
            half_closed: HalfClosed::default(),
            request: RequestPolicy::default(),
        }
    }
}
