//! Looking again when the host changes.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::{Changes, Facts, Finding, Level, findings};

/// The findings of a host, kept up to date.
#[derive(Debug)]
pub struct Watch {
    facts: Facts,
    findings: Vec<Finding>,
    changes: Option<Changes>,
    looked: Instant,
    due: bool,
}

/// Routes may change many times a second, and there may be many.
const REST: Duration = Duration::from_secs(5);

impl Watch {
    /// Looks at this host, with the addresses in mind where a fast path is wanted. `serves`: AFPA itself will listen
    /// there.
    pub fn begin(addresses: &[SocketAddr], serves: bool) -> Self {
        // First of all, so that nothing is missed.
        let changes = Changes::listen().ok();
        let facts = Facts::gather(addresses, serves);
        let findings = findings(&facts);
        Self { facts, findings, changes, looked: Instant::now(), due: false }
    }

    /// The latest findings.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Why there can be no fast path.
    pub fn refusal(&self) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.level == Level::Refused)
    }

    /// The latest findings that limit the fast path.
    pub fn limits(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.level == Level::Limited)
    }

    /// Whether the host has changed since it was looked at, a while ago. Does not wait.
    pub fn is_due(&mut self) -> bool {
        self.due |= self.changes.as_ref().is_some_and(Changes::any);
        self.due && self.looked.elapsed() >= REST
    }

    /// New findings that refuse or limit the fast path since the last call, if the host has changed.
    pub fn news(&mut self) -> Vec<Finding> {
        if !self.is_due() {
            return Vec::new();
        }
        (self.due, self.looked) = (false, Instant::now());
        let facts = self.facts.again();
        self.learn(facts)
    }

    pub(super) fn learn(&mut self, facts: Facts) -> Vec<Finding> {
        let now = findings(&facts);
        let fresh = now.iter().filter(|finding| finding.level <= Level::Limited);
        let fresh = fresh.filter(|finding| !self.findings.contains(finding)).cloned().collect();
        (self.facts, self.findings) = (facts, now);
        fresh
    }
}
