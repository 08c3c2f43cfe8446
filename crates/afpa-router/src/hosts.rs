//! Levels one to three: from listener and host name to the site.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::expression::Expression;
use crate::extension::lower;
use crate::ids::SiteId;
use crate::steps::Steps;
use crate::table::HostPattern;

/// The longest host name that a table may hold (RFC 1035 section 2.3.4).
const MAX_HOST: usize = 253;

/// The host names of one listener. The keys come from the operator, so their hash needs no secret seed.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    exact: HashMap<Box<[u8]>, SiteId, FixedState>,
    /// Wildcards, by the name behind `*.`.
    below: HashMap<Box<[u8]>, SiteId, FixedState>,
    /// The most labels of any key of `below`: longer suffixes of a name need not be looked up.
    below_labels: usize,
    /// Regular expressions, in the order of the table.
    matching: Vec<(Expression, SiteId)>,
    any: Option<SiteId>,
}

/// How a host name was matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostMatch<'r> {
    /// By this name, in lower case.
    Exact(&'r [u8]),
    /// By `*.` and this name.
    Below(&'r [u8]),
    /// By this regular expression.
    Matching(&'r Expression),
    /// The site answers for any name.
    Any,
}

impl Hosts {
    /// Adds a pattern, or the site for any name. Returns the site that has it already, if there is one.
    pub(crate) fn enter(&mut self, pattern: Option<&HostPattern>, site: SiteId) -> Option<SiteId> {
        let before = match pattern {
            None => self.any.replace(site),
            Some(HostPattern::Exact(name)) => self.exact.insert(key(name), site),
            Some(HostPattern::Below(name)) => {
                self.below_labels = self.below_labels.max(name.split('.').count());
                self.below.insert(key(name), site)
            }
            Some(HostPattern::Matching(own)) => {
                let before = self.matching.iter_mut().find(|(known, _)| known == own);
                let before = before.map(|(_, of)| std::mem::replace(of, site));
                if before.is_none() {
                    self.matching.push((own.clone(), site));
                }
                before
            }
        };
        before.filter(|&before| before != site)
    }

    /// The site of a name, and the pattern that matched.
    #[inline]
    pub(crate) fn find(
        &self,
        host: &str,
        steps: &mut impl Steps,
    ) -> Option<(SiteId, HostMatch<'_>)> {
        let any = || self.any.map(|site| (site, HostMatch::Any));
        if self.exact.is_empty() && self.below.is_empty() && self.matching.is_empty() {
            return any();
        }
        let mut room = [0; MAX_HOST];
        let Some(name) = lower(host.as_bytes(), &mut room) else { return any() };
        steps.step();
        if let Some((name, &site)) = self.exact.get_key_value(name) {
            return Some((site, HostMatch::Exact(name)));
        }
        self.wildcard(name, steps).or_else(|| self.expression(name, steps)).or_else(any)
    }

    fn expression(&self, name: &[u8], steps: &mut impl Steps) -> Option<(SiteId, HostMatch<'_>)> {
        let mut all = self.matching.iter();
        let found = all.find(|(expression, _)| {
            steps.step();
            expression.matches(name)
        });
        found.map(|(expression, site)| (*site, HostMatch::Matching(expression)))
    }

    fn wildcard(&self, name: &[u8], steps: &mut impl Steps) -> Option<(SiteId, HostMatch<'_>)> {
        if self.below.is_empty() {
            return None;
        }
        let labels = memchr::memchr_iter(b'.', name).count() + 1;
        // The star stands for the first label at least. A suffix with more labels than any key is none.
        let skip = labels.saturating_sub(self.below_labels).max(1);
        let mut rest = name;
        for _ in 0..skip {
            rest = behind_dot(rest)?;
        }
        loop {
            steps.step();
            if let Some((suffix, &site)) = self.below.get_key_value(rest) {
                return Some((site, HostMatch::Below(suffix)));
            }
            rest = behind_dot(rest)?;
        }
    }
}

fn key(name: &str) -> Box<[u8]> {
    name.to_ascii_lowercase().into_bytes().into()
}

fn behind_dot(name: &[u8]) -> Option<&[u8]> {
    memchr::memchr(b'.', name).and_then(|dot| name.get(dot + 1..))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn below(name: &str) -> HostPattern {
        HostPattern::Below(name.to_owned())
    }

    #[test]
    fn exact_before_wildcard_before_any() {
        let mut hosts = Hosts::default();
        let exact = HostPattern::Exact("WWW.a.org".into());
        assert_eq!(hosts.enter(Some(&exact), SiteId(0)), None);
        assert_eq!(hosts.enter(Some(&below("a.org")), SiteId(1)), None);
        assert_eq!(hosts.enter(Some(&below("b.a.org")), SiteId(2)), None);
        assert_eq!(hosts.enter(Some(&exact), SiteId(3)), Some(SiteId(0)));
        assert_eq!(hosts.enter(Some(&exact), SiteId(0)), Some(SiteId(3)));
        let site = |hosts: &Hosts, host: &str| hosts.find(host, &mut ()).map(|(site, _)| site.0);
        for (host, expected) in [
            ("www.a.org", Some(0)),
            ("wWw.A.ORG", Some(0)),
            ("x.a.org", Some(1)),
            ("x.y.z.a.org", Some(1)),
            ("c.b.a.org", Some(2)),
            ("b.a.org", Some(1)),
            ("a.org", None),
            ("xa.org", None),
            ("", None),
            (".a.org", Some(1)),
            (&"x.".repeat(200), None),
        ] {
            assert_eq!(site(&hosts, host), expected, "{host}");
        }
        let matching = |text: &str| HostPattern::Matching(Expression::new(text, false).unwrap());
        assert_eq!(hosts.enter(Some(&matching("^w+\\d")), SiteId(4)), None);
        assert_eq!(hosts.enter(Some(&matching("^www?\\d+[.]")), SiteId(5)), None);
        assert_eq!(hosts.enter(Some(&matching("^w+\\d")), SiteId(6)), Some(SiteId(4)));
        assert_eq!((site(&hosts, "WWW1.b.org"), site(&hosts, "www1.a.org")), (Some(6), Some(1)));
        assert_eq!(site(&hosts, "b.org"), None);
        hosts.enter(None, SiteId(9));
        assert_eq!(site(&hosts, "a.org"), Some(9));
        assert_eq!(site(&hosts, &"x.".repeat(200)), Some(9));
    }
}
