//! Commands to a core.

use std::time::Duration;

use afpa_framework::Helpers;

use crate::h3::WorkerPart;
use crate::listener::{ListenerSettings, WorkerSocket};
use crate::settings::Settings;
use crate::worker::share::Accepted;

/// A command to a core. The engine sends it; the core executes it between two events.
pub(crate) enum Command<M> {
    /// Accept connections on sockets, known by a number from now on.
    Listen(u64, Vec<WorkerSocket>, ListenerSettings),
    /// Take part in the steering of datagrams of HTTP/3.
    Steer(Box<WorkerPart>),
    /// Accept the connections of these sockets with other settings from now on.
    Relisten(u64, ListenerSettings),
    /// Serve a connection that another worker has accepted.
    Take(Box<Accepted>),
    /// Accept the connections that wait on these sockets, then close them. Their connections end after the due answers.
    Unlisten(u64),
    /// Change the module and the settings, and have other helpers if there are any; requests in flight are not disturbed.
    Reload(Box<dyn FnOnce(&mut M) + Send>, Box<Settings>, Option<Helpers>),
    /// Stop accepting, end connections that have been idle for so long, and end when all connections have ended.
    Drain(Duration),
    /// End now.
    Stop,
}
