//! The police: which clients are let in, and how often they may come.
//!
//! Two questions, of a connection that begins and of a request: is the client's prefix denied, and is there a token
//! left for it? The kernel asks them at the SYN and before it answers (`bpf/include/afpa/conn/police.h`), user mode
//! when it has accepted a connection and before it answers. Both decide by the rules that stand here:
//!
//! - **The longest prefix wins.** Of a prefix that is both allowed and denied, allowed wins.
//! - **Allowed is more than not denied**: an allowed client is never refused, and takes no token from others.
//! - **A bucket** holds `burst` tokens and gets `rate` a second. A client is a prefix of its address, so one that has
//!   a whole /64 has one bucket. A bucket that refuses gives no token.
//! - **A client's bucket is asked before everybody's**, so a client beyond its own rate costs others nothing.
//! - **Classes have shares**: of the connections of all clients, each class gets its share whatever the others do.
//!
//! Nothing here reads a clock, a file or a socket. The threads of a process share a [`Police`].

mod bucket;
mod classes;
mod current;
mod kernel;
mod limits;
mod lists;
mod orders;
mod police;
mod prefix;
mod prefix_map;
mod quota;
mod rules;
mod table;

#[cfg(test)]
mod class_tests;
#[cfg(test)]
mod tests;

pub use bucket::Pace;
pub use classes::{Class, Classes};
pub use kernel::{Enforced, PoliceKernel, PrefixKernel};
pub use limits::{Limits, Rate};
pub use lists::PoliceSettings;
pub use orders::{ListedDeny, OrderRefused, Origin};
pub use police::{Counts, Police, Refusal};
pub use prefix::{NotAPrefix, Prefix, read_lines};
pub use prefix_map::PrefixMap;
pub use quota::{Quota, QuotaTable, SharedQuota};
pub use rules::{Rule, Rules, Step};
pub use table::{Masks, What, words_of_table};
