//! `[[site.hint]]`: hints about some files, for the cache (JAWS's *hinted* caching).

use std::time::Duration;

use crate::choice::choice;
use crate::finding::Location;
use crate::items::Item;
use crate::reader::Reader;
use crate::rules;
use crate::settings::Instance;

choice! {
    /// Whether an object stays in the cache.
    Keep {
        /// As long as the policy finds room for it.
        Auto = "auto",
        /// It is not ejected.
        Always = "always",
        /// It is served and not kept.
        Never = "never",
    }
}

choice! {
    /// Which long responses go first when a worker is behind.
    Priority {
        /// Before all others.
        High = "high",
        /// By the bytes that are left.
        Normal = "normal",
        /// After all others.
        Low = "low",
    }
}

/// A `[[site.hint]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteHint {
    /// The hint, and the URL paths that it is about.
    pub hint: RootHint,
    /// Which `[[site.hint]]`.
    pub instance: Instance,
    /// Where it begins.
    pub location: Location,
}

/// A hint about some files.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RootHint {
    /// The prefix of their paths.
    pub prefix: String,
    /// Extensions in lower case, `none` among them; empty: all.
    pub extensions: Vec<String>,
    /// Whether the objects stay.
    pub keep: Keep,
    /// How often the policy has to choose one before it goes.
    pub weight: usize,
    /// Age at which an object is made anew; zero: none.
    pub expiry: Duration,
    /// Among the long responses of a worker that is behind.
    pub priority: Priority,
}

impl SiteHint {
    /// Reads one `[[site.hint]]`.
    pub(crate) fn read<'i>(reader: &mut Reader<'i>, item: &Item<'i>) -> Self {
        let mut s = reader.at(item);
        let day = Duration::from_secs(24 * 3600);
        let hint = RootHint {
            prefix: s.text("prefix", "URL path prefix", "/".to_owned(), rules::prefix),
            extensions: s.texts("extensions", "extensions", Vec::new(), rules::file_extension),
            keep: s.choice("keep", Keep::Auto),
            weight: s.count("weight", 1, 0..=16),
            expiry: s.duration("expiry", Duration::ZERO, Duration::ZERO..=day),
            priority: s.choice("priority", Priority::Normal),
        };
        SiteHint { hint, instance: item.instance, location: item.location.clone() }
    }

    /// The hint for the directory that stands for `mount`; `None` if it is for other paths.
    pub(crate) fn below(&self, mount: &str) -> Option<RootHint> {
        let prefix = below(&self.hint.prefix, mount)?.to_owned();
        Some(RootHint { prefix, ..self.hint.clone() })
    }
}

/// The part of `prefix` below a directory that stands for `mount`; `None` if the two do not meet.
pub(crate) fn below<'p>(prefix: &'p str, mount: &str) -> Option<&'p str> {
    match prefix.strip_prefix(mount) {
        Some("") => Some("/"),
        Some(rest) => Some(rest),
        None => mount.starts_with(prefix).then_some("/"),
    }
}
