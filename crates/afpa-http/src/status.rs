//! Status codes (RFC 9110 section 15).

use std::fmt;

/// A status code that AFPA itself sends, with its reason phrase.
///
/// Only the associated constants exist, hence every value has a reason phrase.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status(u16);

macro_rules! statuses {
    ($($code:literal $name:ident $reason:literal $source:literal;)*) => {
        impl Status {
            $(
                #[doc = concat!("`", $code, " ", $reason, "` (", $source, ").")]
                pub const $name: Status = Status($code);
            )*

            /// Every status of this table, in ascending order.
            pub const ALL: &[Status] = &[$(Status::$name),*];

            /// The reason phrase of the status line (RFC 9112 section 4).
            pub const fn reason(self) -> &'static str {
                match self.0 {
                    $($code => $reason,)*
                    _ => "",
                }
            }
        }
    };
}

statuses! {
    100 CONTINUE "Continue" "RFC 9110 section 15.2.1";
    200 OK "OK" "RFC 9110 section 15.3.1";
    204 NO_CONTENT "No Content" "RFC 9110 section 15.3.5";
    206 PARTIAL_CONTENT "Partial Content" "RFC 9110 section 15.3.7";
    301 MOVED_PERMANENTLY "Moved Permanently" "RFC 9110 section 15.4.2";
    302 FOUND "Found" "RFC 9110 section 15.4.3";
    303 SEE_OTHER "See Other" "RFC 9110 section 15.4.4";
    304 NOT_MODIFIED "Not Modified" "RFC 9110 section 15.4.5";
    307 TEMPORARY_REDIRECT "Temporary Redirect" "RFC 9110 section 15.4.8";
    308 PERMANENT_REDIRECT "Permanent Redirect" "RFC 9110 section 15.4.9";
    400 BAD_REQUEST "Bad Request" "RFC 9110 section 15.5.1";
    403 FORBIDDEN "Forbidden" "RFC 9110 section 15.5.4";
    404 NOT_FOUND "Not Found" "RFC 9110 section 15.5.5";
    405 METHOD_NOT_ALLOWED "Method Not Allowed" "RFC 9110 section 15.5.6";
    406 NOT_ACCEPTABLE "Not Acceptable" "RFC 9110 section 15.5.7";
    408 REQUEST_TIMEOUT "Request Timeout" "RFC 9110 section 15.5.9";
    411 LENGTH_REQUIRED "Length Required" "RFC 9110 section 15.5.12";
    412 PRECONDITION_FAILED "Precondition Failed" "RFC 9110 section 15.5.13";
    413 CONTENT_TOO_LARGE "Content Too Large" "RFC 9110 section 15.5.14";
    414 URI_TOO_LONG "URI Too Long" "RFC 9110 section 15.5.15";
    416 RANGE_NOT_SATISFIABLE "Range Not Satisfiable" "RFC 9110 section 15.5.17";
    417 EXPECTATION_FAILED "Expectation Failed" "RFC 9110 section 15.5.18";
    421 MISDIRECTED_REQUEST "Misdirected Request" "RFC 9110 section 15.5.20";
    425 TOO_EARLY "Too Early" "RFC 8470 section 5.2";
    426 UPGRADE_REQUIRED "Upgrade Required" "RFC 9110 section 15.5.22";
    429 TOO_MANY_REQUESTS "Too Many Requests" "RFC 6585 section 4";
    431 FIELDS_TOO_LARGE "Request Header Fields Too Large" "RFC 6585 section 5";
    500 INTERNAL_SERVER_ERROR "Internal Server Error" "RFC 9110 section 15.6.1";
    501 NOT_IMPLEMENTED "Not Implemented" "RFC 9110 section 15.6.2";
    502 BAD_GATEWAY "Bad Gateway" "RFC 9110 section 15.6.3";
    503 SERVICE_UNAVAILABLE "Service Unavailable" "RFC 9110 section 15.6.4";
    504 GATEWAY_TIMEOUT "Gateway Timeout" "RFC 9110 section 15.6.5";
    505 VERSION_NOT_SUPPORTED "HTTP Version Not Supported" "RFC 9110 section 15.6.6";
}

impl Status {
    /// The three-digit code.
    #[inline]
    pub const fn code(self) -> u16 {
        self.0
    }

    /// True for the answers that never carry content: 1xx, 204 and 304 (RFC 9110 section 6.4.1).
    pub const fn is_bodiless(self) -> bool {
        self.0 < 200 || self.0 == 204 || self.0 == 304
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0, self.reason())
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_three_digits_and_a_reason() {
        for pair in Status::ALL.windows(2) {
            assert!(pair[0] < pair[1], "{:?} stands before {:?}", pair[0], pair[1]);
        }
        for status in Status::ALL {
            assert!((100..600).contains(&status.code()) && !status.reason().is_empty());
        }
        assert_eq!(Status::NOT_MODIFIED.to_string(), "304 Not Modified");
        assert!(Status::NOT_MODIFIED.is_bodiless() && !Status::OK.is_bodiless());
    }
}
