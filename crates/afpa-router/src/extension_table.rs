//! For one path: which content group has which extensions.

use std::collections::HashMap;

use crate::table::{Content, ContentGroup};

/// The kind of file that a path names.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum FileKind<'e> {
    Extension(&'e str),
    None,
    Other,
}

/// The content groups of one path, by extension.
pub(crate) struct ExtensionTable<'t> {
    contents: &'t [Content],
    /// Groups with conditions, in their order.
    conditional: Vec<usize>,
    /// Of the groups without conditions: the one that lists an extension, in lower case;
    listed: HashMap<String, usize>,
    /// the one for paths without an extension;
    none: Option<usize>,
    /// the one for all other extensions;
    others: Option<usize>,
    /// the one for everything else.
    all: Option<usize>,
}

impl<'t> ExtensionTable<'t> {
    pub(crate) fn of(contents: &'t [Content]) -> Self {
        let mut table = ExtensionTable {
            contents,
            conditional: Vec::new(),
            listed: HashMap::new(),
            none: None,
            others: None,
            all: None,
        };
        for (index, content) in contents.iter().enumerate() {
            match &content.group {
                _ if !content.conditions.is_empty() => table.conditional.push(index),
                ContentGroup::All => table.all = table.all.or(Some(index)),
                ContentGroup::List { extensions, none, others } => {
                    for extension in extensions {
                        table.listed.entry(extension.to_ascii_lowercase()).or_insert(index);
                    }
                    table.none = table.none.or(none.then_some(index));
                    table.others = table.others.or(others.then_some(index));
                }
            }
        }
        table
    }

    /// Every extension that is listed, in lower case, once.
    pub(crate) fn extensions(&self) -> Vec<String> {
        let lists = self.contents.iter().filter_map(|content| match &content.group {
            ContentGroup::List { extensions, .. } => Some(extensions),
            ContentGroup::All => None,
        });
        let mut all: Vec<String> = lists.flatten().map(|e| e.to_ascii_lowercase()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The content groups to try for a kind of file: those with conditions in their order, then the group without
    /// conditions that names the kind, or else the group for the rest.
    pub(crate) fn candidates(&self, kind: FileKind<'_>) -> Vec<usize> {
        let group = |index: &usize| self.contents.get(*index).map(|content| &content.group);
        let fitting = self.conditional.iter().copied();
        let mut tried: Vec<usize> = fitting
            .filter(|index| group(index).is_some_and(|group| self.fits(group, kind)))
            .collect();
        let last = match kind {
            FileKind::Extension(extension) => self.listed.get(extension).copied().or(self.others),
            FileKind::None => self.none,
            FileKind::Other => self.others,
        };
        tried.extend(last.or(self.all));
        tried
    }

    /// Whether a content group with conditions includes a kind of file.
    fn fits(&self, group: &ContentGroup, kind: FileKind<'_>) -> bool {
        match (group, kind) {
            (ContentGroup::All, _) => true,
            (ContentGroup::List { none, .. }, FileKind::None) => *none,
            (ContentGroup::List { others, .. }, FileKind::Other) => *others,
            (ContentGroup::List { extensions, others, .. }, FileKind::Extension(extension)) => {
                extensions.iter().any(|listed| listed.eq_ignore_ascii_case(extension))
                    || (*others && !self.listed.contains_key(extension))
            }
        }
    }

    /// Pairs of content groups without conditions that claim the same.
    pub(crate) fn disputed(&self) -> Vec<(usize, usize, String)> {
        let mut owners: HashMap<String, usize> = HashMap::new();
        let mut disputed = Vec::new();
        for (index, content) in self.contents.iter().enumerate() {
            if !content.conditions.is_empty() {
                continue;
            }
            for what in claims(&content.group) {
                let first = *owners.entry(what.clone()).or_insert(index);
                if first != index {
                    disputed.push((first, index, what));
                }
            }
        }
        disputed
    }
}

/// The extensions that a content group claims for itself.
fn claims(group: &ContentGroup) -> Vec<String> {
    let ContentGroup::List { extensions, none, others } = group else {
        return vec!["everything else".to_owned()];
    };
    let special = [(*none, "no extension"), (*others, "all other extensions")];
    let special = special.into_iter().filter(|(is, _)| *is).map(|(_, name)| name.to_owned());
    extensions.iter().map(|extension| extension.to_ascii_lowercase()).chain(special).collect()
}
