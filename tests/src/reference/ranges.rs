//! Range and If-Range (RFC 9110, 13.1.5 and 14).

use super::request::Request;
use crate::dates;

/// The ranges of a representation that a request asks for; positions are inclusive, as in the field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Selected {
    Whole,
    One(usize, usize),
    Many(Vec<(usize, usize)>),
    None,
}

pub(super) fn select(request: &Request, tag: &str, modified: u64, length: usize) -> Selected {
    let Some(field) = request.field("range").filter(|_| request.method == "GET") else {
        return Selected::Whole;
    };
    if let Some(condition) = request.field("if-range") {
        // A date counts only when it is exactly the last modification.
        let same = condition == tag || dates::parse(condition) == Some(modified);
        if !same {
            return Selected::Whole;
        }
    }
    let Some(set) = field.split_once('=').filter(|(unit, _)| unit.eq_ignore_ascii_case("bytes"))
    else {
        return Selected::Whole;
    };
    let specs: Option<Vec<_>> = set.1.split(',').map(|spec| one(spec.trim(), length)).collect();
    let Some(specs) = specs else { return Selected::Whole };
    if length == 0 && set.1.split(',').any(|spec| is_suffix(spec.trim())) {
        // Satisfiable (RFC 9110, 14.1.2), but no Content-Range says "all of nothing".
        return Selected::Whole;
    }
    let satisfiable: Vec<(usize, usize)> = specs.into_iter().flatten().collect();
    match satisfiable.as_slice() {
        [] => Selected::None,
        [(first, last)] => Selected::One(*first, *last),
        many => Selected::Many(many.to_vec()),
    }
}

fn is_suffix(spec: &str) -> bool {
    spec.strip_prefix('-').is_some_and(|digits| !digits.trim_start_matches('0').is_empty())
}

/// `None`: not a range; `Some(None)`: a range that no byte is in.
fn one(spec: &str, length: usize) -> Option<Option<(usize, usize)>> {
    let (first, last) = spec.split_once('-')?;
    let number = |digits: &str| match digits.bytes().all(|byte| byte.is_ascii_digit()) {
        true => digits.parse::<usize>().ok(),
        false => None,
    };
    if first.is_empty() {
        let suffix = number(last)?.min(length);
        return Some((suffix > 0).then(|| (length - suffix, length - 1)));
    }
    let first = number(first)?;
    let last = if last.is_empty() { usize::MAX } else { number(last)? };
    if last < first {
        return None;
    }
    Some((first < length).then(|| (first, last.min(length - 1))))
}
