//! Which ranges of a space are free, in constant time: a list of the free ranges of each size class, after Aaltonen's
//! OffsetAllocator.
//!
//! The table has an entry for each range that there is, and grows with their number. An arena may be gigabytes of address
//! space, and a table for all the ranges that could be in it would be memory from the start.

/// Size classes to a power of two.
const STEPS: u32 = 1 << STEP_BITS;
const STEP_BITS: u32 = 3;
/// Enough for every length of 32 bits.
const CLASSES: usize = 256;
/// No range: the end of a list, or of the space.
const NONE: u32 = u32::MAX;

/// A range that was taken. It is given back once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) start: u32,
    entry: u32,
}

/// The ranges of a space, free ones and taken ones.
pub(crate) struct Ranges {
    entries: Vec<Entry>,
    /// The most entries.
    most: usize,
    /// A list of entries that stand for no range.
    spare: u32,
    /// The first free range of each class.
    first: [u32; CLASSES],
    /// A bit for each class that has one.
    filled: [u64; CLASSES / 64],
    /// No unit from here on was in a range since its memory was given back.
    used_to: u32,
}

/// One step of a search through the table ([`Ranges::take_used`]).
pub(crate) enum Look {
    /// A free range that was used, and its length. It is taken.
    Found(Taken, u32),
    /// The search goes on.
    Nothing,
    /// That was all.
    End,
}

/// Entries that a step looks at.
const LOOKED_AT: usize = 4096;

#[derive(Clone, Copy)]
struct Entry {
    start: u32,
    len: u32,
    /// The neighbours.
    before: u32,
    after: u32,
    /// The free ranges of the same class.
    previous: u32,
    next: u32,
    is_free: bool,
    /// Of a free range: a part of it was in use since its memory was given back.
    was_used: bool,
}

impl Ranges {
    /// A space of `len` units, in which there are at most so many ranges.
    pub(crate) fn new(len: u32, most: usize) -> Self {
        let (first, filled) = ([NONE; CLASSES], [0; CLASSES / 64]);
        let mut ranges =
            Ranges { entries: Vec::new(), most, spare: NONE, first, filled, used_to: 0 };
        if len > 0 {
            let all = ranges.entry(Entry::new(0, len, NONE, NONE));
            ranges.list(all);
        }
        ranges
    }

    /// Takes a range of this many units, which is the size of a class ([`rounded`]).
    pub(crate) fn take(&mut self, len: u32) -> Option<Taken> {
        // The rest of a range may need an entry.
        if self.spare == NONE && self.entries.len() >= self.most {
            return None;
        }
        let number = self.first[self.class_from(class_above(len))?];
        self.unlist(number);
        let start = self.entries[number as usize].start;
        self.split(number, len);
        self.used_to = self.used_to.max(start + len);
        Some(Taken { start, entry: number })
    }

    /// The first `len` units of a range that is in no list; the rest is free.
    fn split(&mut self, number: u32, len: u32) {
        let Entry { start, len: whole, after, was_used, .. } = self.entries[number as usize];
        if whole > len {
            let rest = Entry::new(start + len, whole - len, number, after);
            let rest = self.entry(Entry { was_used, ..rest });
            self.set_before(after, rest);
            let taken = &mut self.entries[number as usize];
            (taken.len, taken.after) = (len, rest);
            self.list(rest);
        }
    }

    /// Takes a free range of at least this many units that was used, so that its memory can be given back. The search through
    /// the table begins at `at`, which moves.
    pub(crate) fn take_used(&mut self, at: &mut usize, least: u32) -> Look {
        let steps = self.entries.iter().enumerate().skip(*at).take(LOOKED_AT);
        let is_used = |entry: &Entry| entry.is_free && entry.was_used && entry.len >= least;
        let mut steps = steps.map(|(number, entry)| (number, is_used(entry)));
        let Some((last, found)) = steps.find(|(_, found)| *found).or_else(|| {
            let last = (*at + LOOKED_AT).min(self.entries.len());
            (last > *at).then_some((last - 1, false))
        }) else {
            return Look::End;
        };
        *at = last + 1;
        let Entry { start, len, .. } = self.entries[last];
        let used = self.used_to.saturating_sub(start).min(len);
        // The rest of a range may need an entry.
        let has_entry = self.spare != NONE || self.entries.len() < self.most;
        if !found || used > 0 && !has_entry {
            return Look::Nothing;
        }
        self.entries[last].was_used = false;
        if used == 0 {
            return Look::Nothing;
        }
        let number = last as u32;
        self.unlist(number);
        self.split(number, used);
        Look::Found(Taken { start, entry: number }, used)
    }

