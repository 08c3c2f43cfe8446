//! `[[site.filter]]`: changes of files on their way into answers (JAWS's protocol pipeline).

use crate::finding::Location;
use crate::hints::below;
use crate::items::Item;
use crate::reader::Reader;
use crate::rules;
use crate::settings::Instance;

/// A `[[site.filter]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteFilter {
    /// The change, and the URL paths that it applies to.
    pub change: RootFilter,
    /// Which `[[site.filter]]`.
    pub instance: Instance,
    /// Where it begins.
    pub location: Location,
}

/// A change of some files.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RootFilter {
    /// The prefix of their paths.
    pub prefix: String,
    /// Extensions in lower case, `none` among them; empty: all.
    pub extensions: Vec<String>,
    /// Whether server-side includes are expanded.
    pub includes: bool,
    /// The charset in Content-Type of text: `keep`, `none`, or a name.
    pub charset: String,
    /// Response fields that are added, or replace those of the site; empty ones are removed.
    pub headers: Vec<(String, String)>,
}

impl SiteFilter {
    /// Reads one `[[site.filter]]`.
    pub(crate) fn read<'i>(reader: &mut Reader<'i>, item: &Item<'i>) -> Self {
        let mut s = reader.at(item);
        let keep = "keep".to_owned();
        let change = RootFilter {
            prefix: s.text("prefix", "URL path prefix", "/".to_owned(), rules::prefix),
            extensions: s.texts("extensions", "extensions", Vec::new(), rules::file_extension),
            includes: s.flag("includes", false),
            charset: s.text("charset", "charset, `keep` or `none`", keep, rules::token),
            headers: s.pairs("headers", "field names and values", rules::header),
        };
        SiteFilter { change, instance: item.instance, location: item.location.clone() }
    }

    /// The filter for the directory that stands for `mount`; `None` if it is for other paths.
    pub(crate) fn below(&self, mount: &str) -> Option<RootFilter> {
        let prefix = below(&self.change.prefix, mount)?.to_owned();
        Some(RootFilter { prefix, ..self.change.clone() })
    }
}
