//! Which machines keep an answer for the fleet: its owners.
//!
//! ```text
//!  a miss ── Roster::decide ──> this machine is the first owner ──> its server
//!                          └──> another one is ──> that one; then its server, if that one cannot
//! ```
//!
//! A key has one owner, the first machine in an order of its own ([`order`]). A hot key has more: each of its owners counts its
//! uses ([`Heat`]), and asks for another one while they are too many, as LARD with replication does (Pai and others, ASPLOS 1998).
//! An owner that has too much to do for the others gives up keys to the machines behind it ([`Shed`]): a bounded load (Mirrokni
//! and others, SODA 2018), with the loads that machines tell of themselves. All machines hear the same words, so all name the
//! same owners. A machine asks another one only where no purge can be missed ([`Footing`]).

mod footing;
mod heat;
mod order;
mod shed;

use std::collections::HashMap;

pub use footing::Footing;
pub(crate) use heat::MOST_TOLD;
pub use heat::{Heat, Hot};
pub use shed::Shed;

/// A machine, by its own words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// Its name.
    pub name: String,
    /// The parts of its keys, of 256, that it has given up.
    pub shed: u8,
    /// Its hot keys.
    pub hot: Vec<Hot>,
}

/// The machines that keep answers for one another, as one of them knows them.
#[derive(Debug, Default)]
pub struct Roster {
    machines: Vec<Machine>,
    /// This one; `None`: it keeps nothing for others.
    own: Option<usize>,
    /// How many owners hot keys have.
    owners: HashMap<u64, usize>,
}

#[derive(Debug)]
struct Machine {
    name: String,
    seed: u64,
    shed: u8,
}

/// The way to an answer that this machine does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision<'r> {
    /// To its server. All others ask this machine, which keeps the answer.
    Server,
    /// To another machine, the first owner.
    Ask {
        /// Its name.
        name: &'r str,
        /// This machine is an owner as well, and keeps the answer.
        keeps: bool,
    },
}

/// Owners of one key at most.
const MOST: usize = 16;

/// Machines at most: each decision looks at all of them.
const MOST_MACHINES: usize = 64;

impl Roster {
    /// The fleet of the machine `own`. Of several with one name the first counts, and of too many those with the first names.
    pub fn new(own: &str, mut all: Vec<Owner>) -> Self {
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all.dedup_by(|later, first| later.name == first.name);
        all.truncate(MOST_MACHINES);
        let mut owners = HashMap::new();
        for Hot { key, owners: wanted } in all.iter().flat_map(|owner| owner.hot.iter().copied()) {
            let most = all.len().min(MOST);
            let known = owners.entry(key).or_insert(1);
            *known = usize::from(wanted).clamp(*known, most.max(*known));
        }
        let machine = |owner: Owner| {
            let seed = order::seed(&owner.name);
            Machine { name: owner.name, seed, shed: owner.shed }
        };
        let machines: Vec<_> = all.into_iter().map(machine).collect();
        let own = machines.iter().position(|machine| machine.name == own);
        Self { machines, own, owners }
    }

