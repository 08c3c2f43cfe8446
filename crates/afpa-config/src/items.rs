//! Sections that may appear several times: `[[site]]`, and `[[site.path]]` within it.

use crate::document::{Node, Table, Value};
use crate::finding::{Finding, Location};
use crate::reader::{Reader, Section};
use crate::settings::Instance;

/// A section among several of the same name.
#[derive(Clone, Debug)]
pub(crate) struct Item<'i> {
    pub(crate) path: &'static str,
    pub(crate) instance: Instance,
    pub(crate) table: Option<&'i Table>,
    /// Where it begins.
    pub(crate) location: Location,
}

impl<'i> Reader<'i> {
    /// All sections called `path`. Its last word is a list of tables in `parent` or at the top level.
    pub(crate) fn items(&mut self, path: &'static str, parent: Option<&Item<'i>>) -> Vec<Item<'i>> {
        let depth = path.matches('.').count();
        let instance = parent.map_or([0; 4], |parent| parent.instance);
        let table = parent.map_or(Some(self.document), |parent| parent.table);
        let (location, nodes) = match table.and_then(|table| self.list(table, path)) {
            Some((location, nodes)) => (location, nodes),
            None => (Location::Nowhere, &[][..]),
        };
        let given = if parent.is_none() { self.overrides.items(path) } else { &[] };
        let tables = given.iter().chain(nodes).map(|node| match &node.value {
            Value::Table(table) => Some((table, node.location())),
            _ => None,
        });
        let mut items = Vec::with_capacity(nodes.len());
        for (index, table) in tables.enumerate() {
            let Some((table, location)) = table else {
                self.findings.push(single_brackets(location.clone(), path));
                continue;
            };
            let mut instance = instance;
            if let Some(number) = instance.get_mut(depth) {
                *number = index;
            }
            items.push(Item { path, instance, table: Some(table), location });
        }
        items
    }

    /// The sites. Without any in the file there is one, which the options of the command line fill, unless the file has zones alone.
    pub(crate) fn sites(&mut self, has_zones: bool) -> Vec<Item<'i>> {
        let sites = self.items("site", None);
        if sites.is_empty() && has_zones && self.overrides.options("site").next().is_none() {
            return sites;
        }
        if sites.is_empty() {
            let (table, location) = (None, Location::Nowhere);
            return vec![Item { path: "site", instance: [0; 4], table, location }];
        }
        if sites.len() > 1 {
            for option in self.overrides.options("site") {
                let cause = format!("this is for one site, and the file has {}", sites.len());
                let remedy = "remove the option, and change the file";
                self.findings.push(Finding::error(Location::Option(option), cause, remedy));
            }
        }
        sites
    }

    /// One of several sections of a name, or a table inside of one.
    pub(crate) fn at(&mut self, item: &Item<'i>) -> Section<'_, 'i> {
        Section { reader: self, path: item.path, instance: item.instance, table: item.table }
    }

    /// The table called by the last word of `path` within an item.
    pub(crate) fn within(&mut self, path: &'static str, item: &Item<'i>) -> Item<'i> {
        let name = path.rsplit('.').next().unwrap_or(path);
        let found = item.table.and_then(|table| table.iter().find(|(key, _)| key.name == name));
        let table = found.and_then(|(key, node)| match &node.value {
            Value::Table(table) => Some(table),
            other => {
                let location = Location::File(key.span.clone());
                let cause = format!("`{name}` is a section, not {}", other.kind());
                self.findings.push(Finding::error(location, cause, format!("write [{path}]")));
                None
            }
        });
        Item { path, instance: item.instance, table, location: item.location.clone() }
    }

    /// The nodes of a list of tables.
    fn list(&mut self, table: &'i Table, path: &'static str) -> Option<(Location, &'i [Node])> {
        let name = path.rsplit('.').next().unwrap_or(path);
        let (key, node) = table.iter().find(|(key, _)| key.name == name)?;
        let location = Location::File(key.span.clone());
        match &node.value {
            Value::List(nodes) => Some((location, nodes)),
            _ => {
                self.findings.push(single_brackets(location, path));
                None
            }
        }
    }
}

fn single_brackets(location: Location, path: &str) -> Finding {
    let cause =
        format!("`{path}` may appear several times, so it is written with two pairs of brackets");
    Finding::error(location, cause, format!("write [[{path}]]"))
}
