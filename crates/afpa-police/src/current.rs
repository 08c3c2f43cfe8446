//! The rules in force: the configuration and the orders, compiled for decisions.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use afpa_abi::POLICE_CLASSES;

use crate::bucket::Pace;
use crate::classes::Classes;
use crate::kernel::Enforced;
use crate::limits::Limits;
use crate::lists::Lists;
use crate::rules::Rules;
use crate::table::{Masks, Share};

/// The rules in force.
pub(crate) struct Current {
    pub(crate) rules: Arc<Rules>,
    pub(crate) connections: [Pace; 2],
    pub(crate) requests: [Pace; 2],
    pub(crate) classes: Arc<Classes>,
    pub(crate) class_paces: [Pace; POLICE_CLASSES],
    /// Of connections that the kernel does not count, where it counts others.
    pub(crate) uncounted: ([Pace; 2], [Pace; POLICE_CLASSES]),
    pub(crate) masks: Masks,
}

/// The tolerance of user mode beyond the kernel's. The kernel counted a connection at its SYN; the connection may then
/// have waited about this long to be accepted, together with others of its client.
const WAITED_SECONDS: u64 = 1;

impl Current {
    pub(crate) fn of(lists: &Lists) -> Self {
        let limits = lists.limits();
        let classes = Arc::new(lists.classes());
        let connections = connection_paces(limits, 0);
        let class_paces = classes.paces(connections[1]);
        Self {
            rules: Arc::new(lists.rules()),
            connections,
            requests: [limits.client_requests, limits.requests].map(|rate| Pace::new(rate, 0)),
            class_paces,
            uncounted: (connections, class_paces),
            classes,
            masks: Masks::new(limits.ipv4_bits, limits.ipv6_bits),
        }
    }

    /// The rules for user mode, where the kernel has counted the connections before.
    pub(crate) fn after_the_kernel(self, limits: Limits) -> Self {
        let connections = connection_paces(limits, WAITED_SECONDS);
        Self { connections, class_paces: self.classes.paces(connections[1]), ..self }
    }

    /// The class of a client and its share; `None` where there are no classes.
    pub(crate) fn share(
        &self,
        client: IpAddr,
        listener: Option<SocketAddr>,
        paces: &[Pace; POLICE_CLASSES],
    ) -> Option<Share> {
        if self.classes.is_empty() {
            return None;
        }
        let class = self.classes.of(client, listener);
        let pace = paces.get(class as usize).copied().unwrap_or_default();
        Some(Share { class, pace })
    }

    pub(crate) fn enforced(&self) -> Enforced<'_> {
        let Self { rules, connections, requests, classes, class_paces, masks, .. } = self;
        Enforced {
            rules,
            connections: *connections,
            requests: *requests,
            classes,
            class_paces: *class_paces,
            masks: *masks,
        }
    }

    /// Whether no client can be refused.
    pub(crate) fn is_idle(&self) -> bool {
        let mut paces = self.connections.iter().chain(&self.requests);
        self.rules.is_empty() && !paces.any(|pace| pace.limits())
    }
}

fn connection_paces(limits: Limits, more_seconds: u64) -> [Pace; 2] {
    [limits.client_connections, limits.connections].map(|rate| Pace::new(rate, more_seconds))
}
