//! Opens files by this rule: each path that an object depends on is registered and watched before it is read.

use super::{Coverage, Reason, Watcher, hard_links};
use crate::root::{DocumentRoot, Entry, ResolveError, Trail, parent};

impl Watcher {
    /// Opens what `path` names such that every later change of the outcome is reported, if the
    /// coverage says so: of the file, of the directories above it, and of every link on the way.
    ///
    /// `depend` is called with each place the outcome depends on, first with `path` itself, and
    /// always before the look that counts. It is called on errors, too, so an absence (of a stored
    /// coding, of an index file) can be relied on as well.
    ///
    /// Where links are met, the path is resolved a second time once their directories are watched.
    pub fn resolve(
        &self,
        root: &DocumentRoot,
        path: &[u8],
        depend: &mut dyn FnMut(&[u8]),
    ) -> (Result<Entry, ResolveError>, Coverage) {
        depend(path);
        let direct = self.ensure(parent(path));
        let mut known: Vec<(Vec<u8>, Coverage)> = Vec::new();
        for _ in 0..ATTEMPTS {
            let mut trail = Trail::default();
            let outcome = root.resolve_traced(path, &mut trail);
            let fresh: Vec<Vec<u8>> = trail
                .places()
                .filter(|place| !known.iter().any(|(known, _)| known == place))
                .map(<[u8]>::to_vec)
                .collect();
            if fresh.is_empty() {
                // With links on the way `path` is no place, and what counts is the trail.
                let coverage = if trail.is_empty() { direct } else { cover(&trail, &known) };
                let coverage = coverage.and(outcome_coverage(&outcome));
                return (outcome, coverage);
            }
            for place in fresh {
                depend(&place);
                let coverage = self.ensure(parent(&place));
                known.push((place, coverage));
            }
        }
        (root.resolve(path), Coverage::Unwatched(Reason::Unsettled))
    }
}

/// The coverage that the places of a trail had before it was walked.
fn cover(trail: &Trail, known: &[(Vec<u8>, Coverage)]) -> Coverage {
    known
        .iter()
        .filter(|(known, _)| trail.places().any(|place| place == known))
        .fold(Coverage::Watched, |sum, (_, coverage)| sum.and(*coverage))
}

fn outcome_coverage(outcome: &Result<Entry, ResolveError>) -> Coverage {
    match outcome {
        Ok(Entry::File(file)) => hard_links(file),
        _ => Coverage::Watched,
    }
}

/// How often links may change during a resolution before it gives up watching.
const ATTEMPTS: u32 = 4;
