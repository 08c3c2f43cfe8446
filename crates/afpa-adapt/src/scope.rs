//! The blocks around a place, and what it inherits from them.

use crate::syntax::Directive;

/// The blocks, the outermost first.
#[derive(Clone)]
pub(crate) struct Scope<'d>(Vec<&'d [Directive]>);

impl<'d> Scope<'d> {
    pub(crate) fn of(block: &'d [Directive]) -> Self {
        Scope(vec![block])
    }

    /// With another block inside.
    pub(crate) fn within(&self, block: &'d [Directive]) -> Self {
        let mut blocks = self.0.clone();
        blocks.push(block);
        Scope(blocks)
    }

    /// The block of the server, with the one around it.
    pub(crate) fn server(&self) -> Self {
        Scope(self.0.iter().take(2).copied().collect())
    }

    /// The innermost block.
    pub(crate) fn here(&self) -> &'d [Directive] {
        self.0.last().copied().unwrap_or_default()
    }

    /// The directives of this name that count: all of the innermost block that has one.
    pub(crate) fn all(&self, name: &str) -> Vec<&'d Directive> {
        self.any(&[name])
    }

    /// The same for names that are inherited together.
    pub(crate) fn any(&self, names: &[&str]) -> Vec<&'d Directive> {
        let of = |block: &&'d [Directive]| -> Vec<&'d Directive> {
            block.iter().filter(|directive| names.contains(&&*directive.name)).collect()
        };
        self.0.iter().rev().map(of).find(|found| !found.is_empty()).unwrap_or_default()
    }

    pub(crate) fn last(&self, name: &str) -> Option<&'d Directive> {
        self.all(name).pop()
    }

    /// The first word of it, or nothing.
    pub(crate) fn value(&self, name: &str) -> &'d str {
        self.last(name).map_or("", |directive| directive.word(0))
    }

    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.value(name) == "on"
    }

    /// Every directive of all blocks, the innermost first.
    pub(crate) fn everything(&self) -> impl Iterator<Item = &'d Directive> + '_ {
        self.0.iter().rev().flat_map(|block| block.iter())
    }
}
