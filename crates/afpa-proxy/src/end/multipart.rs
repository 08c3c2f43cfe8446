//! The closing delimiter of `multipart/byteranges` (RFC 2046 section 5.1.1).

/// The boundary of a multipart message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boundary(Box<[u8]>);

impl Boundary {
    /// Longest boundary of the RFC.
    const MOST: usize = 70;

    /// The boundary in the value of a Content-Type field that names `multipart/byteranges`.
    pub fn of_byteranges(content_type: &[u8]) -> Option<Boundary> {
        let mut parameters = content_type.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        if !parameters.next()?.eq_ignore_ascii_case(b"multipart/byteranges") {
            return None;
        }
        let value = parameters.find_map(|parameter| {
            let (name, value) = parameter.split_at_checked(b"boundary=".len())?;
            name.eq_ignore_ascii_case(b"boundary=").then_some(value)
        })?;
        let value = match value {
            [b'"', quoted @ .., b'"'] => quoted,
            token => token,
        };
        let fits = (1..=Self::MOST).contains(&value.len())
            && value.iter().all(|&byte| byte == b' ' || byte.is_ascii_graphic() && byte != b'"')
            && !value.contains(&b'\\')
            && value.last() != Some(&b' ');
        fits.then(|| Boundary(value.into()))
    }

    /// The boundary itself.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Searches for CRLF, two dashes, the boundary and two more dashes, in pieces.
///
/// The automaton of Knuth, Morris and Pratt: it never looks at a byte twice, and needs no more memory
/// than the delimiter, however the pieces fall.
#[derive(Clone, Debug)]
pub(super) struct Search {
    delimiter: Vec<u8>,
    /// For each length of a matched prefix: its longest proper prefix that is also its suffix.
    fallback: Vec<u8>,
    matched: usize,
}

impl Search {
    pub(super) fn for_end(boundary: &Boundary) -> Self {
        let delimiter = [b"\r\n--", boundary.as_bytes(), b"--"].concat();
        let fallback = fallback(&delimiter);
        // The delimiter may stand at the very start of the content, where no CRLF is needed.
        Self { delimiter, fallback, matched: 2 }
    }

    /// How many bytes of `input` belong to the content, and whether it ends with them.
    pub(super) fn feed(&mut self, input: &[u8]) -> (usize, bool) {
        let mut at = 0;
        while let Some(&byte) = input.get(at) {
            if self.matched == 0 {
                match memchr::memchr(b'\r', input.get(at..).unwrap_or_default()) {
                    Some(skipped) => at += skipped + 1,
                    None => return (input.len(), false),
                }
                self.matched = 1;
                continue;
            }
            self.step(byte);
            at += 1;
            if self.matched == self.delimiter.len() {
                return (at, true);
            }
        }
        (at, false)
    }

    fn step(&mut self, byte: u8) {
        while self.matched > 0 && self.delimiter.get(self.matched) != Some(&byte) {
            self.matched = self.fallback.get(self.matched - 1).map_or(0, |&to| usize::from(to));
        }
        self.matched += usize::from(self.delimiter.get(self.matched) == Some(&byte));
    }
}

fn fallback(pattern: &[u8]) -> Vec<u8> {
    let mut table = vec![0u8; pattern.len()];
    let mut border = 0usize;
    for at in 1..pattern.len() {
        while border > 0 && pattern[at] != pattern[border] {
            border = usize::from(table[border - 1]);
        }
        border += usize::from(pattern[at] == pattern[border]);
        // A delimiter is at most 76 bytes long.
        table[at] = u8::try_from(border).unwrap_or(0);
    }
    table
}
