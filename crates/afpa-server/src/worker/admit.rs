//! Which connections a worker takes, whatever their transport.

use std::net::SocketAddr;

use afpa_framework::{Client, Module};

use super::Worker;
use crate::limits::{Admission, Held, Met};

impl<M: Module> Worker<M> {
    /// Whether the police lets a client connect to a listener at this address now. It counts the connection.
    pub(crate) fn lets_in(&self, client: Client, listener: Option<SocketAddr>) -> bool {
        let Client::Ip(client) = client else { return true };
        let now = self.clock.now().steady_us.saturating_mul(1000);
        self.settings.borrow().police.connection(client, listener, now).is_ok()
    }

    /// As [`lets_in`](Self::lets_in), for a connection by datagrams, which the kernel has not counted.
    fn lets_in_by_datagrams(&self, client: Client, listener: Option<SocketAddr>) -> bool {
        let Client::Ip(client) = client else { return true };
        let now = self.clock.now().steady_us.saturating_mul(1000);
        let settings = self.settings.borrow();
        settings.police.uncounted_connection(client, listener, now).is_ok()
    }

    /// A place for one more connection of a client, beside those that the kernel holds.
    pub(crate) fn place_for(&self, client: Client) -> Option<Admission> {
        let per_client = self.most_of(client);
        self.limits.connections.admit(client, self.most_connections(), per_client)
    }

    /// Connections that all clients may have, beside those that the kernel holds.
    fn most_connections(&self) -> usize {
        let settings = self.settings.borrow();
        let kernel = settings.kernel_activity.as_ref();
        settings.connections.saturating_sub(kernel.map_or(0, |kernel| kernel.all()))
    }

    /// Connections that a client may have, beside those that the kernel holds.
    fn most_of(&self, client: Client) -> usize {
        let settings = self.settings.borrow();
        let kernel = settings.kernel_activity.as_ref();
        let of_client = kernel.map_or(0, |kernel| kernel.connections(client));
        settings.connections_per_client.saturating_sub(of_client)
    }

    /// Meets the first packet of a connection by datagrams. Anybody can send one in a client's name, so an address that is
    /// not proven takes nothing of a client's own: no token of the police, and no place that others of it need. It has
    /// a place among all, of which such ones get half of the handshakes at most.
    pub(crate) fn meet(
        &self,
        client: Client,
        listener: Option<SocketAddr>,
        is_proven: bool,
    ) -> Met {
        let settings = self.settings.borrow();
        let (handshakes, connections) = (&self.limits.handshakes, &self.limits.connections);
        if is_proven {
            if !self.lets_in_by_datagrams(client, listener) {
                return Met::Denied;
            }
            let (total, per_client) = (settings.handshakes, settings.handshakes_per_client);
            let handshake = handshakes.admit(client, total, per_client);
            return match (handshake, self.place_for(client)) {
                (Some(handshake), Some(connection)) => {
                    Met::Admitted(Held { handshake, connection, unproven: None })
                }
                _ => Met::Full,
            };
        }
        let is_counted = match client {
            Client::Ip(client) => settings.police.unproven(client),
            Client::Unix => Ok(false),
        };
        match is_counted {
            Ok(false) => {}
            Ok(true) => return Met::Unproven,
            Err(_) => return Met::Denied,
        }
        let half = settings.handshakes / 2;
        if handshakes.open() >= half {
            return Met::Unproven;
        }
        let most = self.most_connections();
        // A client with much of its share is asked, so that it cannot go beyond it by this way.
        let (quarter, quarter_of_handshakes) =
            (self.most_of(client) / 4, settings.handshakes_per_client / 4);
        if connections.open() >= most - most / 4
            || connections.open_of(client) >= quarter
            || handshakes.open_of(client) >= quarter_of_handshakes
        {
            return Met::Unproven;
        }
        let nobody = Client::Unix;
        let unproven = self.limits.unproven.admit(client, half, quarter.min(quarter_of_handshakes));
        let handshake = handshakes.admit(nobody, settings.handshakes, usize::MAX);
        let connection = connections.admit(nobody, most, usize::MAX);
        match (unproven, handshake, connection) {
            (Some(unproven), Some(handshake), Some(connection)) => {
                Met::Admitted(Held { handshake, connection, unproven: Some(unproven) })
            }
            _ => Met::Unproven,
        }
    }

    /// The client of a connection has proved its address: the connection is among its own from now on. False: it has as
    /// many as it may have.
    pub(crate) fn proves(&self, connection: &mut Admission, client: Client) -> bool {
        connection.count_for(client, self.most_of(client))
    }
}
