//! What the table does with objects that have labels.

use std::sync::Arc;

use super::{Aftermath, Table};
use crate::key::Key;
use crate::labels::{Labels, Moment};
use crate::object::{Birth, Checked, Content, Object};
use crate::overtaken::Overtaken;

impl<H> Table<H> {
    /// Lists an object, unless one of its labels was purged since its source was asked.
    pub(crate) fn list_labelled(
        &mut self,
        key: Key,
        labels: &[Vec<u8>],
        content: Content<H>,
        (since, checked): (Moment, Checked),
        after: &mut Aftermath<H>,
    ) -> Result<Arc<Object<H>>, Overtaken<H>> {
        let (id, site) = (self.new_id(), key.site);
        let age = content.hint.expiry.map_or(u64::MAX, |expiry| expiry.as_secs());
        let birth = Birth {
            checked,
            last: checked.at.0.saturating_add(age),
            max_age_unwatched: self.settings.max_age_unwatched,
            epoch: Arc::clone(&self.epoch),
        };
        let object = Arc::new(Object::new(id, key, content, birth));
        if self.journal.means(since, labels, &|_| false) {
            self.counts.overtaken += 1;
            object.mark_dropped();
            return Err(Overtaken(object));
        }
        self.counts.fills += 1;
        let noted = labels.iter().filter_map(|label| self.dependencies.add(site, label, id));
        let noted = noted.collect();
        self.list(&object, noted, after);
        Ok(object)
    }

    /// Notes a purge, and returns the objects that it means: dropped, or as they are.
    pub(crate) fn purge_labels(
        &mut self,
        number: u64,
        labels: Labels,
        drop: bool,
        after: &mut Aftermath<H>,
    ) -> Vec<Arc<Object<H>>> {
        let meant = match &labels {
            Labels::Is(label) => self.dependencies.on(LABELLED, label),
            Labels::BeginWith(prefix) => self.dependencies.beginning(LABELLED, prefix),
        };
        self.journal.add(number, labels);
        let objects = meant.iter().filter_map(|id| self.objects.get(id));
        let objects = objects.map(|entry| Arc::clone(&entry.object)).collect();
        if drop {
            self.drop_dependents(meant, after);
        }
        objects
    }

    pub(crate) fn purged_since(
        &self,
        since: Moment,
        labels: &[Vec<u8>],
        also: &dyn Fn(&[u8]) -> bool,
    ) -> bool {
        self.journal.means(since, labels, also)
    }
}

/// The site number of all objects that have labels.
const LABELLED: u32 = 0;
