//! Levels four and five of one site: from a path to the request sets that may match.

use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::FixedState;

use crate::extension::{Extension, MAX_EXTENSION, lower};
use crate::prefixes::Prefixes;
use crate::steps::Steps;
use crate::table::Reach;

/// The paths of a site.
#[derive(Debug)]
pub(crate) struct SitePaths {
    pub(crate) prefixes: Prefixes,
    /// By the numbers of the tree.
    pub(crate) by_prefix: Vec<PrefixPaths>,
}

/// The paths of one prefix: one for each reach, the narrowest first.
#[derive(Debug)]
pub(crate) struct PrefixPaths {
    pub(crate) prefix_len: usize,
    pub(crate) places: Vec<CompiledPath>,
    /// The next shorter prefix.
    pub(crate) up: Option<u32>,
}

/// One path: which request sets are tried for which extension, in order.
#[derive(Debug)]
pub(crate) struct CompiledPath {
    pub(crate) reach: Reach,
    /// Every request set of the path.
    pub(crate) sets: Range<u32>,
    /// For extensions that are listed.
    pub(crate) named: HashMap<Box<[u8]>, Box<[u32]>, FixedState>,
    /// For no extension.
    pub(crate) none: Box<[u32]>,
    /// For all other extensions.
    pub(crate) others: Box<[u32]>,
}

impl SitePaths {
    /// The paths of the longest prefix of `path`.
    #[inline]
    pub(crate) fn first(&self, path: &[u8], steps: &mut impl Steps) -> Option<&PrefixPaths> {
        self.prefixes.longest(path, steps).and_then(|number| self.at_prefix(number))
    }

    /// The paths of the next shorter prefix.
    #[inline]
    pub(crate) fn next(&self, at_prefix: &PrefixPaths) -> Option<&PrefixPaths> {
        at_prefix.up.and_then(|number| self.at_prefix(number))
    }

    fn at_prefix(&self, number: u32) -> Option<&PrefixPaths> {
        self.by_prefix.get(number as usize)
    }
}

impl CompiledPath {
    /// Whether it applies to a path that begins with its prefix and whose last slash is at `last_slash`.
    #[inline]
    pub(crate) fn reaches(&self, prefix_len: usize, path: &[u8], last_slash: usize) -> bool {
        match self.reach {
            Reach::Recursion => true,
            Reach::NoRecursion => last_slash < prefix_len,
            Reach::Exact => path.len() == prefix_len,
        }
    }

    /// The request sets to try.
    #[inline]
    pub(crate) fn candidates(&self, extension: Extension<'_>, steps: &mut impl Steps) -> &[u32] {
        let Extension::Some(extension) = extension else { return &self.none };
        if self.named.is_empty() {
            return &self.others;
        }
        steps.step();
        let mut room = [0; MAX_EXTENSION];
        let named = lower(extension, &mut room).and_then(|lower| self.named.get(lower));
        named.unwrap_or(&self.others)
    }
}
