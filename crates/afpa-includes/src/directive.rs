//! From the bytes of a document to its text and its elements.

use crate::scan;

/// A piece of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// Bytes that stay as they are.
    Text(&'a [u8]),
    /// `<!--#name attribute="value" ... -->`
    Element(Element),
    /// An element without its end, up to the end of the document.
    Unfinished,
}

/// An element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Element {
    /// In lower case.
    pub(crate) name: Vec<u8>,
    pub(crate) attributes: Vec<Attribute>,
}

/// An attribute of an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attribute {
    /// In lower case.
    pub(crate) name: Vec<u8>,
    /// Without its quotes; `None`: there was no equals sign.
    pub(crate) value: Option<Vec<u8>>,
}

/// Reads the pieces of a document, one after the other.
pub(crate) struct Pieces<'a> {
    document: &'a [u8],
    at: usize,
    /// How far lines were counted, and how many ended there.
    counted: (usize, usize),
}

const START: &[u8] = b"<!--#";
const END: &[u8] = b"-->";

impl<'a> Pieces<'a> {
    pub(crate) fn new(document: &'a [u8]) -> Self {
        Pieces { document, at: 0, counted: (0, 0) }
    }

    /// The line of the next piece, from 1.
    pub(crate) fn line(&mut self) -> usize {
        let (from, ended) = self.counted;
        let since = self.document.get(from..self.at).unwrap_or_default();
        self.counted = (self.at, ended + scan::line_ends(since));
        1 + self.counted.1
    }

    fn rest(&self) -> &'a [u8] {
        self.document.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.document.get(self.at).copied()
    }

    fn take_while(&mut self, wanted: impl Fn(u8) -> bool) -> &'a [u8] {
        let rest = self.rest();
        let end = rest.iter().position(|byte| !wanted(*byte)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    fn skip_spaces(&mut self) {
        self.take_while(|byte| byte.is_ascii_whitespace());
    }

    /// Takes bytes up to a space, one of `also`, or the end of the element.
    fn word(&mut self, also: &[u8]) -> &'a [u8] {
        let rest = self.rest();
        let ends = |at: usize, byte: u8| {
            byte.is_ascii_whitespace() || also.contains(&byte) || rest[at..].starts_with(END)
        };
        let end = rest.iter().enumerate().position(|(at, byte)| ends(at, *byte));
        let end = end.unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    /// The element behind its start; `None` if it does not end.
    fn element(&mut self) -> Option<Element> {
        let name = self.word(b"").to_ascii_lowercase();
        let mut attributes = Vec::new();
        loop {
            self.skip_spaces();
            if self.rest().starts_with(END) {
                self.at += END.len();
                return Some(Element { name, attributes });
            }
            self.peek()?;
            attributes.push(self.attribute()?);
        }
    }

    /// `None` if the document ends within it.
    fn attribute(&mut self) -> Option<Attribute> {
        let name = self.word(b"=").to_ascii_lowercase();
        self.skip_spaces();
        if self.peek() != Some(b'=') {
            return Some(Attribute { name, value: None });
        }
        self.at += 1;
        self.skip_spaces();
        let value = match self.peek()? {
            quote @ (b'"' | b'\'' | b'`') => self.quoted(quote)?,
            _ => self.word(b"").to_vec(),
        };
        Some(Attribute { name, value: Some(value) })
    }

    /// A backslash before the quote makes it part of the value; before anything else both stay.
    fn quoted(&mut self, quote: u8) -> Option<Vec<u8>> {
        self.at += 1;
        let mut value = Vec::new();
        loop {
            let byte = self.peek()?;
            self.at += 1;
            match byte {
                b'\\' if self.peek() == Some(quote) => {
                    value.push(quote);
                    self.at += 1;
                }
                b'\\' => {
                    value.push(byte);
                    value.push(self.peek()?);
                    self.at += 1;
                }
                _ if byte == quote => return Some(value),
                _ => value.push(byte),
            }
        }
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let rest = self.rest();
        if rest.is_empty() {
            return None;
        }
        match scan::find_text(START, rest) {
            Some(0) => {
                self.at += START.len();
                let element = self.element();
                if element.is_none() {
                    self.at = self.document.len();
                }
                Some(element.map_or(Piece::Unfinished, Piece::Element))
            }
            start => {
                let text = rest.get(..start.unwrap_or(rest.len())).unwrap_or_default();
                self.at += text.len();
                Some(Piece::Text(text))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(document: &str) -> Vec<Piece<'_>> {
        Pieces::new(document.as_bytes()).collect()
    }

    fn element(name: &str, attributes: &[(&str, Option<&str>)]) -> Piece<'static> {
        let attributes = attributes.iter().map(|(name, value)| Attribute {
            name: name.as_bytes().to_vec(),
            value: value.map(|value| value.as_bytes().to_vec()),
        });
        Piece::Element(Element { name: name.as_bytes().to_vec(), attributes: attributes.collect() })
    }

    #[test]
    fn text_and_elements_alternate() {
        assert_eq!(
            pieces("a<!--#echo var=\"X\" -->b"),
            [Piece::Text(b"a"), element("echo", &[("var", Some("X"))]), Piece::Text(b"b")]
        );
        assert_eq!(pieces("<!-- a comment --><!-"), [Piece::Text(b"<!-- a comment --><!-")]);
    }

    #[test]
    fn values_are_quoted_in_three_ways_or_not_at_all() {
        let attributes =
            [("a", Some("1 -->")), ("b", Some("2\"")), ("c", Some("3")), ("d", Some("4"))];
        let document = "<!--#X A=\"1 -->\" b = '2\"' c=`3` d=4-->";
        assert_eq!(pieces(document), [element("x", &attributes)]);
        assert_eq!(pieces("<!--#else-->"), [element("else", &[])]);
        assert_eq!(pieces("<!--#x a b=\"\"-->"), [element("x", &[("a", None), ("b", Some(""))])]);
    }

    #[test]
    fn a_backslash_takes_the_quote_its_meaning() {
        let document = r#"<!--#x a="say \"yes\" \$b \\" -->"#;
        assert_eq!(pieces(document), [element("x", &[("a", Some(r#"say "yes" \$b \\"#))])]);
    }

    #[test]
    fn what_does_not_end_is_one_piece() {
        for document in ["<!--#", "<!--#x", "<!--#x a", "<!--#x a=", "<!--#x a=\"", "<!--#x a=\"\\"]
        {
            assert_eq!(pieces(document), [Piece::Unfinished], "{document}");
        }
    }

    #[test]
    fn lines_are_counted() {
        let mut pieces = Pieces::new(b"one\ntwo\n<!--#x\na=1 -->");
        assert_eq!(pieces.line(), 1);
        pieces.next();
        assert_eq!(pieces.line(), 3);
        pieces.next();
        assert_eq!(pieces.line(), 4);
    }
}