    /// Gives a range back whose memory was given back.
    pub(crate) fn give_back_unused(&mut self, taken: Taken) {
        let Entry { start, len, .. } = self.entries[taken.entry as usize];
        if start + len == self.used_to {
            self.used_to = start;
        }
        self.free(taken.entry, false);
    }

    /// Gives a range back. It becomes one with the free ranges beside it.
    pub(crate) fn give_back(&mut self, taken: Taken) {
        self.free(taken.entry, true);
    }

    fn free(&mut self, mut number: u32, was_used: bool) {
        self.entries[number as usize].was_used = was_used;
        let Entry { before, after, is_free, .. } = self.entries[number as usize];
        assert!(!is_free, "a range is given back once");
        if self.is_free(after) {
            self.unlist(after);
            self.join(number, after);
        }
        if self.is_free(before) {
            self.unlist(before);
            self.join(before, number);
            number = before;
        }
        self.list(number);
    }

    /// The second range becomes part of the first one, which is the one before it.
    fn join(&mut self, first: u32, second: u32) {
        let Entry { len, after, was_used, .. } = self.entries[second as usize];
        let whole = &mut self.entries[first as usize];
        whole.was_used |= was_used;
        whole.len += len;
        whole.after = after;
        self.set_before(after, first);
        let gone = &mut self.entries[second as usize];
        (gone.next, gone.is_free) = (self.spare, false);
        self.spare = second;
    }

    fn is_free(&self, number: u32) -> bool {
        self.entries.get(number as usize).is_some_and(|entry| entry.is_free)
    }

    fn set_before(&mut self, number: u32, before: u32) {
        if let Some(entry) = self.entries.get_mut(number as usize) {
            entry.before = before;
        }
    }

    /// A new entry, or one that stands for nothing.
    fn entry(&mut self, entry: Entry) -> u32 {
        let number = self.spare;
        if let Some(spare) = self.entries.get_mut(number as usize) {
            self.spare = spare.next;
            *spare = entry;
            return number;
        }
        self.entries.push(entry);
        (self.entries.len() - 1) as u32
    }

    /// Into the list of its class.
    fn list(&mut self, number: u32) {
        let class = class_below(self.entries[number as usize].len);
        let next = std::mem::replace(&mut self.first[class], number);
        if let Some(next) = self.entries.get_mut(next as usize) {
            next.previous = number;
        }
        let entry = &mut self.entries[number as usize];
        (entry.previous, entry.next, entry.is_free) = (NONE, next, true);
        self.filled[class / 64] |= 1 << (class % 64);
    }

    /// Out of it.
    fn unlist(&mut self, number: u32) {
        let entry = &mut self.entries[number as usize];
        entry.is_free = false;
        let Entry { len, previous, next, .. } = *entry;
        if let Some(next) = self.entries.get_mut(next as usize) {
            next.previous = previous;
        }
        if let Some(previous) = self.entries.get_mut(previous as usize) {
            previous.next = next;
            return;
        }
        let class = class_below(len);
        self.first[class] = next;
        if next == NONE {
            self.filled[class / 64] &= !(1 << (class % 64));
        }
    }

    /// The first class from this one on that has a free range.
    fn class_from(&self, class: usize) -> Option<usize> {
        let mut mask = u64::MAX << (class % 64);
        for (at, word) in self.filled.iter().enumerate().skip(class / 64) {
            let bits = word & mask;
            if bits != 0 {
                return Some(at * 64 + bits.trailing_zeros() as usize);
            }
            mask = u64::MAX;
        }
        None
    }
}

impl Entry {
    fn new(start: u32, len: u32, before: u32, after: u32) -> Self {
        let [previous, next] = [NONE; 2];
        Entry { start, len, before, after, previous, next, is_free: false, was_used: false }
    }
}

/// The size of the smallest class that holds so many units: at most an eighth more.
pub(crate) fn rounded(len: u32) -> u32 {
    let class = class_above(len) as u32;
    let (power, step) = (class >> STEP_BITS, class % STEPS);
    match power {
        0 => step,
        power => (STEPS + step) << (power - 1),
    }
}

/// The class of the largest size that is not more: like a floating-point number, an exponent and three bits.
fn class_below(len: u32) -> usize {
    let power = len.checked_ilog2().unwrap_or(0).saturating_sub(STEP_BITS);
    if len < STEPS {
        return len as usize;
    }
    (((power + 1) << STEP_BITS) + ((len >> power) % STEPS)) as usize
}

