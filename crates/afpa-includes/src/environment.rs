//! The variables of a page. A page shares them with the documents that it includes.

use std::collections::BTreeMap;

use crate::scan::{find, find_either};
use crate::{Page, time};

/// The variables of a page.
pub(crate) struct Environment {
    /// Variables that were `set`, by their names in upper case: names are compared without regard to case.
    set: BTreeMap<Vec<u8>, Vec<u8>>,
    document_uri: Vec<u8>,
    modified: u64,
    now: u64,
    /// For the variables that are times.
    time_format: Vec<u8>,
    shows_time: bool,
}

/// Longest value of a variable.
const LONGEST: usize = 64 * 1024;

/// Most variables of a page.
const MOST: usize = 1000;

impl Environment {
    pub(crate) fn new(page: &Page<'_>) -> Self {
        Environment {
            set: BTreeMap::new(),
            document_uri: page.path.to_vec(),
            modified: page.modified,
            now: page.now,
            time_format: time::DEFAULT.to_vec(),
            shows_time: false,
        }
    }

    /// Whether a value was asked for that is another one a second later.
    pub(crate) fn shows_time(&self) -> bool {
        self.shows_time
    }

    /// The value of a variable; `None` if it has none.
    pub(crate) fn get(&mut self, name: &[u8]) -> Option<Vec<u8>> {
        let name = name.to_ascii_uppercase();
        if let Some(value) = self.set.get(&name) {
            return Some(value.clone());
        }
        let local =
            |unix, environment: &Environment| time::format(unix, &environment.time_format, "UTC");
        match &*name {
            b"DOCUMENT_URI" => Some(self.document_uri.clone()),
            b"DOCUMENT_NAME" => {
                let name = self.document_uri.rsplit(|byte| *byte == b'/').next();
                name.map(<[u8]>::to_vec)
            }
            b"LAST_MODIFIED" => Some(local(self.modified, self)),
            b"DATE_LOCAL" => {
                self.shows_time = true;
                Some(local(self.now, self))
            }
            b"DATE_GMT" => {
                self.shows_time = true;
                Some(time::format(self.now, &self.time_format, "GMT"))
            }
            _ => None,
        }
    }

    /// Gives a variable a value. `false`: there are too many, or the value is too long.
    #[must_use]
    pub(crate) fn set(&mut self, name: &[u8], value: Vec<u8>) -> bool {
        let name = name.to_ascii_uppercase();
        let fits = self.set.len() < MOST || self.set.contains_key(&name);
        if !fits || value.len() > LONGEST || name.len() > LONGEST {
            return false;
        }
        self.set.insert(name, value);
        true
    }

    /// Sets the form of times from now on. The times replace values that a page has set for these variables.
    pub(crate) fn set_time_format(&mut self, format: &[u8]) {
        self.time_format = format.to_vec();
        for time in ["DATE_LOCAL", "DATE_GMT", "LAST_MODIFIED"] {
            self.set.remove(time.as_bytes());
        }
    }

    /// Puts values in the place of `$NAME` and `${NAME}`. `\$` is a dollar sign, and a variable without a value is
    /// nothing. A result that would be too long is cut off.
    pub(crate) fn substitute(&mut self, text: &[u8]) -> Vec<u8> {
        let mut result = Vec::with_capacity(text.len());
        let (mut rest, mut closes) = (text, true);
        while let Some(at) = find_either((b'$', b'\\'), rest) {
            let (before, found) = rest.split_at(at);
            result.extend_from_slice(before);
            rest = match found {
                [b'\\', b'$', behind @ ..] => {
                    result.push(b'$');
                    behind
                }
                [b'$', behind @ ..] => match name(behind, &mut closes) {
                    Some((name, behind)) => {
                        result.extend(self.get(name).unwrap_or_default());
                        behind
                    }
                    None => {
                        result.push(b'$');
                        behind
                    }
                },
                [byte, behind @ ..] => {
                    result.push(*byte);
                    behind
                }
                [] => found,
            };
            if result.len() > LONGEST {
                result.truncate(LONGEST);
                return result;
            }
        }
        result.extend_from_slice(rest);
        result
    }
}

/// The name of a variable (`NAME` or `{NAME}`), and the text behind it. `closes`: whether a brace may still be closed
/// in the rest of the text.
fn name<'t>(text: &'t [u8], closes: &mut bool) -> Option<(&'t [u8], &'t [u8])> {
    if let Some(braced) = text.strip_prefix(b"{") {
        let end = if *closes { find(b'}', braced) } else { None };
        *closes = end.is_some();
        let end = end?;
        return Some((braced.get(..end)?, braced.get(end + 1..)?));
    }
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let end = text.iter().position(|byte| !is_part(byte)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> Environment {
        let page = Page {
            path: b"/dir/page.shtml",
            content: b"",
            modified: 784_111_777,
            now: 1_000_000_000,
        };
        Environment::new(&page)
    }

    #[test]
    fn a_page_knows_itself_and_the_time() {
        let mut environment = environment();
        assert_eq!(environment.get(b"document_uri").unwrap(), b"/dir/page.shtml");
        assert_eq!(environment.get(b"DOCUMENT_NAME").unwrap(), b"page.shtml");
        environment.set_time_format(b"%Y %Z");
        assert_eq!(environment.get(b"LAST_MODIFIED").unwrap(), b"1994 UTC");
        assert!(!environment.shows_time());
        assert_eq!(environment.get(b"DATE_GMT").unwrap(), b"2001 GMT");
        assert!(environment.shows_time());
        for of_the_request in ["REMOTE_ADDR", "QUERY_STRING", "HTTP_COOKIE", "PATH"] {
            assert_eq!(environment.get(of_the_request.as_bytes()), None);
        }
    }

    #[test]
    fn values_take_the_place_of_names() {
        let mut environment = environment();
        assert!(environment.set(b"a", b"1".to_vec()));
        for (text, value) in [
            ("$a", "1"),
            ("${A}b $a.c", "1b 1.c"),
            ("$ab|$none|", "||"),
            ("\\$a $ $$a ${a \\x", "$a $ $1 ${a \\x"),
            ("", ""),
            ("$", "$"),
            ("\\", "\\"),
        ] {
            assert_eq!(environment.substitute(text.as_bytes()), value.as_bytes(), "{text}");
        }
    }

    #[test]
    fn variables_cannot_fill_the_memory() {
        let mut environment = environment();
        assert!(environment.set(b"a", vec![b'x'; LONGEST / 2 + 1]));
        let twice = environment.substitute(b"$a$a$a");
        assert_eq!(twice.len(), LONGEST);
        assert!(!environment.set(b"b", vec![b'x'; LONGEST + 1]));
        for number in 0..MOST + 10 {
            let _ = environment.set(format!("v{number}").as_bytes(), Vec::new());
        }
        assert_eq!(environment.set.len(), MOST);
        assert!(environment.set(b"A", b"2".to_vec()), "one that is there may change");
    }
}
