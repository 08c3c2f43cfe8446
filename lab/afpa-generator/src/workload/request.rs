//! A file, and a request with what must come back.

use crate::body::Body;

/// A file below the document root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// As in a request.
    pub path: String,
    /// The content.
    pub body: Body,
}

impl Object {
    /// A file of a length; the path decides the content.
    pub fn new(path: impl Into<String>, length: u64) -> Self {
        let path = path.into();
        Self { body: Body::of(&path, length), path }
    }
}

/// One thing to ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Request target.
    pub path: String,
    /// Header fields besides Host and Connection.
    pub headers: Vec<(String, String)>,
    /// The status that the response must have.
    pub status: u16,
    /// The content that the response must have; `None`: any, or none.
    pub body: Option<Body>,
    /// Its share among the weights of all requests.
    pub weight: u32,
}

impl Request {
    /// A GET for a file.
    pub fn get(object: &Object) -> Self {
        Self {
            path: object.path.clone(),
            headers: Vec::new(),
            status: 200,
            body: Some(object.body),
            weight: 1,
        }
    }

    /// With header fields that the response's content does not depend on.
    pub fn with_headers(self, headers: Vec<(String, String)>) -> Self {
        Self { headers, ..self }
    }

    /// With another share.
    pub fn with_weight(self, weight: u32) -> Self {
        Self { weight, ..self }
    }

    /// Only if it has changed since its date, which it has not: the answer is 304.
    pub fn if_modified(mut self) -> Self {
        self.headers.push(("If-Modified-Since".into(), crate::files::LAST_MODIFIED.into()));
        Self { status: 304, body: None, ..self }
    }

    /// The request's bytes. `persistent`: whether another may follow on the connection.
    pub fn bytes(&self, host: &str, persistent: bool) -> Vec<u8> {
        let mut text = format!("GET {} HTTP/1.1\r\nHost: {host}\r\n", self.path);
        for (name, value) in self.all_headers(persistent) {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        text.into_bytes()
    }

    /// Header fields but for Host. HTTP/1.1 persists when nothing is said (RFC 9112 section 9.3).
    pub(crate) fn all_headers(&self, persistent: bool) -> Vec<(String, String)> {
        let is_connection = |name: &str| name.eq_ignore_ascii_case("connection");
        let keep = |(name, _): &&(String, String)| persistent || !is_connection(name);
        let mut headers: Vec<_> = self.headers.iter().filter(keep).cloned().collect();
        if !persistent {
            headers.push(("Connection".into(), "close".into()));
        }
        headers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_what_http_wants() {
        let request = Request::get(&Object::new("/a", 5));
        assert_eq!(request.bytes("h:1", true), b"GET /a HTTP/1.1\r\nHost: h:1\r\n\r\n");
        let keep = vec![("connection".to_owned(), "keep-alive".to_owned())];
        let closing = request.clone().with_headers(keep).if_modified();
        assert_eq!((closing.status, closing.body), (304, None));
        let text = String::from_utf8(closing.bytes("h", false)).unwrap();
        assert!(text.ends_with("GMT\r\nConnection: close\r\n\r\n"), "{text}");
        assert!(!text.contains("keep-alive"));
    }
}
