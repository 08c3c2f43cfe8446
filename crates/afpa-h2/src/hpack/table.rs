//! The dynamic table (RFC 7541 sections 2.3.2 and 4).

use std::collections::VecDeque;

use super::TABLE_SIZE;

/// The size of an entry beyond its bytes (section 4.1).
const OVERHEAD: usize = 32;

/// Entries in the order in which they came. Their bytes lie behind one another in one buffer, which is moved to its
/// front when its end is reached: an entry needs no allocation of its own.
#[derive(Debug, Default)]
pub(super) struct Table {
    bytes: Vec<u8>,
    entries: VecDeque<Entry>,
    /// The size of the entries, as section 4.1 counts it.
    size: usize,
    most: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    start: usize,
    name: usize,
    value: usize,
}

impl Entry {
    fn size(self) -> usize {
        self.name + self.value + OVERHEAD
    }
}

impl Table {
    pub(super) fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// The entry of an index behind the static table; 0 is the newest.
    pub(super) fn get(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let place = self.entries.len().checked_sub(index.checked_add(1)?)?;
        let entry = self.entries.get(place)?;
        let bytes = self.bytes.get(entry.start..entry.start + entry.name + entry.value)?;
        bytes.split_at_checked(entry.name)
    }

    /// Adds an entry, and evicts the oldest for which there is no room any more. An entry larger than the table empties
    /// it (section 4.4).
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8]) {
        let entry = Entry { start: 0, name: name.len(), value: value.len() };
        self.evict_until(self.most.checked_sub(entry.size()));
        if entry.size() > self.most {
            return;
        }
        if self.bytes.len() + name.len() + value.len() > 2 * TABLE_SIZE {
            self.compact();
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        self.size += entry.size();
        self.entries.push_back(Entry { start, ..entry });
    }

    /// A dynamic table size update (section 6.3); false if it is more than we have allowed.
    pub(super) fn resize(&mut self, most: usize) -> bool {
        self.most = most.min(TABLE_SIZE);
        self.evict_until(Some(self.most));
        most <= TABLE_SIZE
    }

    fn evict_until(&mut self, size: Option<usize>) {
        while size.is_none_or(|size| self.size > size)
            && let Some(oldest) = self.entries.pop_front()
        {
            self.size -= oldest.size();
        }
    }

    fn compact(&mut self) {
        let from = self.entries.front().map_or(self.bytes.len(), |oldest| oldest.start);
        self.bytes.drain(..from);
        self.entries.iter_mut().for_each(|entry| entry.start -= from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_newest_is_first_and_the_oldest_is_evicted() {
        let mut table = Table::new(2 * (OVERHEAD + 2));
        table.insert(b"a", b"1");
        table.insert(b"b", b"2");
        assert_eq!(table.get(0), Some((&b"b"[..], &b"2"[..])));
        assert_eq!(table.get(1), Some((&b"a"[..], &b"1"[..])));
        table.insert(b"c", b"3");
        assert_eq!((table.get(0).unwrap().0, table.get(2)), (&b"c"[..], None));
        assert!(table.resize(OVERHEAD + 2));
        assert_eq!((table.get(0).unwrap().0, table.get(1)), (&b"c"[..], None));
        assert!(table.resize(0) && table.get(0).is_none());
        assert!(!table.resize(TABLE_SIZE + 1));
        assert_eq!(table.get(usize::MAX), None);
    }

    #[test]
    fn an_entry_larger_than_the_table_empties_it() {
        let mut table = Table::new(100);
        table.insert(b"a", b"1");
        table.insert(&[b'x'; 80], b"");
        assert_eq!((table.get(0), table.size), (None, 0));
    }

    proptest! {
        #[test]
        fn it_is_what_a_list_of_fields_would_be(
            fields in proptest::collection::vec((0usize..200, 0usize..1500), 0..100),
        ) {
            let (mut table, mut model) = (Table::new(TABLE_SIZE), VecDeque::new());
            for (at, (name, value)) in fields.into_iter().enumerate() {
                let (name, value) = (vec![at as u8; name], vec![!(at as u8); value]);
                table.insert(&name, &value);
                model.push_front((name, value));
                let size = |model: &VecDeque<(Vec<u8>, Vec<u8>)>| {
                    model.iter().map(|(n, v)| n.len() + v.len() + OVERHEAD).sum::<usize>()
                };
                while size(&model) > TABLE_SIZE {
                    model.pop_back();
                }
                prop_assert_eq!(table.size, size(&model));
                prop_assert!(table.bytes.capacity() <= 8 * TABLE_SIZE);
                for (index, (name, value)) in model.iter().enumerate() {
                    prop_assert_eq!(table.get(index), Some((&name[..], &value[..])));
                }
                prop_assert_eq!(table.get(model.len()), None);
            }
        }
    }
}
