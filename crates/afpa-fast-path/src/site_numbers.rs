//! The kernel's numbers for sites, and the counts of its answers for each of them, over reloads.

use std::collections::{HashMap, HashSet, VecDeque};

use afpa_bpf::{SITES_COUNTED, SiteCount};

/// Most sites of one configuration that are counted each for itself. The sites of the configuration before
/// still answer while the next ones enter the kernel, and need places of their own.
const COUNTED: usize = SITES_COUNTED / 2 - 1;

/// Numbers and counts of sites. A site is the same after a reload when it has the same name; of several with
/// one name, when it has the same position among them.
#[derive(Default)]
pub(crate) struct SiteNumbers {
    counted: u32,
    uncounted: u32,
    /// The counts of numbers that are not used any more.
    past: HashMap<Name, AnswerCount>,
    /// The sites of this configuration, in its order, and behind them those of the configuration before.
    live: VecDeque<NumberedSite>,
    current: usize,
}

type Name = (String, usize);

/// Answers with content or their heads, and 304s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnswerCount {
    /// Answers with content, or their heads.
    pub whole: u64,
    /// 304s.
    pub not_modified: u64,
}

struct NumberedSite {
    name: Name,
    site: u32,
    /// The count of earlier sites at its place.
    before: AnswerCount,
}

impl SiteNumbers {
    /// Numbers for the sites of the next configuration, never used before; `read` returns the count
    /// of answers at the place of a number.
    pub(crate) fn enter(
        &mut self,
        names: &[String],
        read: impl Fn(u32) -> AnswerCount,
    ) -> Vec<u32> {
        // The sites behind are those of the configuration before the last. No program is at work for them.
        let over = self.live.split_off(self.current).into_iter();
        for NumberedSite { name, site, before } in over.filter(|live| is_counted(live.site)) {
            self.past.entry(name).or_default().add(read(site).since(before));
        }
        let mut numbers = Vec::with_capacity(names.len());
        let mut entered = VecDeque::new();
        let mut known: HashMap<&str, usize> = HashMap::new();
        for name in names {
            let nth = known.entry(name).and_modify(|nth| *nth += 1).or_default();
            let name = (name.clone(), *nth);
            let site = if numbers.len() < COUNTED { self.next() } else { self.next_uncounted() };
            let before = read(site);
            numbers.push(site);
            entered.push_back(NumberedSite { name, site, before });
        }
        self.current = entered.len();
        entered.append(&mut self.live);
        self.live = entered;
        self.forget_names();
        numbers
    }

    /// The answers for each of the sites of this configuration, in its order, since the start.
    pub(crate) fn counts(&self, read: impl Fn(u32) -> AnswerCount) -> Vec<AnswerCount> {
        let mut sums: HashMap<&Name, AnswerCount> = HashMap::new();
        for live in self.live.iter().filter(|live| is_counted(live.site)) {
            sums.entry(&live.name).or_default().add(read(live.site).since(live.before));
        }
        let count = |live: &NumberedSite| {
            let mut count = self.past.get(&live.name).copied().unwrap_or_default();
            count.add(sums.get(&live.name).copied().unwrap_or_default());
            count
        };
        self.live.iter().take(self.current).map(count).collect()
    }

    fn next(&mut self) -> u32 {
        self.counted = self.counted.wrapping_add(1);
        if !is_counted(self.counted) {
            self.counted = self.counted.wrapping_add(1);
        }
        self.counted
    }

    /// Sites that are not counted share the place 0.
    fn next_uncounted(&mut self) -> u32 {
        self.uncounted = self.uncounted.wrapping_add(SITES_COUNTED as u32);
        self.uncounted
    }

    /// Counts of sites that are gone are not kept for ever.
    fn forget_names(&mut self) {
        let live: HashSet<&Name> = self.live.iter().map(|live| &live.name).collect();
        self.past.retain(|name, _| live.contains(name));
    }
}

fn is_counted(site: u32) -> bool {
    !(site as usize).is_multiple_of(SITES_COUNTED)
}

impl AnswerCount {
    fn since(self, before: AnswerCount) -> AnswerCount {
        AnswerCount {
            whole: self.whole.saturating_sub(before.whole),
            not_modified: self.not_modified.saturating_sub(before.not_modified),
        }
    }

    /// Answers of both kinds.
    pub fn all(self) -> u64 {
        self.whole + self.not_modified
    }

    fn add(&mut self, more: AnswerCount) {
        self.whole += more.whole;
        self.not_modified += more.not_modified;
    }
}

impl From<SiteCount> for AnswerCount {
    fn from(count: SiteCount) -> Self {
        AnswerCount { whole: count.whole, not_modified: count.not_modified }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// The counts of the programs, imitated.
    #[derive(Default)]
    struct Places(RefCell<HashMap<usize, u64>>);

    impl Places {
        fn answer(&self, site: u32, times: u64) {
            *self.0.borrow_mut().entry(site as usize % SITES_COUNTED).or_default() += times;
        }

        fn read(&self, site: u32) -> AnswerCount {
            let places = self.0.borrow();
            let whole = places.get(&(site as usize % SITES_COUNTED)).copied().unwrap_or_default();
            AnswerCount { whole, not_modified: 0 }
        }
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn counts_go_on_after_reloads() {
        let (places, mut numbers) = (Places::default(), SiteNumbers::default());
        let read = |site| places.read(site);
        let counts = |numbers: &SiteNumbers| -> Vec<u64> {
            numbers.counts(read).iter().map(|count| count.whole).collect()
        };
        let first = numbers.enter(&names(&["a", "b", "a"]), read);
        places.answer(first[0], 10);
        places.answer(first[2], 3);
        assert_eq!(counts(&numbers), [10, 0, 3]);
        let second = numbers.enter(&names(&["b", "a"]), read);
        assert!(second.iter().all(|number| !first.contains(number)));
        places.answer(second[1], 1);
        // A program's last turn.
        places.answer(first[0], 1);
        assert_eq!(counts(&numbers), [0, 12]);
        numbers.enter(&names(&["a"]), read);
        assert_eq!(counts(&numbers), [12]);
        numbers.enter(&names(&["a"]), read);
        assert_eq!(counts(&numbers), [12]);
    }

    #[test]
    fn numbers_of_two_configurations_share_no_place() {
        let (places, mut sites) = (Places::default(), SiteNumbers::default());
        let read = |site| places.read(site);
        let many: Vec<String> = (0..COUNTED + 5).map(|number| number.to_string()).collect();
        let mut before: HashSet<usize> = HashSet::new();
        for round in 1..10 {
            let numbers = sites.enter(&many, read);
            assert_eq!(numbers.iter().collect::<HashSet<_>>().len(), many.len());
            let counted = &numbers[..COUNTED];
            let taken: HashSet<usize> =
                counted.iter().map(|number| *number as usize % SITES_COUNTED).collect();
            assert_eq!(taken.len(), COUNTED);
            assert!(taken.is_disjoint(&before) && !taken.contains(&0));
            before = taken;
            numbers.iter().for_each(|number| places.answer(*number, 1));
            let counts = sites.counts(read);
            assert!(counts[..COUNTED].iter().all(|count| count.whole == round), "{round}");
            assert!(counts[COUNTED..].iter().all(|count| count.whole == 0));
        }
    }
}
