//! The replacement policies in use, and why, as tables.

use afpa_cache::{PolicyKind, PolicyReport};
use serde_json::{Value, json};

/// The kinds of objects, in the order of the report.
const KINDS: [&str; 2] = ["pinned", "files"];

/// For each kind of objects: its policy, and why.
pub(super) fn policies_json(report: &PolicyReport) -> Value {
    let rows = KINDS.into_iter().zip(&report.policies).map(|(objects, policy)| {
        json!({ "objects": objects, "policy": policy.kind.name(), "why": policy.why })
    });
    rows.collect()
}

/// The hit rate that each policy would have had lately, in per cent; empty where AFPA does not choose, or has seen too
/// few requests.
pub(super) fn standing_json(report: &PolicyReport) -> Value {
    if report.policies.iter().all(|policy| policy.standing.is_none()) {
        return json!([]);
    }
    let percent = |kind: PolicyKind, index: usize| {
        let standing = report.policies.get(index)?.standing?;
        let (_, ratio) = standing.into_iter().find(|(known, _)| *known == kind)?;
        Some(format!("{:.1} %", ratio * 100.0))
    };
    let rows = PolicyKind::ALL.into_iter().map(|kind| {
        let cell = |index| percent(kind, index).unwrap_or_else(|| "-".to_owned());
        json!({ "policy": kind.name(), "pinned": cell(0), "files": cell(1) })
    });
    rows.collect()
}
