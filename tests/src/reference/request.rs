//! The requests that are compared.

/// A request, of which all but the line and the Host field may vary.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method, known or not.
    pub method: String,
    /// The target in origin form.
    pub target: String,
    /// 0 or 1.
    pub minor_version: u8,
    /// Field lines other than Host and those of the body.
    pub fields: Vec<(&'static str, String)>,
    /// A body, sent with Content-Length when not empty.
    pub body: Vec<u8>,
}

impl Request {
    /// The value of a field; the tests send each at most once.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let line = self.fields.iter().find(|(have, _)| have.eq_ignore_ascii_case(name));
        line.map(|(_, value)| value.as_str())
    }

    /// Whether the connection ends after the response (RFC 9112, 9.3).
    pub fn closes(&self) -> bool {
        let option = self.field("connection").unwrap_or_default();
        match self.minor_version {
            0 => !option.eq_ignore_ascii_case("keep-alive"),
            _ => option.eq_ignore_ascii_case("close"),
        }
    }

    /// The bytes on the wire.
    pub fn bytes(&self) -> Vec<u8> {
        let mut head = format!(
            "{} {} HTTP/1.{}\r\nHost: test\r\n",
            self.method, self.target, self.minor_version
        );
        for (name, value) in &self.fields {
            head += &format!("{name}: {value}\r\n");
        }
        if !self.body.is_empty() {
            head += &format!("Content-Length: {}\r\n", self.body.len());
        }
        let mut bytes = (head + "\r\n").into_bytes();
        bytes.extend(&self.body);
        bytes
    }
}
