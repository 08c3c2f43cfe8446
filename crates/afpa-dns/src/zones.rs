//! The zones of a server, and which of them has a name.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::name::suffixes;
use crate::rtype;
use crate::zone::Zone;

/// All zones that are served, by name.
#[derive(Clone, Debug, Default)]
pub struct Zones(HashMap<Box<[u8]>, Arc<Zone>, RandomState>);

impl Zones {
    /// Serves a zone; one of the same name is replaced.
    pub fn insert(&mut self, zone: Arc<Zone>) {
        self.0.insert(zone.apex().lower().wire().into(), zone);
    }

    /// The zone that has a name in lower case: the one with the longest name. The DS of a zone is the parent's.
    pub fn of(&self, lower: &[u8], rtype: u16) -> Option<&Zone> {
        let mut found = suffixes(lower).filter_map(|suffix| self.0.get(suffix));
        let first = found.next()?;
        if rtype == rtype::DS && first.apex().wire().len() == lower.len() {
            return Some(found.next().unwrap_or(first));
        }
        Some(first)
    }

    /// The zone of exactly this name, in lower case.
    pub fn exact(&self, lower: &[u8]) -> Option<&Arc<Zone>> {
        self.0.get(lower)
    }

    /// Every zone.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Zone>> {
        self.0.values()
    }
}

impl FromIterator<Arc<Zone>> for Zones {
    fn from_iter<I: IntoIterator<Item = Arc<Zone>>>(zones: I) -> Self {
        let mut all = Self::default();
        zones.into_iter().for_each(|zone| all.insert(zone));
        all
    }
}
