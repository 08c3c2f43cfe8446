//! Orders of this machine about the configuration of the fleet, and what is known of it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::files::{Files, Revision};
use crate::rollout::Rollout;

/// Outcomes that are remembered.
const MOST_OUTCOMES: usize = 64;

/// Orders that wait; each may have the files of a configuration.
const MOST_WAITING: usize = 8;

/// An order of this machine about the configuration of the fleet.
#[derive(Clone, Debug)]
pub enum Asked {
    /// Checks files, and rolls them out.
    Push(Arc<Files>),
    /// Goes back to a revision; `None`: to the one before.
    RollBack(Option<u64>),
}

/// Its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum Outcome {
    /// It is under way.
    Waiting,
    /// The servers have it: machines are to run this revision; `None`: none.
    Done {
        /// Its number.
        revision: Option<u64>,
    },
    /// Nothing has changed.
    Refused {
        /// The reason, for people.
        why: String,
    },
}

/// The configuration of the fleet, as people see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigurationLook {
    /// The revision that this machine runs.
    pub runs: Option<u64>,
    /// The one that it is to run.
    pub wanted: Option<u64>,
    /// The record.
    pub rollout: Option<Rollout>,
}

/// The part that thread and control socket have in common.
#[derive(Debug, Default)]
pub(crate) struct Configuring {
    waiting: VecDeque<(u64, Asked)>,
    outcomes: BTreeMap<u64, Outcome>,
    number: u64,
    pub(crate) rollout: Option<Rollout>,
    pub(crate) runs: Option<Revision>,
    /// The bucket of the newest record, and its number there.
    pub(crate) newest: (u64, u64),
    /// When a revision was refused last.
    pub(crate) refused_at: Duration,
    /// How often a revision was taken.
    pub(crate) takes: u64,
}

impl Configuring {
    /// Its orders get the numbers behind this one, as those to purge do.
    pub(crate) fn number_behind(&mut self, number: u64) {
        self.number = number;
    }

    pub(crate) fn ask(&mut self, asked: Asked) -> u64 {
        self.number += 1;
        let outcome = if self.waiting.len() < MOST_WAITING {
            self.waiting.push_back((self.number, asked));
            Outcome::Waiting
        } else {
            let why = format!("{MOST_WAITING} orders wait already: try again");
            Outcome::Refused { why }
        };
        self.outcomes.insert(self.number, outcome);
        while self.outcomes.len() > MOST_OUTCOMES {
            self.outcomes.pop_first();
        }
        self.number
    }

    pub(crate) fn outcome(&self, number: u64) -> Option<Outcome> {
        self.outcomes.get(&number).cloned()
    }

    /// The one that has waited longest.
    pub(crate) fn next(&mut self) -> Option<(u64, Asked)> {
        self.waiting.pop_front()
    }

    pub(crate) fn settle(&mut self, number: u64, outcome: Outcome) {
        if let Some(known) = self.outcomes.get_mut(&number) {
            *known = outcome;
        }
    }
}
