//! The record of every setting: what it takes, what it is, and where that was said.

use super::finding::Place;

/// One setting as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// `limits` of `[limits]`; empty at the top level.
    pub section: &'static str,
    /// Its name within the section.
    pub key: &'static str,
    /// What it takes, in the words of the reference manual.
    pub kind: String,
    /// Its default as TOML, or `required`.
    pub default: String,
    /// Its value as TOML.
    pub value: String,
    /// What the value came to on this machine, where that is not the same.
    pub note: String,
    /// Who set it; [`Place::Nowhere`] is the default.
    pub place: Place,
}

/// All settings, in the order of the reference manual.
#[derive(Clone, Debug, Default)]
pub struct Settings(Vec<Setting>);

impl Settings {
    /// Every setting, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Setting> {
        self.0.iter()
    }

    /// The setting `key` of `section`, if there is one.
    pub fn get(&self, section: &str, key: &str) -> Option<&Setting> {
        self.0.iter().find(|setting| setting.section == section && setting.key == key)
    }

    /// Who set it.
    pub fn place(&self, section: &str, key: &str) -> Place {
        self.get(section, key).map_or(Place::Nowhere, |setting| setting.place.clone())
    }

    pub(super) fn push(&mut self, setting: Setting) {
        debug_assert!(self.get(setting.section, setting.key).is_none(), "asked for twice");
        self.0.push(setting);
    }

    pub(super) fn note(&mut self, section: &str, key: &str, note: String) {
        let found = self.0.iter_mut().find(|s| s.section == section && s.key == key);
        if let Some(setting) = found {
            setting.note = note;
        }
    }
}

/// `[limits]`, as the file writes it; the top level gets a name for people.
pub(super) fn heading(section: &str) -> String {
    match section {
        "" => "the top level".to_owned(),
        "site" => "[[site]]".to_owned(),
        _ => format!("[{section}]"),
    }
}

/// A basic string of TOML.
pub(super) fn quote(text: &str) -> String {
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
pub(super) fn quote_list<T: AsRef<str>>(items: impl Iterator<Item = T>) -> String {
    let items: Vec<String> = items.map(|item| quote(item.as_ref())).collect();
    format!("[{}]", items.join(", "))
}

/// An inline table of TOML.
pub(super) fn quote_map(pairs: &[(String, String)]) -> String {
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
