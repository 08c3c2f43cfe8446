//! Operations on a running server: the framework has some, and each protocol module registers its own. The control
//! socket lists all of them, and carries them out.

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its name, such as `deny/add`: its path on the control socket, without the first slash.
    pub name: &'static str,
    /// How it is asked for, and by whom.
    pub kind: OperationKind,
    /// Its parameters, as a line for people: `name=NAME [most=NUMBER]`.
    pub parameters: &'static str,
    /// The effect or the answer, as a line for people.
    pub summary: &'static str,
}

/// How an operation is asked for, and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// It tells something to everybody who reaches the metrics. GET.
    Public,
    /// It tells something to the operator. GET.
    Look,
    /// It changes something, for the operator. POST.
    Change,
}

/// The owner of operations: the framework, or a protocol module.
pub trait Control {
    /// Its operations, in the order of the list for people.
    fn operations(&self) -> &'static [Operation];

    /// Carries out the operation with this name, one of [`operations`](Self::operations).
    ///
    /// # Errors
    /// With a text for the operator.
    fn call(&self, name: &str, arguments: &Arguments<'_>) -> Result<Reply, Refusal>;
}

/// The answer of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Its media type.
    pub content_type: &'static str,
    /// Its bytes.
    pub content: Vec<u8>,
}

impl Reply {
    /// Lines for people.
    pub fn text(text: impl Into<Vec<u8>>) -> Self {
        Self { content_type: "text/plain; charset=utf-8", content: text.into() }
    }

    /// Values for programs.
    pub fn json(text: impl Into<Vec<u8>>) -> Self {
        Self { content_type: "application/json", content: text.into() }
    }
}

/// Why an operation was not carried out. The texts end without a line end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// An argument is missing or wrong.
    Invalid(String),
    /// The object of the operation is not there.
    Absent(String),
    /// The operation failed, through no fault of the arguments.
    Failed,
}

/// The arguments of an operation: `name=value&name=value`, percent-encoded.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arguments<'q>(&'q [u8]);

impl<'q> Arguments<'q> {
    /// The arguments of a query, which has no question mark any more.
    pub fn new(query: Option<&'q [u8]>) -> Self {
        Self(query.unwrap_or_default())
    }

    /// The first value with this name, decoded. `None`: there is none, or it is not encoded well.
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        let mut pairs = self.0.split(|byte| *byte == b'&');
        let value = |pair: &'q [u8]| pair.strip_prefix(name.as_bytes())?.strip_prefix(b"=");
        pairs.find_map(value).and_then(decode)
    }

    /// The same, as text.
    pub fn text(&self, name: &str) -> Option<String> {
        String::from_utf8(self.bytes(name)?).ok()
    }
}

fn decode(value: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(value.len());
    let mut rest = value;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        if *byte != b'%' {
            plain.push(*byte);
            continue;
        }
        let [high, low, tail @ ..] = rest else { return None };
        let digit = |byte: &u8| char::from(*byte).to_digit(16);
        plain.push((digit(high)? * 16 + digit(low)?) as u8);
        rest = tail;
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_found_by_their_names() {
        let arguments = Arguments::new(Some(b"server=app%3A80&group=a%26b&soft=&bad=%ff"));
        assert_eq!(arguments.text("server").as_deref(), Some("app:80"));
        assert_eq!(arguments.text("group").as_deref(), Some("a&b"));
        assert_eq!(arguments.bytes("soft"), Some(Vec::new()));
        assert_eq!((arguments.bytes("bad"), arguments.text("bad")), (Some(vec![0xff]), None));
        for absent in ["x", "serve", "so"] {
            assert_eq!(arguments.bytes(absent), None, "{absent}");
        }
        assert_eq!(Arguments::new(None).bytes("x"), None);
    }

    #[test]
    fn a_purged_path_is_unescaped_once() {
        assert_eq!(decode(b"/a%2520b/%26x").as_deref(), Some(&b"/a%20b/&x"[..]));
        assert_eq!(decode(b"/plain").as_deref(), Some(&b"/plain"[..]));
        for broken in [&b"%"[..], b"%2", b"%zz"] {
            assert_eq!(decode(broken), None);
        }
    }
}
