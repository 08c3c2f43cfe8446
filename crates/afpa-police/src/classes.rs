//! Classes of clients, and the share of the new connections that each gets when there are more than the rate allows.
//!
//! A share is a bucket of the class's own, asked before the bucket of all clients. Each token from a share is charged
//! to the bucket of all, too, which may go into debt. So the shares and the rest together stay within the rate of all.
//! Clients of any class may take, first come first served, the tokens that a class leaves.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};

use afpa_abi::POLICE_CLASSES;

use crate::bucket::Pace;
use crate::prefix::Prefix;
use crate::prefix_map::PrefixMap;

/// Some clients, by where they come from or where they go to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// Its name in statistics.
    pub name: String,
    /// Its share of the new connections of all clients, in per cent, whatever the others do; 1 to 100.
    pub share: u8,
    /// Its clients.
    pub prefixes: Vec<Prefix>,
    /// Listening addresses. Clients that connect to them are in this class, unless a prefix puts them into another.
    pub listeners: Vec<SocketAddr>,
}

/// All classes. Clients in no class have the number 0, and get the tokens that the shares leave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Classes {
    names: Vec<(String, u8)>,
    prefixes: PrefixMap<u32>,
    listeners: HashMap<SocketAddr, u32>,
}

impl Classes {
    /// The most classes, besides the one of all other clients.
    pub const MOST: usize = POLICE_CLASSES - 1;
    /// The name of the class of all other clients.
    pub const OTHERS: &'static str = "others";

    /// Leaves out the classes beyond [`Classes::MOST`]. A prefix or listener of two classes belongs to the first.
    pub fn new(classes: &[Class]) -> Self {
        let numbered = || (1..).zip(classes).take(Self::MOST);
        let mut prefixes = BTreeMap::new();
        let mut listeners = HashMap::new();
        for (number, class) in numbered() {
            for prefix in &class.prefixes {
                prefixes.entry(*prefix).or_insert(number);
            }
            for listener in &class.listeners {
                listeners.entry(*listener).or_insert(number);
            }
        }
        let all = numbered().map(|(_, class)| u32::from(class.share)).sum::<u32>();
        let rest = 100_u32.saturating_sub(all) as u8;
        let mut names = Vec::new();
        if !classes.is_empty() {
            names.push((Self::OTHERS.to_owned(), rest));
            names.extend(numbered().map(|(_, class)| (class.name.clone(), class.share)));
        }
        Self { names, prefixes: PrefixMap::new(prefixes), listeners }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Name and share in per cent of each, by its number.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u8)> {
        self.names.iter().map(|(name, share)| (name.as_str(), *share))
    }

    /// Prefixes and the numbers of their classes.
    pub fn prefixes(&self) -> &PrefixMap<u32> {
        &self.prefixes
    }

    /// Listeners and the numbers of their classes.
    pub fn listeners(&self) -> impl Iterator<Item = (SocketAddr, u32)> {
        self.listeners.iter().map(|(listener, number)| (*listener, *number))
    }

    /// The class of a client: that of its longest prefix, else that of the listener it came by, else 0.
    pub fn of(&self, client: IpAddr, listener: Option<SocketAddr>) -> u32 {
        let by_listener = || listener.and_then(|listener| self.listeners.get(&listener).copied());
        self.prefixes.longest(client).or_else(by_listener).unwrap_or(0)
    }

    /// Each class's share of this pace, by the class's number.
    pub(crate) fn paces(&self, all: Pace) -> [Pace; POLICE_CLASSES] {
        let mut paces = [Pace::default(); POLICE_CLASSES];
        for (pace, (_, share)) in paces.iter_mut().zip(&self.names) {
            *pace = all.share(*share);
        }
        paces
    }
}
