//! The record of every setting: its kind, its value, and where it was set.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::finding::Location;

/// Which of several sections of one name: `[0, 2, 1, 0]` is the second content group of the third path of
/// the first site. Sections that stand once have `[0; 4]`.
pub type Instance = [usize; 4];

/// A section's name, and which of that name.
pub(crate) type Section = (&'static str, Instance);

/// One setting as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// `limits` of `[limits]`; empty at the top level.
    pub section: &'static str,
    /// Which section of that name.
    pub instance: Instance,
    /// Its name within the section.
    pub key: &'static str,
    /// The kind of value, in the words of the reference manual; of the first section of a name alone.
    pub kind: String,
    /// Its default as TOML, or `required`.
    pub default: String,
    /// Its value as TOML.
    pub value: String,
    /// The value on this machine, where it differs from the one that was written.
    pub note: String,
    /// Where it was set; [`Location::Nowhere`]: it has its default.
    pub location: Location,
}

/// The only section that no page describes.
pub(crate) const INTERNALS: &str = "internals";

/// All settings, in the order of the reference manual.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    list: Vec<Setting>,
    /// The names are those of the program.
    index: HashMap<Name, usize, FixedState>,
    /// Of each section name and key, the first one.
    first: HashMap<(&'static str, &'static str), usize, FixedState>,
}

/// Section, which of its name, key.
type Name = (&'static str, Instance, &'static str);

impl Settings {
    /// Changes how the value of a setting is shown.
    pub(crate) fn show(&mut self, (section, key): (&str, &str), shown: impl Fn(&str) -> String) {
        let named = |setting: &&mut Setting| setting.section == section && setting.key == key;
        self.list
            .iter_mut()
            .filter(named)
            .for_each(|setting| setting.value = shown(&setting.value));
    }

    /// Every setting, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Setting> {
        self.list.iter()
    }

    /// The setting `key` of the first section called `section`, if there is one.
    pub fn get(&self, section: &str, key: &str) -> Option<&Setting> {
        // The names that are asked for may live less long than those of the table.
        let first: &HashMap<(&str, &str), usize, FixedState> = &self.first;
        first.get(&(section, key)).and_then(|at| self.list.get(*at))
    }

    /// Where it was set.
    pub fn location(&self, section: &str, key: &str) -> Location {
        self.get(section, key).map_or(Location::Nowhere, |setting| setting.location.clone())
    }

    /// Where `key` was set in one of several sections.
    pub fn location_in(
        &self,
        section: &'static str,
        instance: Instance,
        key: &'static str,
    ) -> Location {
        let found = self.index.get(&(section, instance, key)).and_then(|at| self.list.get(*at));
        found.map_or(Location::Nowhere, |setting| setting.location.clone())
    }

    /// Whether `key` of one of several sections was set to something else than its default.
    pub(crate) fn differs(
        &self,
        section: &'static str,
        instance: Instance,
        key: &'static str,
    ) -> bool {
        let found = self.index.get(&(section, instance, key)).and_then(|at| self.list.get(*at));
        found.is_some_and(|setting| setting.value != setting.default)
    }

    pub(crate) fn push(&mut self, setting: Setting) {
        let name = (setting.section, setting.instance, setting.key);
        let before = self.index.insert(name, self.list.len());
        debug_assert!(before.is_none(), "asked for twice: {name:?}");
        self.first.entry((setting.section, setting.key)).or_insert(self.list.len());
        self.list.push(setting);
    }

    pub(crate) fn note(
        &mut self,
        section: &'static str,
        instance: Instance,
        key: &'static str,
        note: String,
    ) {
        let found = self.index.get(&(section, instance, key));
        if let Some(setting) = found.and_then(|at| self.list.get_mut(*at)) {
            setting.note = note;
        }
    }
}

/// `[limits]`, as the file writes it; the top level gets a name for people.
pub(crate) fn heading(section: &str) -> String {
    match section {
        "" => "the top level".to_owned(),
        "site"
        | "site.hint"
        | "site.filter"
        | "site.header"
        | "site.errors"
        | "site.path"
        | "site.path.header"
        | "site.path.errors"
        | "site.path.content"
        | "site.path.content.header"
        | "site.path.content.errors"
        | "zone"
        | "dns.key"
        | "server_group"
        | "certificate"
        | "police.class" => {
            format!("[[{section}]]")
        }
        _ => format!("[{section}]"),
    }
}

/// A basic string of TOML.
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// An array of TOML.
pub(crate) fn quote_list<T: AsRef<str>>(items: impl Iterator<Item = T>) -> String {
    let items: Vec<String> = items.map(|item| quote(item.as_ref())).collect();
    format!("[{}]", items.join(", "))
}

/// An inline table of TOML.
pub(crate) fn quote_map(pairs: &[(String, String)]) -> String {
    if pairs.is_empty() {
        return "{}".to_owned();
    }
    let pairs: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{} = {}", quote(name), quote(value))).collect();
    format!("{{ {} }}", pairs.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_as_toml() {
        assert_eq!(quote("a\"b\\c\n"), r#""a\"b\\c\u000A""#);
        assert_eq!(quote_list(["a", "b"].iter()), r#"["a", "b"]"#);
        assert_eq!(quote_map(&[]), "{}");
        let pair = ("X-A".to_owned(), "1".to_owned());
        assert_eq!(quote_map(&[pair]), r#"{ "X-A" = "1" }"#);
    }
}
