//! Operations on a running server: the framework has some, and each protocol module registers its own. The control
//! socket lists all of them, and carries them out.

use std::fmt;

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

impl Operation {
    /// An operation of [`OperationKind::Public`], by its name, its parameters and a line about it.
    pub const fn public(
        name: &'static str,
        parameters: &'static str,
        summary: &'static str,
    ) -> Self {
        Self { name, kind: OperationKind::Public, parameters, summary }
    }

    /// An operation of [`OperationKind::Look`], by the same three.
    pub const fn look(name: &'static str, parameters: &'static str, summary: &'static str) -> Self {
        Self { name, kind: OperationKind::Look, parameters, summary }
    }

    /// An operation of [`OperationKind::Change`], by the same three.
    pub const fn change(
        name: &'static str,
        parameters: &'static str,
        summary: &'static str,
    ) -> Self {
        Self { name, kind: OperationKind::Change, parameters, summary }
    }

    /// The method by which it is asked for.
    pub fn method(&self) -> &'static str {
        if self.kind == OperationKind::Change { "POST" } else { "GET" }
    }
}

/// `afpa call` reads the first two words of the line.
impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Operation { name, parameters, summary, .. } = self;
        let gap = if parameters.is_empty() { "" } else { " " };
        write!(f, "{:<4} /{name}{gap}{parameters}: {summary}", self.method())
    }
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

/// The operations that a client may ask for.
pub struct Offered<'o>(Vec<(&'o dyn Control, &'static Operation)>);

impl<'o> Offered<'o> {
    /// All operations of these owners, or what they offer to everybody who reaches the metrics.
    pub fn of(owners: &[&'o dyn Control], trusted: bool) -> Self {
        let all = owners
            .iter()
            .flat_map(|owner| owner.operations().iter().map(move |operation| (*owner, operation)));
        let may = |operation: &Operation| trusted || operation.kind == OperationKind::Public;
        Self(all.filter(|(_, operation)| may(operation)).collect())
    }

    /// The list for people, and for `afpa call`.
    pub fn list(&self) -> String {
        self.0.iter().map(|(_, operation)| format!("{operation}\n")).collect()
    }

    /// The operation with this name, and its owner.
    ///
    /// # Errors
    /// With a text that names the operations that there are.
    pub fn find(&self, name: &[u8]) -> Result<(&'o dyn Control, &'static Operation), Refusal> {
        let found = self.0.iter().find(|(_, operation)| operation.name.as_bytes() == name);
        found.copied().ok_or_else(|| {
            let names: Vec<_> = self.0.iter().map(|(_, operation)| operation.name).collect();
            let names = names.join(", ");
            Refusal::Absent(format!("there is no such operation; there are: {names}"))
        })
    }
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

    /// All of them, as they came; `None`: they are no text.
    pub fn as_text(&self) -> Option<&'q str> {
        str::from_utf8(self.0).ok()
    }

    /// Whether there is a value with this name.
    pub fn has(&self, name: &str) -> bool {
        self.encoded(name).is_some()
    }

    /// The first value with this name, decoded. `None`: there is none, or it is not encoded well.
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.encoded(name).and_then(decode)
    }

    /// That value as text.
    pub fn text(&self, name: &str) -> Option<String> {
        String::from_utf8(self.bytes(name)?).ok()
    }

    fn encoded(&self, name: &str) -> Option<&'q [u8]> {
        let mut pairs = self.0.split(|byte| *byte == b'&');
        pairs.find_map(|pair| pair.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
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
