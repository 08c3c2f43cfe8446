//! `[[site.header]]`, `[site.cors]`, and the same of paths and content groups: fields of answers, and of requests to
//! servers.

use std::time::Duration;

use afpa_http::edits::{Change, Cors, FieldRule};

use crate::finding::Location;
use crate::items::Item;
use crate::reader::Reader;
use crate::rules::{self, Statuses};
use crate::settings::Instance;

/// The fields that a site, a path or a content group wants changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FieldSettings {
    /// Every `[[site.header]]`.
    pub headers: Vec<HeaderRule>,
    /// `[site.cors]`, if it lets anybody in.
    pub cors: Option<Cors>,
}

/// A `[[site.header]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct HeaderRule {
    /// The change, and its conditions.
    pub rule: FieldRule,
    /// The name of its section.
    pub section: &'static str,
    /// Which of that name.
    pub instance: Instance,
    /// Where it begins.
    pub location: Location,
}

/// The names of both sections at one level.
#[derive(Clone, Copy)]
pub(crate) struct Names {
    pub(crate) header: &'static str,
    pub(crate) cors: &'static str,
}

/// The names of the settings of sites, paths and content groups.
pub(crate) const NAMES: [Names; 3] = [
    Names { header: "site.header", cors: "site.cors" },
    Names { header: "site.path.header", cors: "site.path.cors" },
    Names { header: "site.path.content.header", cors: "site.path.content.cors" },
];

/// The methods that pages of other origins may use, unless a list says otherwise.
const METHODS: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

impl FieldSettings {
    /// Reads the sections of this level inside of an item.
    pub(crate) fn read<'i>(reader: &mut Reader<'i>, names: Names, item: &Item<'i>) -> Self {
        let within = reader.within(names.cors, item);
        let cors = read_cors(reader, &within);
        let rules = reader.items(names.header, Some(item));
        let headers = rules.into_iter().map(|rule| read_header(reader, &rule)).collect();
        Self { headers, cors }
    }

    /// Whether they change nothing.
    pub fn is_empty(&self) -> bool {
        self.headers.is_empty() && self.cors.is_none()
    }
}

fn read_header<'i>(reader: &mut Reader<'i>, item: &Item<'i>) -> HeaderRule {
    let mut s = reader.at(item);
    let (prefix, kind) = ("/".to_owned(), "field names and values");
    let prefix = s.text("prefix", "URL path prefix", prefix, rules::prefix);
    let statuses = s.texts_or_counts("status", "statuses and classes", rules::statuses);
    let types = s.texts("types", "media types", Vec::new(), rules::media_pattern);
    let answer = Change {
        set: s.pairs("set", kind, rules::set_field),
        add: s.pairs("add", kind, rules::added_answer_field),
        remove: s.texts("remove", "field names", Vec::new(), rules::removed_field),
    };
    let request = Change {
        set: s.pairs("request_set", kind, rules::request_field),
        add: s.pairs("request_add", kind, rules::request_field),
        remove: s.texts("request_remove", "field names", Vec::new(), rules::removed_request_field),
    };
    let prefix = if prefix == "/" { Vec::new() } else { prefix.into_bytes() };
    let statuses = statuses.into_iter().map(|Statuses(first, last)| (first, last)).collect();
    let rule = FieldRule { prefix, statuses, types, answer, request };
    HeaderRule {
        rule,
        section: item.path,
        instance: item.instance,
        location: item.location.clone(),
    }
}

/// Of `expose`, the line is a change like others.
fn read_cors<'i>(reader: &mut Reader<'i>, item: &Item<'i>) -> Option<Cors> {
    let mut s = reader.at(item);
    let methods = METHODS.map(str::to_owned).to_vec();
    let hour = Duration::from_secs(3600);
    let origins = s.texts("origins", "origins", Vec::new(), rules::origin);
    let methods = s.texts("methods", "methods", methods, rules::method);
    let headers = s.texts("headers", "field names", Vec::new(), rules::token);
    let expose = s.texts("expose", "field names", Vec::new(), rules::token);
    let credentials = s.flag("credentials", false);
    let max_age = s.duration("max_age", hour, Duration::ZERO..=24 * hour);
    (!origins.is_empty()).then(|| Cors {
        origins,
        credentials,
        methods: methods.join(", "),
        headers: (!headers.is_empty()).then(|| headers.join(", ")),
        expose: (!expose.is_empty()).then(|| expose.join(", ")),
        max_age: max_age.as_secs().to_string(),
    })
}
