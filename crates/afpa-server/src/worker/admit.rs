//! Which connections a worker takes, whatever their transport.

use std::net::SocketAddr;

use afpa_framework::{Client, Module};

use super::Worker;
use crate::limits::Admission;

impl<M: Module> Worker<M> {
    /// Whether the police lets a client connect to a listener at this address now. It counts the connection.
    pub(crate) fn lets_in(&self, client: Client, listener: Option<SocketAddr>) -> bool {
        let Client::Ip(client) = client else { return true };
        let now = self.clock.now().steady_us.saturating_mul(1000);
        self.settings.borrow().police.connection(client, listener, now).is_ok()
    }

    /// A place for one more connection of a client, beside those that the kernel holds.
    pub(crate) fn place_for(&self, client: Client) -> Option<Admission> {
        let settings = self.settings.borrow();
        let kernel = settings.kernel_activity.as_ref();
        let (all, of_client) =
            kernel.map_or((0, 0), |kernel| (kernel.all(), kernel.connections(client)));
        let total = settings.connections.saturating_sub(all);
        let per_client = settings.connections_per_client.saturating_sub(of_client);
        self.limits.connections.admit(client, total, per_client)
    }
}
