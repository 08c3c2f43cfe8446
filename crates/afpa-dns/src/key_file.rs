//! Secrets of keys in files: base64 alone, or as `tsig-keygen` and BIND, `keymgr` and Knot, or NSD write them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::name::Name;
use crate::tsig::Algorithm;

/// Bytes of the shortest secret.
const SHORTEST: usize = 16;

/// Why a file has no secret for a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyFileError {
    /// None that is long enough.
    #[error("no secret in base64 of 16 bytes or more")]
    NoSecret,
    /// A quotation mark or a comment does not end.
    #[error("a quotation mark or a comment without an end")]
    Endless,
    /// It has keys of other names, of which this is one.
    #[error("the key {0}, and none of the name that was asked for")]
    OtherName(String),
    /// Several have the name, or none.
    #[error("several secrets for this key")]
    Several,
    /// The file says that the key signs in another way.
    #[error("a key for the algorithm {0}")]
    OtherAlgorithm(String),
}

/// The secret of the key with this name. A file that tells a name or an algorithm has to tell these.
///
/// # Errors
/// When it is not sure.
pub fn secret(text: &str, name: &Name, algorithm: Algorithm) -> Result<Vec<u8>, KeyFileError> {
    // Base64 may begin as a comment does.
    if let Ok(secret) = decode(text.trim()) {
        return Ok(secret);
    }
    let words = words(text).ok_or(KeyFileError::Endless)?;
    if let [Word::Plain(word)] = words.as_slice() {
        return decode(word);
    }
    let all = keys(&words);
    let is_named = |key: &&InFile<'_>| key.name.is_none_or(|own| is_name(own, name));
    let mut named = all.iter().filter(is_named);
    let Some(key) = named.next() else {
        let other = all.first().and_then(|key| key.name);
        return Err(
            other.map_or(KeyFileError::NoSecret, |other| KeyFileError::OtherName(other.into()))
        );
    };
    if named.next().is_some() {
        return Err(KeyFileError::Several);
    }
    if let Some(other) = key.algorithm.filter(|own| !is_algorithm(own, algorithm)) {
        return Err(KeyFileError::OtherAlgorithm(other.into()));
    }
    decode(key.secret.unwrap_or_default())
}

fn is_name(own: &str, name: &Name) -> bool {
    Name::parse(own, &Name::root()).is_ok_and(|own| own.lower() == name.lower())
}

fn is_algorithm(own: &str, algorithm: Algorithm) -> bool {
    own.strip_suffix('.').unwrap_or(own).eq_ignore_ascii_case(algorithm.text())
}

fn decode(word: &str) -> Result<Vec<u8>, KeyFileError> {
    let secret = STANDARD.decode(word).ok().filter(|secret| secret.len() >= SHORTEST);
    secret.ok_or(KeyFileError::NoSecret)
}

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word<'t> {
    Plain(&'t str),
    Quoted(&'t str),
    /// A brace or a semicolon.
    Mark(char),
}

impl<'t> Word<'t> {
    fn text(self) -> Option<&'t str> {
        match self {
            Word::Plain(text) | Word::Quoted(text) => Some(text),
            Word::Mark(_) => None,
        }
    }
}

/// The words, without comments. `None`: a quotation mark or a comment does not end.
fn words(text: &str) -> Option<Vec<Word<'_>>> {
    let mut words = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        let Some(first) = rest.chars().next() else { return Some(words) };
        // Where settings end with a colon, no comment begins with a slash, but base64 may.
        let is_value = matches!(words.last(), Some(Word::Plain(word)) if word.ends_with(':'));
        if first == '#' || (!is_value && rest.starts_with("//")) {
            rest = rest.split_once('\n').map_or("", |(_, behind)| behind);
        } else if !is_value && rest.starts_with("/*") {
            rest = rest.split_once("*/")?.1;
        } else if let Some(inner) = rest.strip_prefix(['"', '\'']) {
            let (word, behind) = inner.split_once(first)?;
            words.push(Word::Quoted(word));
            rest = behind;
        } else if let Some(behind) = rest.strip_prefix(['{', '}', ';']) {
            words.push(Word::Mark(first));
            rest = behind;
        } else {
            let ends = |c: char| c.is_whitespace() || "{};,#\"'".contains(c);
            let (word, behind) = rest.split_at(rest.find(ends).unwrap_or(rest.len()));
            words.push(Word::Plain(word));
            rest = behind;
        }
    }
}

/// A key as a file has it.
#[derive(Clone, Debug, Default)]
struct InFile<'t> {
    name: Option<&'t str>,
    algorithm: Option<&'t str>,
    secret: Option<&'t str>,
}

/// The keys that have a secret.
fn keys<'t>(words: &[Word<'t>]) -> Vec<InFile<'t>> {
    let mut keys = vec![InFile::default()];
    let mut rest = words;
    while let Some((word, behind)) = rest.split_first() {
        rest = behind;
        // A quoted word is a value, whatever it says.
        let Word::Plain(word) = *word else { continue };
        let Some((value, after)) = behind.split_first() else { break };
        let Some(value) = value.text() else { continue };
        let (setting, has_colon) = match word.strip_suffix(':') {
            Some(setting) => (setting, true),
            None => (word, false),
        };
        let named = || InFile { name: Some(value), ..InFile::default() };
        match (setting.to_ascii_lowercase().as_str(), has_colon) {
            ("key", false) if after.first() == Some(&Word::Mark('{')) => keys.push(named()),
            // The keys follow, each with its settings.
            ("key", true) if value == "-" || value.ends_with(':') => continue,
            // A key that another section uses.
            ("key", _) => {}
            ("name" | "id", true) => keys.push(named()),
            ("algorithm", _) => {
                if let Some(key) = keys.last_mut() {
                    key.algorithm = Some(value);
                }
            }
            ("secret", _) => match keys.last_mut() {
                Some(key) if key.secret.is_none() => key.secret = Some(value),
                _ => keys.push(InFile { secret: Some(value), ..InFile::default() }),
            },
            _ => continue,
        }
        rest = after;
    }
    keys.retain(|key| key.secret.is_some());
    keys
}

#[cfg(test)]
#[path = "key_file_tests.rs"]
mod tests;
