//! The differences between versions of a zone, for secondaries that have an older one (RFC 1995).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::rtype;
use crate::zone::{Line, Record, Zone, serial_of};

/// Versions that are remembered.
const MOST: usize = 64;

/// From one version to the next.
#[derive(Debug)]
struct Step {
    from: u32,
    removed: Vec<Record>,
    added: Vec<Record>,
}

impl Step {
    fn len(&self) -> usize {
        self.removed.len() + self.added.len()
    }
}

/// The last differences of a zone, the newest one last. Together they are shorter than half of the zone: a secondary that is
/// further behind is better served with all of it.
#[derive(Clone, Debug, Default)]
pub struct Journal(Vec<Arc<Step>>);

/// The changes since an older version: records that are gone, and new ones, each with its SOA first.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Difference<'j> {
    /// Those of the older version alone.
    pub removed: Vec<&'j Record>,
    /// Those of the current one alone.
    pub added: Vec<&'j Record>,
}

impl Journal {
    /// The journal with a further version of the zone. It begins anew where the serial number does not grow (RFC 1982).
    #[must_use]
    pub fn with(&self, before: &Zone, after: &Zone) -> Self {
        let (from, to) = (before.serial(), after.serial());
        if from == to && is_equal(before, after) {
            return self.clone();
        }
        if to.wrapping_sub(from) as i32 <= 0 {
            return Self::default();
        }
        let step = Step { from, removed: only_in(before, after), added: only_in(after, before) };
        let mut room = after.records().count() / 2;
        let mut steps = Vec::new();
        for step in std::iter::once(&Arc::new(step)).chain(self.0.iter().rev()).take(MOST) {
            let Some(left) = room.checked_sub(step.len()) else { break };
            steps.push(Arc::clone(step));
            room = left;
        }
        steps.reverse();
        Self(steps)
    }

    /// All that has changed since a version, in one; `None`: that version is not known.
    pub fn since(&self, serial: u32) -> Option<Difference<'_>> {
        let first = self.0.iter().position(|step| step.from == serial)?;
        // A record that came and went again is in neither version.
        let mut net: HashMap<&Record, i32, RandomState> = HashMap::default();
        let steps = self.0.get(first..).unwrap_or_default();
        for step in steps {
            step.removed.iter().for_each(|record| *net.entry(record).or_default() -= 1);
            step.added.iter().for_each(|record| *net.entry(record).or_default() += 1);
        }
        let of = |sign: i32| {
            let mut records: Vec<&Record> = net
                .iter()
                .filter(|(_, count)| **count == sign)
                .map(|(record, _)| *record)
                .collect();
            records.sort_by_key(|record| (record.rtype != rtype::SOA, &record.owner, record.rtype));
            records
        };
        let difference = Difference { removed: of(-1), added: of(1) };
        let begins =
            |records: &[&Record]| records.first().is_some_and(|first| first.rtype == rtype::SOA);
        // A secondary applies it to the version that the first SOA names.
        let is_whole = begins(&difference.removed)
            && begins(&difference.added)
            && difference.removed.first().and_then(|soa| serial_of(&soa.data)) == Some(serial);
        is_whole.then_some(difference)
    }
}

fn is_equal(one: &Zone, other: &Zone) -> bool {
    one.records().count() == other.records().count() && only_in(one, other).is_empty()
}

fn only_in(zone: &Zone, other: &Zone) -> Vec<Record> {
    let others: HashSet<Line<'_>, RandomState> = other.records().collect();
    let own = zone.records().filter(|record| !others.contains(record));
    own.map(|line| line.to_record()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::read_zone;
    use crate::name::Name;

    fn zone(serial: u32, more: &str) -> Zone {
        let apex = Name::parse("example.org.", &Name::root()).expect("a name");
        let many: String = (0..40).map(|n| format!("h{n} A 192.0.2.{n}\n")).collect();
        let text = format!(
            "$TTL 60\n@ SOA ns1 a {serial} 1 1 1 1\n@ NS ns1\nns1 A 192.0.2.1\n{many}{more}"
        );
        read_zone(&apex, "zone", &text, &mut |_| Err(String::new())).zone.expect("a zone")
    }

    fn shown(records: &[&Record]) -> Vec<String> {
        let show = |record: &&Record| match serial_of(&record.data).filter(|_| record.rtype == 6) {
            Some(serial) => format!("SOA {serial}"),
            None => format!("{} {}", record.owner, record.rtype),
        };
        records.iter().map(show).collect()
    }

    #[test]
    fn differences_of_several_versions_are_one() {
        let zones = [
            zone(1, "a A 192.0.2.9\n"),
            zone(2, "a A 192.0.2.9\nb A 192.0.2.9\n"),
            zone(4, "c A 192.0.2.9\nb A 192.0.2.9\n"),
            zone(5, "c A 192.0.2.9\n"),
        ];
        let mut journal = Journal::default();
        for pair in zones.windows(2) {
            journal = journal.with(&pair[0], &pair[1]);
        }
        let all = journal.since(1).expect("known");
        assert_eq!(shown(&all.removed), ["SOA 1", "a.example.org. 1"]);
        assert_eq!(shown(&all.added), ["SOA 5", "c.example.org. 1"]);
        let last = journal.since(4).expect("known");
        assert_eq!(
            (shown(&last.removed), shown(&last.added)),
            (vec!["SOA 4".to_owned(), "b.example.org. 1".to_owned()], vec!["SOA 5".to_owned()],)
        );
        assert_eq!(journal.since(3), None);
        assert_eq!(journal.since(5), None);
    }

    #[test]
    fn a_journal_ends_with_what_no_secondary_could_follow() {
        let (one, two) = (zone(1, ""), zone(2, "a A 192.0.2.9\n"));
        let journal = Journal::default().with(&one, &two);
        assert!(journal.since(1).is_some());
        assert!(
            journal.with(&two, &zone(2, "a A 192.0.2.9\n")).since(1).is_some(),
            "nothing changed"
        );
        assert!(
            journal.with(&two, &zone(2, "b A 192.0.2.9\n")).since(1).is_none(),
            "the same serial"
        );
        assert!(journal.with(&two, &zone(1, "")).since(1).is_none(), "back");
    }

    #[test]
    fn a_journal_is_shorter_than_the_zone() {
        let many = |from: u32| {
            (from..from + 60).map(|n| format!("x{n} TXT \"{n}\"\n")).collect::<String>()
        };
        let (one, two) = (zone(1, ""), zone(2, &many(0)));
        assert!(Journal::default().with(&one, &two).since(1).is_none(), "more than half");
        let mut journal = Journal::default();
        let mut before = zone(1, "");
        for serial in 2..200 {
            let after = zone(serial, &format!("y{serial} A 192.0.2.7\n"));
            journal = journal.with(&before, &after);
            before = after;
        }
        let records: usize = journal.0.iter().map(|step| step.len()).sum();
        assert!(records <= before.records().count() / 2, "{records}");
        assert!(journal.since(198).is_some() && journal.since(2).is_none());
    }
}
