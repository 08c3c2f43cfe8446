//! The lists that decide: the configuration, and the orders given since.

use std::collections::BTreeSet;

use crate::classes::{Class, Classes};
use crate::limits::Limits;
use crate::prefix::Prefix;
use crate::rules::Rules;

/// The configuration of the police.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoliceSettings {
    /// Clients that are never refused.
    pub allow: Vec<Prefix>,
    /// Clients that are refused.
    pub deny: Vec<Prefix>,
    /// How often clients may come.
    pub limits: Limits,
    /// The classes of clients, each with its share of the connections of all clients.
    pub classes: Vec<Class>,
}

/// The configuration, and the orders given since.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    pub(crate) configured: PoliceSettings,
    /// Denied by order. A reload keeps them.
    pub(crate) ordered: BTreeSet<Prefix>,
}

impl Lists {
    pub(crate) fn configure(&mut self, settings: &PoliceSettings) {
        self.configured = settings.clone();
    }

    pub(crate) fn limits(&self) -> Limits {
        self.configured.limits
    }

    pub(crate) fn classes(&self) -> Classes {
        Classes::new(&self.configured.classes)
    }

    pub(crate) fn rules(&self) -> Rules {
        let PoliceSettings { allow, deny, .. } = &self.configured;
        Rules::of(allow.iter().copied(), deny.iter().chain(&self.ordered).copied())
    }
}
