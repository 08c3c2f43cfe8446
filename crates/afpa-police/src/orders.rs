//! Orders of the operator to a running process: `afpa deny`.

use thiserror::Error;

use crate::police::Police;
use crate::prefix::{NotAPrefix, Prefix};
use crate::rules::{Rule, Rules};

/// The origin of a denial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The configuration.
    Configured,
    /// An order since the start.
    Ordered,
}

/// A denied prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedDeny {
    /// The prefix.
    pub prefix: Prefix,
    /// The origin of the denial.
    pub origin: Origin,
}

/// Why an order is not carried out.
#[derive(Debug, Error)]
pub enum OrderRefused {
    /// The text is no prefix.
    #[error("{0} ({remedy})", remedy = .0.remedy())]
    NotAPrefix(#[from] NotAPrefix),
    /// It is allowed, which goes before.
    #[error("{0} is on the allow list, which goes before (remove it there, and reload)")]
    Allowed(Prefix),
    /// The configuration denies it.
    #[error("{0} is denied by the configuration (remove it there, and reload)")]
    Configured(Prefix),
    /// Nobody denies exactly this prefix.
    #[error("{0} is not denied (`afpa deny list` shows what is)")]
    NotDenied(Prefix),
    /// There are very many.
    #[error(
        "{0} prefixes are denied by orders already (put them into a file of the configuration)"
    )]
    TooMany(usize),
    /// The kernel does not take it.
    #[error("the kernel does not take it: {0}")]
    Kernel(#[from] std::io::Error),
}

/// Prefixes that can be denied by order.
const MOST_ORDERS: usize = 100_000;

impl Police {
    /// Denies a prefix from now on, until [`undeny`](Self::undeny) or the end of the process.
    ///
    /// # Errors
    /// When it is allowed, or the kernel does not take it; then nothing has changed.
    pub fn deny(&self, text: &str) -> Result<Prefix, OrderRefused> {
        let prefix: Prefix = text.parse()?;
        let mut lists = self.lists();
        if Rules::of(lists.configured.allow.iter().copied(), []).exactly(prefix)
            == Some(Rule::Allow)
        {
            return Err(OrderRefused::Allowed(prefix));
        }
        if lists.ordered.len() >= MOST_ORDERS {
            return Err(OrderRefused::TooMany(MOST_ORDERS));
        }
        if lists.ordered.insert(prefix)
            && let Err(error) = self.adopt(&lists)
        {
            lists.ordered.remove(&prefix);
            // It was as before for the kernel; so it is for user mode.
            let _ = self.adopt(&lists);
            return Err(error.into());
        }
        Ok(prefix)
    }

    /// Takes an order back.
    ///
    /// # Errors
    /// When there was none for exactly this prefix, or the kernel does not take it.
    pub fn undeny(&self, text: &str) -> Result<Prefix, OrderRefused> {
        let prefix: Prefix = text.parse()?;
        let mut lists = self.lists();
        if !lists.ordered.remove(&prefix) {
            return Err(match lists.configured.deny.contains(&prefix) {
                true => OrderRefused::Configured(prefix),
                false => OrderRefused::NotDenied(prefix),
            });
        }
        if let Err(error) = self.adopt(&lists) {
            lists.ordered.insert(prefix);
            // The kernel denies it as before; so does user mode.
            let _ = self.adopt(&lists);
            return Err(error.into());
        }
        Ok(prefix)
    }

    /// Denies prefixes, or takes such orders back, one after another and in one change: each change compiles all rules anew. Those that
    /// are allowed, or too many, are left out. Returns how many these were.
    ///
    /// # Errors
    /// When the kernel does not take it; then nothing has changed.
    pub fn order_all(&self, orders: &[(Prefix, bool)]) -> Result<usize, OrderRefused> {
        let mut lists = self.lists();
        let allowed = Rules::of(lists.configured.allow.iter().copied(), []);
        let before = lists.ordered.clone();
        let mut left_out = 0;
        for (prefix, is_denied) in orders {
            let has_room = lists.ordered.len() < MOST_ORDERS || lists.ordered.contains(prefix);
            match is_denied {
                false => _ = lists.ordered.remove(prefix),
                true if has_room && allowed.exactly(*prefix).is_none() => {
                    lists.ordered.insert(*prefix);
                }
                true => left_out += 1,
            }
        }
        if lists.ordered == before {
            return Ok(left_out);
        }
        if let Err(error) = self.adopt(&lists) {
            lists.ordered = before;
            // It was as before for the kernel; so it is for user mode.
            let _ = self.adopt(&lists);
            return Err(error.into());
        }
        Ok(left_out)
    }

    /// Whether an order since the start denies exactly this prefix.
    pub fn has_ordered(&self, prefix: Prefix) -> bool {
        self.lists().ordered.contains(&prefix)
    }

    /// Denies the prefix of an operator's order, or takes such an order back. Returns the effect, in words.
    ///
    /// # Errors
    /// With the reason, in words.
    pub fn order(&self, prefix: Option<&str>, denied: bool) -> Result<String, String> {
        let prefix = prefix.ok_or("this needs a prefix: prefix=PREFIX")?;
        let (done, what) = match denied {
            true => (self.deny(prefix), "is denied"),
            false => (self.undeny(prefix), "is not denied any more"),
        };
        done.map(|prefix| format!("{prefix} {what}")).map_err(|refused| refused.to_string())
    }

    /// All denied prefixes, in the order of the addresses. A prefix denied by both origins is listed once for each.
    pub fn denied(&self) -> Vec<ListedDeny> {
        let lists = self.lists();
        let listed = |origin| move |prefix: &Prefix| ListedDeny { prefix: *prefix, origin };
        let configured = lists.configured.deny.iter().map(listed(Origin::Configured));
        let mut all: Vec<_> =
            configured.chain(lists.ordered.iter().map(listed(Origin::Ordered))).collect();
        all.sort_by_key(|listed| listed.prefix);
        all.dedup();
        all
    }

    /// [`denied`](Self::denied) as text: a line for each prefix, with its origin.
    pub fn list_denied(&self) -> String {
        let lines = self.denied().into_iter().map(|listed| {
            let origin = match listed.origin {
                Origin::Configured => "configuration",
                Origin::Ordered => "order",
            };
            format!("{:<39}  {origin}\n", listed.prefix.to_string())
        });
        lines.collect()
    }
}
