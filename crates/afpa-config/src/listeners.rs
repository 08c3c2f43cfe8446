//! The numbers by which connections name their listener.

use crate::hierarchy::Hierarchy;
use crate::model::Config;
use crate::units::Listen;

/// Listeners and their numbers. An address keeps its number for the life of the process, so that a
/// connection means the same before and after a reload.
#[derive(Clone, Debug, Default)]
pub struct ListenerNumbers(Vec<Listen>);

impl ListenerNumbers {
    /// The number of a listener; a new one if it has none yet.
    pub fn number(&mut self, listen: &Listen) -> u32 {
        let known = self.0.iter().position(|other| other == listen);
        let number = known.unwrap_or_else(|| {
            self.0.push(listen.clone());
            self.0.len() - 1
        });
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    /// The hierarchy of a configuration, in which listeners have these numbers.
    pub fn hierarchy(&mut self, config: &Config) -> Hierarchy {
        Hierarchy::of(config, &mut |listen| self.number(listen))
    }

    /// The listeners, in the order of their numbers.
    pub fn listeners(&self) -> &[Listen] {
        &self.0
    }
}
