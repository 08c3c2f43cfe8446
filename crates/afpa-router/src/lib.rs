//! The layer-7 router (IBM paper, section 4): from a request to its request set.
//!
//! A [`Table`] describes the paper's hierarchy: IP address and TCP port (a *listener*), host names,
//! URL path prefix, content group. [`Router::compile`] checks it and turns it into a structure whose
//! cost per request depends on the length of the host and the path, not on the number of request
//! sets. [`Router::route`] answers a [`Question`] with a [`Verdict`]: the request set, its action, and the
//! path below the file-system directory or at the server. The router reads no clock, no file and no socket,
//! and routing allocates nothing. All cores share one router, which a reload replaces as a whole.
//!
//! How one request set is chosen:
//!
//! 1. listener and host name choose the site: an exact name before a wildcard, the longest wildcard
//!    before a shorter one, then the first regular expression that matches, and last the site that answers for any name;
//! 2. of the prefixes that begin the path, the longest is tried first; of one spelling, `exact` comes
//!    before `no recursion`, and that before `recursion`;
//! 3. within a path, the content groups with conditions (method, client, path, query, fields, cookies) are tried in their
//!    order, then the one without;
//! 4. if no content group matches there, the next shorter prefix is tried.
//!
//! [`Router::explain`] takes the same steps and reports them.
#![forbid(unsafe_code)]

mod compile;
mod conditions;
mod explain;
mod expression;
mod extension;
mod extension_table;
mod hosts;
mod ids;
mod loops;
mod pattern;
mod prefixes;
mod query;
mod question;
mod router;
mod site_paths;
mod steps;
mod table;
#[cfg(test)]
mod tests;
mod unreachable;
mod variables;
mod verdict;

pub use compile::Conflict;
pub use conditions::{
    ClientNetwork, Conditions, FieldCondition, FieldSource, MAX_CONDITIONAL, Unmet,
};
pub use explain::{Considered, Explanation, MatchResult};
pub use expression::{BadExpression, Expression};
pub use extension::{Extension, MAX_EXTENSION};
pub use hosts::HostMatch;
pub use ids::{GroupId, ListenerId, RequestSetId, RootId, SiteId};
pub use loops::MOST_REWRITES;
pub use pattern::Pattern;
pub use question::{Fields, Question};
pub use router::{RequestSet, Router};
pub use table::{
    Action, Affinity, Content, ContentGroup, Fallback, Fixed, HostPattern, PathEntry, Reach,
    Redirect, Rewrite, Scripts, SiteEntry, Table,
};
pub use variables::Misuse;
pub use verdict::{Rewritten, Unrouted, Verdict};
