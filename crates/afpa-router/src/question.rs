//! The question to the router: the parts of a request that routing depends on.

use afpa_http::{Method, Request};

use crate::ids::ListenerId;

/// The parts of a request that routing depends on.
#[derive(Clone, Copy, Debug)]
pub struct Question<'q, F> {
    /// The listener that accepted its connection.
    pub listener: ListenerId,
    /// The host without its port, in any case; empty when there was none.
    pub host: &'q str,
    /// The method.
    pub method: Method<'q>,
    /// The path as [`afpa_http::target::normalise`] gives it.
    pub path: &'q [u8],
    /// The query as it came, without its question mark.
    pub query: Option<&'q [u8]>,
    /// The fields.
    pub fields: F,
}

/// Field lines of a request.
pub trait Fields {
    /// Whether the value of any line called `name` (in any case) passes `test`.
    fn any(&self, name: &str, test: &mut dyn FnMut(&[u8]) -> bool) -> bool;

    /// The subject of the client's certificate (RFC 4514), if it has shown one.
    fn subject(&self) -> Option<&str> {
        None
    }
}

impl Fields for &Request<'_, '_> {
    fn any(&self, name: &str, test: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        self.fields().any(|(line, value)| line.eq_ignore_ascii_case(name) && test(value))
    }
}

/// With the subject of the client's certificate.
impl<F: Fields> Fields for (F, Option<&str>) {
    fn any(&self, name: &str, test: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        self.0.any(name, test)
    }

    fn subject(&self) -> Option<&str> {
        self.1
    }
}

/// No fields at all.
impl Fields for () {
    fn any(&self, _: &str, _: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        false
    }
}

/// Names and values, for `afpa route` and tests.
impl Fields for &[(String, String)] {
    fn any(&self, name: &str, test: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        self.iter().any(|(line, value)| line.eq_ignore_ascii_case(name) && test(value.as_bytes()))
    }
}