    /// The way to the answer for a key. This allocates nothing.
    pub fn decide(&self, key: u64) -> Decision<'_> {
        let Some(own) = self.own else { return Decision::Server };
        let owners = self.owners_of(key);
        match owners.as_slice().first() {
            Some(first) if *first != own => {
                let name = self.machines.get(*first).map_or("", |machine| &machine.name);
                Decision::Ask { name, keeps: owners.as_slice().contains(&own) }
            }
            _ => Decision::Server,
        }
    }

    /// Names of the owners of a key, the first owner first.
    pub fn owners(&self, key: u64) -> Vec<&str> {
        let owners = self.owners_of(key);
        let names = owners.as_slice().iter().filter_map(|&number| self.machines.get(number));
        names.map(|machine| machine.name.as_str()).collect()
    }

    fn owners_of(&self, key: u64) -> order::First {
        let wanted = self.owners.get(&key).copied().unwrap_or(1);
        let machines = self.machines.iter().map(|machine| (machine.seed, machine.shed));
        order::first(machines, key, wanted.min(MOST))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn owner(number: usize) -> Owner {
        Owner { name: format!("m{number}"), ..Owner::default() }
    }

    fn fleet(machines: usize) -> Vec<Owner> {
        (0..machines).map(owner).collect()
    }

    #[test]
    fn one_machine_is_alone_and_one_that_is_not_listed_asks_nobody() {
        let alone = Roster::new("m0", fleet(1));
        assert_eq!(alone.decide(7), Decision::Server);
        let stranger = Roster::new("other", fleet(3));
        assert!((0..100).all(|key| stranger.decide(key) == Decision::Server));
        assert_eq!(Roster::default().decide(7), Decision::Server);
    }

    #[test]
    fn a_machine_that_leaves_gives_its_own_keys_away_and_no_others_move() {
        let (all, fewer) = (Roster::new("m0", fleet(5)), {
            let mut fewer = fleet(5);
            fewer.remove(3);
            Roster::new("m0", fewer)
        });
        let mut moved = 0;
        for key in 0..20_000 {
            let (before, after) = (all.owners(key)[0], fewer.owners(key)[0]);
            assert!(before == "m3" || before == after, "{key}: {before}, {after}");
            moved += u32::from(before == "m3");
        }
        assert!((3_600..4_400).contains(&moved), "{moved}");
    }

    #[test]
    fn a_hot_key_has_more_owners_and_the_first_is_the_same() {
        let key = 99;
        let plain = Roster::new("m0", fleet(4)).owners(key)[0].to_owned();
        let mut all = fleet(4);
        all[1].hot = vec![Hot { key, owners: 3 }];
        all[2].hot = vec![Hot { key, owners: 2 }];
        let hot = Roster::new("m0", all.clone());
        assert_eq!((hot.owners(key).len(), hot.owners(key)[0]), (3, plain.as_str()));
        all[1].hot = vec![Hot { key, owners: 200 }];
        assert_eq!(Roster::new("m0", all).owners(key).len(), 4, "as many as there are");
        for number in 0..4 {
            let name = format!("m{number}");
            let mut all = fleet(4);
            all[1].hot = vec![Hot { key, owners: 2 }];
            let roster = Roster::new(&name, all);
            let place = roster.owners(key).iter().position(|owner| *owner == name);
            match (place, roster.decide(key)) {
                (Some(0), Decision::Server) => {}
                (Some(1), Decision::Ask { keeps: true, .. })
                | (None, Decision::Ask { keeps: false, .. }) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_machine_gives_up_the_part_of_its_keys_that_it_says() {
        let mut all = fleet(4);
        all[2].shed = 64;
        let (plain, shed) = (Roster::new("m0", fleet(4)), Roster::new("m0", all));
        let (mut had, mut has) = (0_u32, 0_u32);
        for key in 0..40_000 {
            let (before, after) = (plain.owners(key)[0], shed.owners(key)[0]);
            assert!(before == "m2" || before == after);
            had += u32::from(before == "m2");
            has += u32::from(after == "m2");
        }
        let kept = f64::from(has) / f64::from(had);
        assert!((0.72..0.78).contains(&kept), "{kept}");
    }

    #[test]
    fn a_decision_and_a_use_allocate_nothing() {
        let mut all = fleet(MOST_MACHINES);
        all[0].hot = (0..64).map(|key| Hot { key, owners: 255 }).collect();
        let (roster, mut heat) = (Roster::new("m1", all), Heat::new(std::time::Duration::ZERO));
        let mut asks = 0;
        let counted = allocation_counter::measure(|| {
            for key in 0..1_000 {
                asks += u32::from(roster.decide(key) != Decision::Server);
                heat.used(key);
            }
        });
        assert_eq!(counted.count_total, 0);
        assert!(asks > 900);
    }

    proptest! {
        /// From any words of any machines: all machines that have heard the same name the same owners, each once, and
        /// exactly one of them asks its server.
        #[test]
        fn all_machines_agree(
            shed in prop::collection::vec(any::<u8>(), 1..9),
            hot in prop::collection::vec((0_u64..8, any::<u8>(), 0_usize..9), 0..20),
            key in 0_u64..16,
        ) {
            let mut all: Vec<_> = shed.iter().enumerate()
                .map(|(number, &shed)| Owner { shed, ..owner(number) }).collect();
            for (key, owners, at) in hot {
                let at = at % all.len();
                all[at].hot.push(Hot { key, owners });
            }
            let mut servers = 0;
            let mut named = BTreeSet::new();
            for number in 0..all.len() {
                let mut heard = all.clone();
                heard.rotate_left(number);
                let roster = Roster::new(&format!("m{number}"), heard);
                let owners: Vec<_> = roster.owners(key).into_iter().map(str::to_owned).collect();
                let once: BTreeSet<_> = owners.iter().collect();
                prop_assert_eq!(once.len(), owners.len());
                prop_assert!(!owners.is_empty());
                match roster.decide(key) {
                    Decision::Server => servers += 1,
                    Decision::Ask { name, keeps } => {
                        prop_assert_eq!(name, &owners[0]);
                        prop_assert_eq!(keeps, owners.contains(&format!("m{number}")));
                    }
                }
                named.insert(owners);
            }
            prop_assert_eq!((servers, named.len()), (1, 1));
        }
    }
}
