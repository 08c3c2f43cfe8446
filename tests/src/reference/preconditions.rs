//! Preconditions in the order of RFC 9110, 13.2.2.

use super::request::Request;
use crate::dates;

/// The outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precondition {
    Proceed,
    NotModified,
    Failed,
}

pub(super) fn evaluate(request: &Request, tag: &str, modified: u64) -> Precondition {
    if let Some(list) = request.field("if-match") {
        if !listed(list, |item| item == tag) {
            return Precondition::Failed;
        }
    } else if let Some(date) = request.field("if-unmodified-since").and_then(dates::parse)
        && modified > date
    {
        return Precondition::Failed;
    }
    if let Some(list) = request.field("if-none-match") {
        if listed(list, |item| item.trim_start_matches("W/") == tag) {
            return Precondition::NotModified;
        }
    } else if let Some(date) = request.field("if-modified-since").and_then(dates::parse)
        && modified <= date
    {
        return Precondition::NotModified;
    }
    Precondition::Proceed
}

/// Whether the list is "*" or one of its tags does. No tag of these tests has a comma in it.
fn listed(list: &str, matches: impl Fn(&str) -> bool) -> bool {
    list.trim() == "*" || list.split(',').any(|item| matches(item.trim()))
}
