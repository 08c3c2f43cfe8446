//! Targeted fields, such as CDN-Cache-Control (RFC 9213): cache directives for some caches alone.
//!
//! Other than Cache-Control they are Dictionaries (RFC 9651 section 3.2), and are read strictly: a line
//! that is none makes the field ignored.

use super::ResponseControl;
use super::control::bounded;

/// The values that a member of a Dictionary may have for a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    True,
    Integer(i64),
    /// A value of a type that no directive has.
    Other,
    False,
}

/// The directives of a targeted field, from all of its lines. `None`: it is malformed or empty, or holds a
/// directive of the wrong type, and is ignored (RFC 9213 section 2.1).
pub fn parse<'b>(lines: impl Iterator<Item = &'b [u8]>) -> Option<ResponseControl> {
    let mut control = ResponseControl::default();
    let mut any = false;
    for line in lines {
        let mut rest = skip(line, b" ");
        while !rest.is_empty() {
            let (key, tail) = key(rest)?;
            let (item, tail) = match tail {
                [b'=', tail @ ..] => item(tail)?,
                tail => (Item::True, tail),
            };
            rest = skip(parameters(tail)?, b" \t");
            any = true;
            take(&mut control, key, item)?;
            rest = match rest {
                [] => rest,
                [b',', tail @ ..] => match skip(tail, b" \t") {
                    // A comma at the end is an error (RFC 9651 section 4.2.2).
                    [] => return None,
                    tail => tail,
                },
                _ => return None,
            };
        }
    }
    any.then_some(control)
}

/// Takes a directive. The last of several with one name counts (RFC 9651 section 4.2.2).
fn take(control: &mut ResponseControl, key: &[u8], item: Item) -> Option<()> {
    let lifetime = || match item {
        Item::Integer(seconds) => Some(Some(bounded(u64::try_from(seconds).unwrap_or(0)))),
        _ => None,
    };
    match key {
        b"max-age" => control.max_age = lifetime()?,
        b"s-maxage" => control.s_maxage = lifetime()?,
        b"stale-while-revalidate" => control.stale_while_revalidate = lifetime()?,
        b"stale-if-error" => control.stale_if_error = lifetime()?,
        // No directive is switched off by `?0` in a cache that does not know it, so none is here.
        _ if item == Item::False => {}
        _ => control.directive(key, None),
    }
    Some(())
}

fn skip<'b>(mut rest: &'b [u8], bytes: &[u8]) -> &'b [u8] {
    while let [byte, tail @ ..] = rest
        && bytes.contains(byte)
    {
        rest = tail;
    }
    rest
}

/// RFC 9651 section 3.1.2.
fn key(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let first = rest.first()?;
    if !(first.is_ascii_lowercase() || *first == b'*') {
        return None;
    }
    let inside =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(byte);
    let end = rest.iter().position(|byte| !inside(byte)).unwrap_or(rest.len());
    rest.split_at_checked(end)
}

/// One bare item, or an inner list, of which only the extent matters.
fn item(rest: &[u8]) -> Option<(Item, &[u8])> {
    match rest {
        [b'?', b'1', tail @ ..] => Some((Item::True, tail)),
        [b'?', b'0', tail @ ..] => Some((Item::False, tail)),
        [b'"', tail @ ..] => Some((Item::Other, string(tail)?)),
        [b':', tail @ ..] => {
            let end = tail.iter().position(|&byte| byte == b':')?;
            let base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
            tail.get(..end)?.iter().all(base64).then_some(())?;
            Some((Item::Other, tail.get(end + 1..)?))
        }
        [b'(', tail @ ..] => Some((Item::Other, inner_list(tail)?)),
        [b'@', tail @ ..] => number(tail).map(|(_, tail)| (Item::Other, tail)),
        [b'-' | b'0'..=b'9', ..] => number(rest),
        [byte, ..] if byte.is_ascii_alphabetic() || *byte == b'*' => {
            let inside = |byte: &u8| crate::syntax::is_tchar(*byte) || b":/".contains(byte);
            let end = rest.iter().position(|byte| !inside(byte)).unwrap_or(rest.len());
            Some((Item::Other, rest.get(end..)?))
        }
        _ => None,
    }
}

/// RFC 9651 sections 3.3.1 and 3.3.2.
fn number(rest: &[u8]) -> Option<(Item, &[u8])> {
    let (negative, digits) = match rest {
        [b'-', tail @ ..] => (true, tail),
        tail => (false, tail),
    };
    let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    let (integer, tail) = digits.split_at_checked(end)?;
    if integer.is_empty() || integer.len() > 15 {
        return None;
    }
    if let [b'.', fraction @ ..] = tail {
        let end = fraction.iter().position(|byte| !byte.is_ascii_digit());
        let (digits, tail) = fraction.split_at_checked(end.unwrap_or(fraction.len()))?;
        let fits = (1..=3).contains(&digits.len()) && integer.len() <= 12;
        return fits.then_some((Item::Other, tail));
    }
    let value = crate::syntax::number(integer).and_then(|value| i64::try_from(value).ok())?;
    Some((Item::Integer(if negative { -value } else { value }), tail))
}

/// The bytes behind the closing quote (RFC 9651 section 3.3.3).
fn string(mut rest: &[u8]) -> Option<&[u8]> {
    loop {
        rest = match rest {
            [b'"', tail @ ..] => return Some(tail),
            [b'\\', b'"' | b'\\', tail @ ..] => tail,
            [b'\\', ..] | [] => return None,
            [b' '..=b'~', tail @ ..] => tail,
            _ => return None,
        };
    }
}

/// The bytes behind the closing parenthesis (RFC 9651 section 3.1.1). Lists do not nest.
fn inner_list(mut rest: &[u8]) -> Option<&[u8]> {
    loop {
        rest = skip(rest, b" ");
        match rest {
            [b')', tail @ ..] => return Some(tail),
            [b'(', ..] => return None,
            _ => {}
        }
        let (_, tail) = item(rest)?;
        rest = parameters(tail)?;
        if !matches!(rest, [b' ' | b')', ..]) {
            return None;
        }
    }
}

/// The bytes behind the parameters (RFC 9651 section 3.1.2), which mean nothing here.
fn parameters(mut rest: &[u8]) -> Option<&[u8]> {
    while let [b';', tail @ ..] = rest {
        let (_, tail) = key(skip(tail, b" "))?;
        rest = match tail {
            [b'=', tail @ ..] if !tail.starts_with(b"(") => item(tail)?.1,
            [b'=', ..] => return None,
            tail => tail,
        };
    }
    Some(rest)
}
