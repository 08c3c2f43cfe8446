//! An order that waits, and its fate.

use serde::{Deserialize, Serialize};

use crate::follower::Position;
use crate::message::Order;

/// An order that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queued {
    /// Its sender knows it by that.
    pub id: String,
    /// The place in the log of bans at which it may have been sent for the first time; `None`: it never was, or has no need of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Position>,
    /// The number of the last order for its prefix that this machine had read when the servers refused to have this one in its place.
    #[serde(skip)]
    pub(crate) behind: Option<u64>,
    /// The order.
    #[serde(flatten)]
    pub order: Order,
}

impl Queued {
    /// One that was not sent.
    pub fn new(id: String, order: Order) -> Self {
        Self { id, since: None, behind: None, order }
    }

    /// Whether the log has to be read before it is sent: it may be there already, or another one is that this machine does not know.
    pub fn waits_for_log(&self) -> bool {
        self.since.is_some() || self.behind.is_some()
    }
}

/// The fate of an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum Fate {
    /// It waits for the servers.
    Queued,
    /// The log has it here.
    Logged(Position),
    /// The servers will not have it.
    Refused {
        /// The reason, in words.
        why: String,
    },
}

/// Too many orders wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{waiting} orders wait for the servers of the fleet already: see `afpa fleet`")]
pub struct Full {
    /// So many.
    pub waiting: usize,
    /// Another one of its kind was not taken before, and the queue has not been empty since.
    pub again: bool,
}
