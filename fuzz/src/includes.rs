//! Targets of afpa-includes. They are in a file of their own, so that an ordinary test of that crate can include it.

use afpa_includes::{Document, ExpandError, Facts, Files, Limits, Page, Unreadable, expand};

/// Small enough for inputs of a fuzzer to reach every limit.
const LIMITS: Limits = Limits { size: 4096, depth: 4, includes: 16 };

/// A page and, each behind a form feed, documents at `/dir/0.shtml`, `/dir/1.shtml`, and so on. For any content the
/// expanded page keeps to its limits, is the same each time, and asks only for normalised paths. A page without elements
/// stays as it is.
pub fn includes(data: &[u8]) {
    let mut documents: Vec<&[u8]> = data.split(|byte| *byte == 0x0c).collect();
    let content = documents.remove(0);
    let page =
        Page { path: b"/dir/page.shtml", content, modified: 784_111_777, now: 1_000_000_000 };
    let run = || expand(&page, &mut Folder(&documents), &LIMITS);
    let expanded = run();
    assert_eq!(run(), expanded);
    match expanded {
        Ok(expanded) => {
            assert!(expanded.content.len() <= LIMITS.size);
            assert!(expanded.faults.len() <= 64);
            if !content.windows(5).any(|window| window == b"<!--#") {
                assert_eq!(expanded.content, content);
            }
        }
        Err(error) => assert_eq!(error, ExpandError::TooMuch, "no file changes here"),
    }
}

struct Folder<'a>(&'a [&'a [u8]]);

impl Folder<'_> {
    fn find(&self, path: &[u8]) -> Result<&[u8], Unreadable> {
        assert_eq!(path.first(), Some(&b'/'));
        assert!(!path.iter().any(u8::is_ascii_control), "{}", path.escape_ascii());
        assert!(!path.split(|byte| *byte == b'/').any(|segment| matches!(segment, b"." | b"..")));
        let name = path.strip_prefix(b"/dir/").and_then(|name| name.strip_suffix(b".shtml"));
        let number = std::str::from_utf8(name.unwrap_or_default()).ok();
        let number: Option<usize> = number.and_then(|number| number.parse().ok());
        number.and_then(|number| self.0.get(number)).copied().ok_or(Unreadable::Missing)
    }
}

impl Files for Folder<'_> {
    fn read(&mut self, path: &[u8], most: usize) -> Result<Document, Unreadable> {
        let content = self.find(path)?.to_vec();
        if content.len() > most {
            return Err(Unreadable::TooLong);
        }
        Ok(Document { has_elements: content.len() % 2 == 0, content, path: path.to_vec() })
    }

    fn look(&mut self, path: &[u8]) -> Result<Facts, Unreadable> {
        let size = self.find(path)?.len() as u64;
        Ok(Facts { size: size.wrapping_mul(0x9e37_79b9_7f4a_7c15), modified: size * 1_000_000_007 })
    }
}
