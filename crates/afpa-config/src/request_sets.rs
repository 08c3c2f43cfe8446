//! The request sets of a configuration: `afpa check` prints them, `afpa route` looks one up.

use std::fmt::Write as _;

use afpa_police::Prefix;
use afpa_router::{
    Action, Content, Fallback, FieldCondition, FieldSource, GroupId, Pattern, Reach, Rewrite,
};

use crate::Loaded;
use crate::finding::Location;
use crate::hierarchy::Hierarchy;

impl Loaded {
    /// Every request set, with its action and its place in the file.
    ///
    /// ```text
    /// request sets
    ///   site www.example.org  on 127.0.0.1:8080  hosts www.example.org
    ///     /       html,css    cached from /var/www/html                 line 4
    ///     /       *           distributed to 127.0.0.1:3000             line 4
    /// ```
    pub fn request_sets(&self) -> String {
        let hierarchy = &self.routes.hierarchy;
        let mut text = "\nrequest sets\n".to_owned();
        for (index, site) in hierarchy.table.sites.iter().enumerate() {
            let configured = self.config.sites.get(index);
            let addresses = configured.into_iter().flat_map(|site| site.addresses());
            let listen: Vec<_> = addresses.map(|(listen, _)| listen.clone()).collect();
            let listen = list(&listen);
            let hosts = match &site.hosts[..] {
                [] => "any".to_owned(),
                hosts => list(hosts),
            };
            let _ = writeln!(text, "  site {}  on {listen}  hosts {hosts}", site.name);
            let mut rows = Vec::new();
            for (number, path) in site.paths.iter().enumerate() {
                for (content_number, content) in path.contents.iter().enumerate() {
                    let origins = hierarchy.origins.get(index).and_then(|paths| paths.get(number));
                    let location = origins.and_then(|origin| origin.contents.get(content_number));
                    let prefix = String::from_utf8_lossy(&path.prefix);
                    rows.push([
                        format!("{prefix}{}", reach(path.reach)),
                        content.group.to_string(),
                        self.shown(hierarchy, content),
                        self.origin(location),
                    ]);
                }
            }
            text.push_str(&columns(&rows));
        }
        text
    }

    /// The action for the requests of a request set, in words.
    pub fn shown(&self, hierarchy: &Hierarchy, content: &Content) -> String {
        let mut shown = match &content.action {
            Action::Cached { root, fallback, scripts } => {
                let root = hierarchy.root(*root);
                let directory = root.map(|root| root.directory.display().to_string());
                let fallback = fallback.as_ref().map(|fallback| self.fallback(fallback));
                let fallback = fallback.map_or(String::new(), |text| format!(", else {text}"));
                let php = scripts.as_ref().map_or(String::new(), |scripts| {
                    format!(", scripts run by {}", self.group_name(scripts.group))
                });
                format!("cached from {}{php}{fallback}", directory.unwrap_or_default())
            }
            Action::Distributed { group, affinity } => {
                let name = self.group_name(*group);
                let affinity = match affinity {
                    afpa_router::Affinity::None => "",
                    afpa_router::Affinity::Client => ", affinity client",
                    afpa_router::Affinity::Cookie => ", affinity cookie",
                };
                let rewritten = match &content.rewrite {
                    None => String::new(),
                    Some(Rewrite::Prefix { head, .. }) => {
                        format!(", as {}/", String::from_utf8_lossy(head).trim_end_matches('/'))
                    }
                    Some(Rewrite::Target(target)) => format!(", as {target}"),
                };
                format!("distributed to {name}{affinity}{rewritten}")
            }
            Action::Redirect(redirect) => {
                format!("redirected ({}) to {}", redirect.status.code(), redirect.location)
            }
            Action::Again(target) => format!("routed again as {target}"),
            Action::Fixed(fixed) => format!("answered with {}", fixed.status.code()),
        };
        for condition in conditions(content) {
            let _ = write!(shown, ", if {condition}");
        }
        shown
    }

    fn group_name(&self, group: GroupId) -> &str {
        self.config.groups.get(group.0 as usize).map_or("", |group| &group.settings.name)
    }

    /// The answer to requests for what is no file, in words.
    pub fn fallback(&self, fallback: &Fallback) -> String {
        match fallback {
            Fallback::File(path) => String::from_utf8_lossy(path).into_owned(),
            Fallback::Distributed { group, .. } => {
                format!("distributed to {}", self.group_name(*group))
            }
            Fallback::Status(status) => format!("answered with {}", status.code()),
        }
    }

    /// ` (line 4)`, or nothing.
    pub fn location_name(&self, location: Option<&Location>) -> String {
        match self.origin(location) {
            origin if origin.is_empty() => origin,
            origin => format!(" ({origin})"),
        }
    }

    /// `line 4`, `--to`, or nothing.
    pub(crate) fn origin(&self, location: Option<&Location>) -> String {
        match location {
            Some(Location::File(span)) => self.source.line_name(span.start),
            Some(Location::Option(option)) => (*option).to_owned(),
            Some(Location::Nowhere) | None => String::new(),
        }
    }
}

fn conditions(content: &Content) -> Vec<String> {
    let conditions = &content.conditions;
    let any = |words: Vec<String>| words.join(" or ");
    let mut words = Vec::new();
    if !conditions.methods.is_empty() {
        words.push(format!("the method is {}", any(conditions.methods.clone())));
    }
    if !conditions.clients.is_empty() {
        let networks = conditions.clients.iter();
        let networks = networks.map(|one| Prefix::of(one.address, one.bits).to_string());
        words.push(format!("the client is in {}", any(networks.collect())));
    }
    if !conditions.paths.is_empty() {
        let patterns = conditions.paths.iter().map(|pattern| format!("\"{pattern}\""));
        words.push(format!("the path is {}", any(patterns.collect())));
    }
    for field in &conditions.fields {
        let value = match &field.value {
            Pattern::Any => "there".to_owned(),
            pattern => format!("\"{pattern}\""),
        };
        words.push(format!("{} is {value}", field_name(field)));
    }
    words
}

/// A field, cookie, parameter or subject in words.
pub fn field_name(field: &FieldCondition) -> String {
    match field.source {
        FieldSource::Field => format!("field {}", field.name),
        FieldSource::Cookie => format!("cookie {}", field.name),
        FieldSource::Query => format!("parameter {}", field.name),
        FieldSource::Subject => format!("the {}", field.name),
    }
}

fn reach(reach: Reach) -> &'static str {
    match reach {
        Reach::Recursion => "",
        Reach::NoRecursion => " (no recursion)",
        Reach::Exact => " (exact)",
    }
}

fn list<T: ToString>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

/// Rows with their cells under one another; long cells may stick out.
fn columns(rows: &[[String; 4]]) -> String {
    const MOST: usize = 44;
    let width = |column: usize| {
        let lengths =
            rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        lengths.filter(|length| *length <= MOST).max().unwrap_or(0)
    };
    let (first, second, third) = (width(0), width(1), width(2));
    let mut text = String::new();
    for [a, b, c, d] in rows {
        let line = format!("    {a:<first$}  {b:<second$}  {c:<third$}  {d}");
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}