/// The class of the smallest size that is not less.
fn class_above(len: u32) -> usize {
    let power = len.checked_ilog2().unwrap_or(0).saturating_sub(STEP_BITS);
    class_below(len) + usize::from(!len.is_multiple_of(1 << power))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_table_grows_with_the_ranges_and_has_a_limit() {
        let mut ranges = Ranges::new(1 << 30, 100);
        assert_eq!(ranges.entries.len(), 1);
        let taken: Vec<Taken> = std::iter::from_fn(|| ranges.take(1)).collect();
        assert_eq!((taken.len(), ranges.entries.len()), (99, 100));
        taken.into_iter().for_each(|taken| ranges.give_back(taken));
        assert!(ranges.take(1 << 30).is_some(), "they are one again");
        assert_eq!(ranges.entries.len(), 100);
    }

    #[test]
    fn classes_begin_at_their_own_size() {
        for len in (0..5000).chain([1 << 20, (1 << 20) + 1, u32::MAX / 2, (1 << 31) - (1 << 27)]) {
            let size = rounded(len);
            assert!(size >= len && size - len <= len / 8, "{len}: {size}");
            assert_eq!(
                (class_below(size), class_above(size)),
                (class_above(len), class_above(len))
            );
        }
        assert!(class_above(u32::MAX) < CLASSES);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: if cfg!(miri) { 4 } else { 256 }, ..ProptestConfig::default() })]

        /// Beside a map of the taken ranges: none overlap, the gaps between them are the free ranges, each of them in its list, and
        /// what is refused has no gap of its size.
        #[test]
        fn the_gaps_are_free(steps in prop::collection::vec((1u32..600, any::<u8>()), 1..200)) {
            const LEN: u32 = 4096;
            let mut ranges = Ranges::new(LEN, 1000);
            let mut held: Vec<(Taken, u32)> = Vec::new();
            for (len, choice) in steps {
                let len = rounded(len);
                if choice % 16 == 15 {
                    give_back_memory(&mut ranges);
                    let end = held.iter().map(|(taken, len)| taken.start + len).max().unwrap_or(0);
                    prop_assert!(ranges.used_to == end, "{} {end}", ranges.used_to);
                } else if choice % 5 < 2 && !held.is_empty() {
                    let (taken, _) = held.swap_remove(choice as usize % held.len());
                    ranges.give_back(taken);
                } else if let Some(taken) = ranges.take(len) {
                    held.push((taken, len));
                } else {
                    let largest = gaps(&held, LEN).into_iter().map(|(_, len)| len).max();
                    prop_assert!(largest.is_none_or(|gap| class_below(gap) < class_above(len)));
                }
                prop_assert_eq!(gaps(&held, LEN), listed(&ranges));
            }
        }
    }

    /// Each free range that was used comes once, and no unit behind those that were used.
    fn give_back_memory(ranges: &mut Ranges) {
        let (mut at, mut found) = (0, Vec::new());
        loop {
            match ranges.take_used(&mut at, 1) {
                Look::Found(taken, len) => {
                    assert!(taken.start + len <= ranges.used_to);
                    found.push(taken.start);
                    ranges.give_back_unused(taken);
                }
                Look::Nothing => {}
                Look::End => break,
            }
        }
        found.sort_unstable();
        assert!(found.windows(2).all(|pair| pair[0] < pair[1]), "{found:?}");
        let left = |entry: &Entry| entry.is_free && entry.was_used;
        assert!(!ranges.entries.iter().any(left), "nothing is left");
    }

    fn gaps(held: &[(Taken, u32)], len: u32) -> Vec<(u32, u32)> {
        let mut taken: Vec<(u32, u32)> =
            held.iter().map(|(taken, len)| (taken.start, *len)).collect();
        taken.sort_unstable();
        let (mut gaps, mut at) = (Vec::new(), 0);
        for (start, len) in taken.into_iter().chain([(len, 0)]) {
            assert!(start >= at, "two ranges overlap");
            gaps.extend((start > at).then_some((at, start - at)));
            at = start + len;
        }
        gaps
    }

    /// All free ranges, as the lists have them.
    fn listed(ranges: &Ranges) -> Vec<(u32, u32)> {
        let mut free = Vec::new();
        for (class, first) in ranges.first.iter().enumerate() {
            assert_eq!(ranges.filled[class / 64] >> (class % 64) & 1 == 1, *first != NONE);
            let mut number = *first;
            while let Some(entry) = ranges.entries.get(number as usize) {
                assert!(entry.is_free && class_below(entry.len) == class);
                free.push((entry.start, entry.len));
                number = entry.next;
            }
        }
        free.sort_unstable();
        free
    }
}
