//! The question to the router: the parts of a request that routing depends on.

use std::net::IpAddr;

use afpa_http::{Method, Request};

use crate::ids::{ListenerId, SiteId};

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

impl<'q, F> Question<'q, F> {
    /// The same question with other fields.
    pub fn with<G>(&self, fields: G) -> Question<'q, G> {
        let Self { listener, host, method, path, query, .. } = *self;
        Question { listener, host, method, path, query, fields }
    }
}

/// Field lines of a request, and its client.
pub trait Fields {
    /// Whether the value of any line called `name` (in any case) passes `test`.
    fn any(&self, name: &str, test: &mut dyn FnMut(&[u8]) -> bool) -> bool;

    /// The subject of the client's certificate (RFC 4514), if it has shown one.
    fn subject(&self) -> Option<&str> {
        None
    }

    /// The address of the client, as a site sees it: behind a router that the site trusts, the one that this names.
    /// `None`: it has none.
    fn client(&self, _: SiteId) -> Option<IpAddr> {
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

    fn client(&self, site: SiteId) -> Option<IpAddr> {
        self.0.client(site)
    }
}

/// With the address of the client.
impl<F: Fields> Fields for (F, Option<IpAddr>) {
    fn any(&self, name: &str, test: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        self.0.any(name, test)
    }

    fn subject(&self) -> Option<&str> {
        self.0.subject()
    }

    fn client(&self, _: SiteId) -> Option<IpAddr> {
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
