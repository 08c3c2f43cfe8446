//! The interfaces that the programs are on, kept up to date while interfaces come and go.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::SocketAddr;

use crate::net::attach::Interfaces;
use crate::net::interfaces::{Interface, carrying, is_gone};
use crate::unavailable::Unavailable;

/// Interfaces with programs, by number, and those that refused them.
#[derive(Debug, Default)]
pub struct Carriers {
    on: BTreeMap<u32, String>,
    refused: HashMap<u32, String>,
    /// Interfaces on which somebody else's program comes before ours.
    not_first: Vec<u32>,
}

/// A change that an update made or found.
#[derive(Debug)]
pub enum Change {
    /// The programs are on this interface from now on.
    Added(String),
    /// This interface is not there any more.
    Gone(String),
    /// The programs cannot be put on this interface; that is not tried again until
    /// [`Carriers::forgive`].
    Refused(String, Unavailable),
    /// Somebody else's program comes before ours: nothing is answered on this interface.
    NotFirst(String),
    /// Our program comes first there again.
    FirstAgain(String),
}

impl Carriers {
    /// Puts the programs on the interfaces among `all` that carry `listeners` and have none. Programs on
    /// interfaces that lost an address or went down stay: connections need them.
    pub fn update(
        &mut self,
        programs: &Interfaces,
        listeners: &[SocketAddr],
        all: &[Interface],
    ) -> Vec<Change> {
        let mut changes = self.let_go(programs);
        for interface in carrying(listeners, all) {
            let Interface { index, name, bare, .. } = interface;
            if self.on.contains_key(index) || self.refused.contains_key(index) {
                continue;
            }
            let attached =
                if *bare { programs.attach_bare(*index) } else { programs.attach(*index) };
            changes.push(match attached {
                Ok(()) => {
                    self.on.insert(*index, name.clone());
                    Change::Added(name.clone())
                }
                Err(unavailable) => {
                    self.refused.insert(*index, name.clone());
                    Change::Refused(name.clone(), unavailable)
                }
            });
        }
        changes
    }

    /// Looks for programs of others before ours: see [`Interfaces::look_at_chains`].
    pub fn look_at_chains(&mut self, programs: &Interfaces) -> io::Result<Vec<Change>> {
        let not_first = programs.look_at_chains()?;
        let change = |(index, name): (&u32, &String)| match (
            self.not_first.contains(index),
            not_first.contains(index),
        ) {
            (false, true) => Some(Change::NotFirst(name.clone())),
            (true, false) => Some(Change::FirstAgain(name.clone())),
            _ => None,
        };
        let changes = self.on.iter().filter_map(change).collect();
        self.not_first = not_first;
        Ok(changes)
    }

    /// Lets the next update try again the interfaces that refused the programs.
    pub fn forgive(&mut self) {
        self.refused.clear();
    }

    /// Whether an interface refused the programs: packets on it would not be translated.
    pub fn any_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Takes the programs off all of them.
    pub fn detach(&mut self, programs: &Interfaces) {
        for index in std::mem::take(&mut self.on).keys() {
            programs.detach(*index);
        }
    }

    /// Numbers and names.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &str)> {
        self.on.iter().map(|(index, name)| (*index, name.as_str()))
    }

    /// Names, with commas, for people.
    pub fn list(&self) -> String {
        self.on.values().map(String::as_str).collect::<Vec<_>>().join(", ")
    }

    fn let_go(&mut self, programs: &Interfaces) -> Vec<Change> {
        self.refused.retain(|index, _| !is_gone(*index));
        let gone: Vec<u32> = self.on.keys().copied().filter(|index| is_gone(*index)).collect();
        let names = gone.into_iter().filter_map(|index| {
            programs.detach(index);
            self.on.remove(&index)
        });
        names.map(Change::Gone).collect()
    }
}
