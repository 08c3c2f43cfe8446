//! What a core can be told from outside.

use crate::listener::{ListenerSettings, WorkerSocket};
use crate::settings::Settings;

/// An order to a core; sent by the engine, carried out between two events.
pub(crate) enum Command<M> {
    /// Accept connections on a socket, known by a number from now on.
    Listen(u64, WorkerSocket, ListenerSettings),
    /// From now on, connections of that socket are taken under other settings.
    Relisten(u64, ListenerSettings),
    /// Take what waits on that socket, then close it; its connections end after the answers they owe.
    Unlisten(u64),
    /// Change the module and the settings; requests in flight are not disturbed.
    Reload(Box<dyn FnOnce(&mut M) + Send>, Settings),
    /// Accept no more, end idle connections, and end when the others have.
    Drain,
    /// End now.
    Stop,
}
