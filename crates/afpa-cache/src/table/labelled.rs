//! The part of the table for objects that have labels.

use std::sync::Arc;

use super::{Aftermath, Table, WANTED, offer_used};
use crate::cache::AT_ONCE;
use crate::key::Key;
use smallvec::SmallVec;

use crate::labels::{Label, Labels, Moment, Origin, label_of};
use crate::object::{Checked, Content, Object};
use crate::overtaken::Overtaken;
use crate::policy::ObjectId;

impl<H> Table<H> {
    /// Lists an object, unless one of its labels was purged since its source was asked.
    pub(crate) fn list_labelled(
        &mut self,
        key: Key,
        labels: &[Label],
        content: Content<H>,
        (since, origin, checked, has_room): (Moment, Origin, Checked, bool),
        after: &mut Aftermath<H>,
    ) -> Result<Arc<Object<H>>, Overtaken<H>> {
        let (id, site, name) = (self.identities.give(), key.site, Arc::clone(&key.path));
        let birth = self.birth(content.hint, checked);
        let object = Arc::new(Object::new(id, key, content, birth));
        if !has_room {
            self.forget(site, &[], id);
            object.mark_dropped();
            // The object that it replaces is not current any more.
            return match origin {
                Origin::Source => {
                    let before = self.listed.under(object.key()).map(|entry| entry.object.id());
                    before.map(|before| self.retire(before, after));
                    Ok(object)
                }
                Origin::Restored(_) => Err(Overtaken(object)),
            };
        }
        let is_older = origin != Origin::Source && self.listed.under(object.key()).is_some();
        if is_older || self.is_purged(since, &name, labels) {
            self.counts.overtaken += 1;
            self.forget(site, &[], id);
            object.mark_dropped();
            return Err(Overtaken(object));
        }
        self.counts.fills += 1;
        let noted = labels.iter().filter_map(|label| self.dependencies.add_shared(site, label, id));
        let noted = noted.collect();
        self.list(&object, noted, after);
        if self.listed.get(id).is_some() {
            self.names.insert(name, id.place());
        }
        if let Origin::Restored(hits) = origin {
            self.restore_hits(id, hits);
        }
        Ok(object)
    }

    /// Whether a purge since then means an object of this name with these further labels.
    fn is_purged(&self, since: Moment, name: &[u8], labels: &[Label]) -> bool {
        let further = labels.iter().map(|label| &**label);
        let all: SmallVec<[&[u8]; 8]> = std::iter::once(label_of(name)).chain(further).collect();
        self.journal.means(since, &all, &|_| false)
    }

    /// The object was used in another process, so the policy must not treat it as new, and the residency may have it.
    fn restore_hits(&mut self, id: ObjectId, hits: u64) {
        let Some(entry) = self.listed.get_mut(id).filter(|_| hits > 0) else { return };
        entry.hits = u32::try_from(hits).unwrap_or(u32::MAX);
        if entry.hits >= WANTED {
            offer_used(self.residency.as_deref(), &entry.object);
        }
        self.room.touch(id, 1);
    }

    /// Notes a purge. The objects that it means are not served any more when this returns, but they may be listed
    /// until [`Table::sweep`] has come to them. Returns how many there were.
    pub(crate) fn purge_labels(&mut self, number: u64, labels: Labels) -> usize {
        let meant = self.labelled(&labels);
        self.journal.add(number, labels);
        let mut count = 0;
        let is_held = self.hold_for(meant.len());
        for id in meant {
            let Some(entry) = self.listed.get(id).filter(|entry| !entry.object.is_dropped()) else {
                continue;
            };
            if let Some(residency) = self.residency.as_ref().filter(|_| !is_held) {
                residency.dropped(entry.object.key());
            }
            entry.object.mark_dropped();
            self.to_sweep.push_back(id);
            count += 1;
        }
        self.counts.invalidations += count as u64;
        count
    }

    /// As `purge_labels`, but the objects stay, and are shown to the module.
    pub(crate) fn recall_labels(
        &mut self,
        number: u64,
        labels: Labels,
        show: &mut dyn FnMut(&Object<H>),
    ) -> usize {
        let meant = self.labelled(&labels);
        self.journal.add(number, labels);
        let is_held = self.hold_for(meant.len());
        let objects = meant.iter().filter_map(|id| self.listed.get(*id));
        let mut count = 0;
        for entry in objects {
            let key = entry.object.key();
            match &self.residency {
                Some(_) if is_held => self.to_tell.push_back(key.clone()),
                Some(residency) => residency.dropped(key),
                None => {}
            }
            show(&entry.object);
            count += 1;
        }
        count
    }

    /// Has the residency serve nothing, if it can, while as many objects as this leave it one by one.
    fn hold_for(&mut self, count: usize) -> bool {
        if count > AT_ONCE && !self.is_held {
            self.is_held = self.residency.as_ref().is_some_and(|residency| residency.hold());
        }
        count > AT_ONCE && self.is_held
    }

    /// As `recall_labels`, for one object; objects on their way are not affected.
    pub(crate) fn recall(&self, key: &Key, show: impl FnOnce(&Object<H>)) {
        let listed = self.listed.under(key);
        if let Some(entry) = listed.filter(|entry| !entry.object.is_dropped()) {
            if let Some(residency) = &self.residency {
                residency.dropped(key);
            }
            show(&entry.object);
        }
    }

    /// Takes up to `most` purged objects out. Returns whether more are left.
    pub(crate) fn sweep(&mut self, most: usize, after: &mut Aftermath<H>) -> bool {
        for _ in 0..most {
            if let Some(id) = self.to_sweep.pop_front() {
                self.retire(id, after);
            } else if let Some(key) = self.to_tell.pop_front() {
                self.residency.iter().for_each(|residency| residency.dropped(&key));
            } else {
                break;
            }
        }
        let is_done = self.to_sweep.is_empty() && self.to_tell.is_empty();
        if is_done && std::mem::take(&mut self.is_held) {
            self.residency.iter().for_each(|residency| residency.release());
        }
        !is_done
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Object<H>>> {
        Some(Arc::clone(&self.listed.under(key)?.object))
    }

    /// The objects that are meant, each once.
    fn labelled(&self, labels: &Labels) -> Vec<ObjectId> {
        let (mut found, named) = match labels {
            // No other label begins with a whole one.
            Labels::Is(label) => {
                (self.dependencies.on(LABELLED, label), self.names.beginning(label))
            }
            Labels::BeginWith(prefix) => {
                (self.dependencies.beginning(LABELLED, prefix), self.names.beginning(prefix))
            }
            Labels::Fit(fits) => {
                (self.dependencies.fitting(LABELLED, &**fits), self.names.fitting(&**fits))
            }
        };
        let is_both = !found.is_empty() && !named.is_empty();
        found.extend(named.into_iter().filter_map(|place| self.listed.id_at(place)));
        if is_both {
            found.sort_unstable();
            found.dedup();
        }
        found
    }

    pub(crate) fn purged_since(
        &self,
        since: Moment,
        labels: &[&[u8]],
        also: &dyn Fn(&[u8]) -> bool,
    ) -> bool {
        self.journal.means(since, labels, also)
    }
}

/// The site number of all objects that have labels.
const LABELLED: u32 = 0;
