//! Request methods (RFC 9110 section 9).

/// A request method; case matters (RFC 9110 section 9.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method<'b> {
    /// Transfer a representation (RFC 9110 section 9.3.1).
    Get,
    /// Like GET, without the content (RFC 9110 section 9.3.2).
    Head,
    /// Describe the communication options (RFC 9110 section 9.3.7).
    Options,
    /// Resource-specific processing of the content (RFC 9110 section 9.3.3).
    Post,
    /// Replace the representation (RFC 9110 section 9.3.4).
    Put,
    /// Remove the resource (RFC 9110 section 9.3.5).
    Delete,
    /// Establish a tunnel (RFC 9110 section 9.3.6).
    Connect,
    /// Loop the request back (RFC 9110 section 9.3.8).
    Trace,
    /// Apply a partial modification (RFC 5789).
    Patch,
    /// Any other token; a server answers 501 when it does not know it.
    Other(&'b str),
}

impl<'b> Method<'b> {
    /// Recognises a method name, which must already be a token.
    #[inline]
    pub fn new(name: &'b str) -> Method<'b> {
        match name {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            "OPTIONS" => Method::Options,
            "POST" => Method::Post,
            "PUT" => Method::Put,
            "DELETE" => Method::Delete,
            "CONNECT" => Method::Connect,
            "TRACE" => Method::Trace,
            "PATCH" => Method::Patch,
            other => Method::Other(other),
        }
    }

    /// The name as it stands in the request line.
    pub fn as_str(&self) -> &'b str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Options => "OPTIONS",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
            Method::Connect => "CONNECT",
            Method::Trace => "TRACE",
            Method::Patch => "PATCH",
            Method::Other(name) => name,
        }
    }

    /// GET and HEAD: the methods that select a representation, to which 304 may be the answer
    /// (RFC 9110 section 13.2.2).
    #[inline]
    pub fn is_get_or_head(&self) -> bool {
        matches!(self, Method::Get | Method::Head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_the_round_trip_and_case_matters() {
        for name in
            ["GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "CONNECT", "TRACE", "PATCH", "BREW"]
        {
            assert_eq!(Method::new(name).as_str(), name);
        }
        assert_eq!(Method::new("get"), Method::Other("get"));
        assert_eq!(Method::new("BREW"), Method::Other("BREW"));
        assert!(Method::Head.is_get_or_head() && !Method::Options.is_get_or_head());
    }
}
