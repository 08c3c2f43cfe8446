//! A kept answer in the form that is pinned: with an Age, and with Date and Expires of the answer that was heard last.

use afpa_bpf::{Coding, Freshness, NOT_MODIFIED_MAX, Response, Variant};

use crate::answer::{Answer, DATE_LENGTH};
use crate::gather::Answers;

/// All answers of one coding: two heads, which differ from the server's own in Age, Date and Expires alone, and the
/// content.
#[derive(Clone, Debug)]
pub struct Copy {
    coding: Coding,
    closing: bool,
    etag: Vec<u8>,
    last_modified: Option<[u8; DATE_LENGTH]>,
    whole: Option<(Vec<u8>, Vec<u8>)>,
    not_modified: Option<Vec<u8>>,
}

/// Where the value of the Age stands in a head.
fn age_at(head: &[u8]) -> usize {
    let line = head.windows(2).position(|pair| pair == b"\r\n").unwrap_or_default();
    line + AGE.len()
}

const AGE: &[u8] = b"\r\nAge: ";

impl Copy {
    /// Most bytes that a head gets more.
    pub const ROOM: usize = AGE.len() + afpa_bpf::AGE_DIGITS;

    /// The answers of a coding. `heard` says the same as all of them, and gives Date and Expires. `None`: the server gives
    /// such answers.
    pub(crate) fn of(
        (coding, closing): (Coding, bool),
        answers: Option<&Answers>,
        heard: &Answer,
        digits: u32,
    ) -> Self {
        let whole = answers.map(|answers| &answers.whole);
        let etag = whole.and_then(|whole| whole.field("etag")).unwrap_or_default();
        let date = whole.and_then(|whole| whole.field("last-modified"));
        Self {
            coding,
            closing,
            etag: crate::gather::opaque(etag).to_vec(),
            last_modified: date.and_then(|date| date.try_into().ok()),
            whole: whole.map(|whole| (aged(whole, heard, digits), whole.body().to_vec())),
            not_modified: answers
                .and_then(|answers| Some(aged(answers.not_modified.as_ref()?, heard, digits)))
                .filter(|head| head.len() <= NOT_MODIFIED_MAX),
        }
    }

    /// In the form that is pinned.
    pub fn variant(&self, freshness: Freshness) -> Variant<'_> {
        let response = |head, body| Response { head, date_offset: age_at(head), body };
        Variant {
            coding: self.coding,
            closing: self.closing,
            etag: &self.etag,
            last_modified: self.last_modified.as_ref(),
            freshness: Some(freshness),
            whole: self.whole.as_ref().map(|(head, body)| response(head.as_slice(), body)),
            not_modified: self.not_modified.as_ref().map(|head| response(head.as_slice(), &[])),
        }
    }
}

/// The head with so many digits of an Age behind the status line, where it lies in the first segment of any answer.
fn aged(answer: &Answer, heard: &Answer, digits: u32) -> Vec<u8> {
    let mut head = answer.head().to_vec();
    for name in ["date", "expires"] {
        let place = answer.lone(name).filter(|place| place.len() == DATE_LENGTH);
        let new = heard.field(name).filter(|new| new.len() == DATE_LENGTH);
        if let Some((old, new)) = place.and_then(|place| head.get_mut(place)).zip(new) {
            old.copy_from_slice(new);
        }
    }
    let line = head.windows(2).position(|pair| pair == b"\r\n").unwrap_or(head.len());
    let zeros = (0..digits).map(|_| b'0');
    head.splice(line..line, AGE.iter().copied().chain(zeros));
    head
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Asked;

    fn answer(date: &str, expires: &str, body: &str) -> Answer {
        let text = format!(
            "HTTP/1.1 200 OK\r\nServer: x\r\nDate: {date}\r\nExpires: {expires}\r\nETag: W/\"a\"\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        Answer::read(text.as_bytes(), Asked::Get).unwrap().unwrap()
    }

    #[test]
    fn age_and_dates_change_and_nothing_else() {
        let (old, new) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:41 GMT");
        let (old_end, new_end) = (&old.replace("08:", "09:"), &new.replace("08:", "09:"));
        let answers = Answers {
            whole: answer(old, old_end, "body"),
            not_modified: None,
            head: true,
            weakly: true,
        };
        let heard = answer(new, new_end, "body");
        let copy = Copy::of((Coding::Identity, false), Some(&answers), &heard, 2);
        let freshness = Freshness { born: 1, fresh_for: 2, digits: 2, ttl: None, asked: 3 };
        let variant = copy.variant(freshness);
        let whole = variant.whole.unwrap();
        let expected = format!(
            "HTTP/1.1 200 OK\r\nAge: 00\r\nServer: x\r\nDate: {new}\r\nExpires: {new_end}\r\n\
             ETag: W/\"a\"\r\nContent-Length: 4\r\n\r\n"
        );
        assert_eq!(String::from_utf8_lossy(whole.head), expected);
        assert_eq!(
            (&whole.head[whole.date_offset..][..4], whole.body),
            (&b"00\r\n"[..], &b"body"[..])
        );
        assert_eq!((variant.etag, variant.not_modified.is_none()), (&b"\"a\""[..], true));
        // A 304 that was as long as one may be is the server's.
        let text = format!("HTTP/1.1 304 Not Modified\r\nDate: {old}\r\nX: \r\n\r\n");
        for (filler, fits) in [(0, true), (NOT_MODIFIED_MAX - text.len(), false)] {
            let text = text.replace("X: ", &format!("X: {}", "x".repeat(filler)));
            let not_modified = Answer::read(text.as_bytes(), Asked::Get).unwrap();
            let answers = Answers { not_modified, ..answers.clone() };
            let copy = Copy::of((Coding::Identity, false), Some(&answers), &heard, 1);
            assert_eq!(copy.variant(freshness).not_modified.is_some(), fits, "{filler}");
        }
        // An Expires that is no date stays as it is.
        let odd = Answers {
            whole: answer(old, "0", "body"),
            not_modified: None,
            head: true,
            weakly: true,
        };
        let copy = Copy::of((Coding::Identity, false), Some(&odd), &heard, 1);
        let head =
            String::from_utf8_lossy(copy.variant(freshness).whole.unwrap().head).into_owned();
        assert!(head.contains("Expires: 0\r\n") && head.contains("Age: 0\r\n"), "{head}");
    }
}
