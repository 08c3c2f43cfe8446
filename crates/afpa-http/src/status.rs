//! Status codes (RFC 9110 section 15).

use std::fmt;

/// A status code from 100 to 599. Those of IANA's registry have a reason phrase and a constant of their own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status(u16);

macro_rules! statuses {
    ($($code:literal $name:ident $reason:literal $source:literal;)*) => {
        impl Status {
            $(
                #[doc = concat!("`", $code, " ", $reason, "` (", $source, ").")]
                pub const $name: Status = Status($code);
            )*

            /// Every status that is registered, in ascending order. Two are reserved and not among them: 306 and 418.
            pub const ALL: &[Status] = &[$(Status::$name),*];

            /// The reason phrase of the status line (RFC 9112 section 4); empty for a code that is not registered.
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
    101 SWITCHING_PROTOCOLS "Switching Protocols" "RFC 9110 section 15.2.2";
    102 PROCESSING "Processing" "RFC 2518 section 10.1";
    103 EARLY_HINTS "Early Hints" "RFC 8297 section 2";
    200 OK "OK" "RFC 9110 section 15.3.1";
    201 CREATED "Created" "RFC 9110 section 15.3.2";
    202 ACCEPTED "Accepted" "RFC 9110 section 15.3.3";
    203 NON_AUTHORITATIVE "Non-Authoritative Information" "RFC 9110 section 15.3.4";
    204 NO_CONTENT "No Content" "RFC 9110 section 15.3.5";
    205 RESET_CONTENT "Reset Content" "RFC 9110 section 15.3.6";
    206 PARTIAL_CONTENT "Partial Content" "RFC 9110 section 15.3.7";
    207 MULTI_STATUS "Multi-Status" "RFC 4918 section 11.1";
    208 ALREADY_REPORTED "Already Reported" "RFC 5842 section 7.1";
    226 IM_USED "IM Used" "RFC 3229 section 10.4.1";
    300 MULTIPLE_CHOICES "Multiple Choices" "RFC 9110 section 15.4.1";
    301 MOVED_PERMANENTLY "Moved Permanently" "RFC 9110 section 15.4.2";
    302 FOUND "Found" "RFC 9110 section 15.4.3";
    303 SEE_OTHER "See Other" "RFC 9110 section 15.4.4";
    304 NOT_MODIFIED "Not Modified" "RFC 9110 section 15.4.5";
    305 USE_PROXY "Use Proxy" "RFC 9110 section 15.4.6";
    307 TEMPORARY_REDIRECT "Temporary Redirect" "RFC 9110 section 15.4.8";
    308 PERMANENT_REDIRECT "Permanent Redirect" "RFC 9110 section 15.4.9";
    400 BAD_REQUEST "Bad Request" "RFC 9110 section 15.5.1";
    401 UNAUTHORIZED "Unauthorized" "RFC 9110 section 15.5.2";
    402 PAYMENT_REQUIRED "Payment Required" "RFC 9110 section 15.5.3";
    403 FORBIDDEN "Forbidden" "RFC 9110 section 15.5.4";
    404 NOT_FOUND "Not Found" "RFC 9110 section 15.5.5";
    405 METHOD_NOT_ALLOWED "Method Not Allowed" "RFC 9110 section 15.5.6";
    406 NOT_ACCEPTABLE "Not Acceptable" "RFC 9110 section 15.5.7";
    407 PROXY_AUTHENTICATION "Proxy Authentication Required" "RFC 9110 section 15.5.8";
    408 REQUEST_TIMEOUT "Request Timeout" "RFC 9110 section 15.5.9";
    409 CONFLICT "Conflict" "RFC 9110 section 15.5.10";
    410 GONE "Gone" "RFC 9110 section 15.5.11";
    411 LENGTH_REQUIRED "Length Required" "RFC 9110 section 15.5.12";
    412 PRECONDITION_FAILED "Precondition Failed" "RFC 9110 section 15.5.13";
    413 CONTENT_TOO_LARGE "Content Too Large" "RFC 9110 section 15.5.14";
    414 URI_TOO_LONG "URI Too Long" "RFC 9110 section 15.5.15";
    415 UNSUPPORTED_MEDIA_TYPE "Unsupported Media Type" "RFC 9110 section 15.5.16";
    416 RANGE_NOT_SATISFIABLE "Range Not Satisfiable" "RFC 9110 section 15.5.17";
    417 EXPECTATION_FAILED "Expectation Failed" "RFC 9110 section 15.5.18";
    421 MISDIRECTED_REQUEST "Misdirected Request" "RFC 9110 section 15.5.20";
    422 UNPROCESSABLE_CONTENT "Unprocessable Content" "RFC 9110 section 15.5.21";
    423 LOCKED "Locked" "RFC 4918 section 11.3";
    424 FAILED_DEPENDENCY "Failed Dependency" "RFC 4918 section 11.4";
    425 TOO_EARLY "Too Early" "RFC 8470 section 5.2";
    426 UPGRADE_REQUIRED "Upgrade Required" "RFC 9110 section 15.5.22";
    428 PRECONDITION_REQUIRED "Precondition Required" "RFC 6585 section 3";
    429 TOO_MANY_REQUESTS "Too Many Requests" "RFC 6585 section 4";
    431 FIELDS_TOO_LARGE "Request Header Fields Too Large" "RFC 6585 section 5";
    451 LEGAL_REASONS "Unavailable For Legal Reasons" "RFC 7725 section 3";
    500 INTERNAL_SERVER_ERROR "Internal Server Error" "RFC 9110 section 15.6.1";
    501 NOT_IMPLEMENTED "Not Implemented" "RFC 9110 section 15.6.2";
    502 BAD_GATEWAY "Bad Gateway" "RFC 9110 section 15.6.3";
    503 SERVICE_UNAVAILABLE "Service Unavailable" "RFC 9110 section 15.6.4";
    504 GATEWAY_TIMEOUT "Gateway Timeout" "RFC 9110 section 15.6.5";
    505 VERSION_NOT_SUPPORTED "HTTP Version Not Supported" "RFC 9110 section 15.6.6";
    506 VARIANT_NEGOTIATES "Variant Also Negotiates" "RFC 2295 section 8.1";
    507 INSUFFICIENT_STORAGE "Insufficient Storage" "RFC 4918 section 11.5";
    508 LOOP_DETECTED "Loop Detected" "RFC 5842 section 7.2";
    510 NOT_EXTENDED "Not Extended" "RFC 2774 section 7";
    511 NETWORK_AUTHENTICATION "Network Authentication Required" "RFC 6585 section 6";
}

impl Status {
    /// The status with this code; `None`: it is none of 100 to 599.
    pub const fn new(code: u16) -> Option<Status> {
        match code {
            100..=599 => Some(Status(code)),
            _ => None,
        }
    }

    /// Reads three digits, and nothing else.
    pub fn parse(text: &str) -> Option<Status> {
        let is_code = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| is_code).and_then(Status::new)
    }

    /// The three-digit code.
    #[inline]
    pub const fn code(self) -> u16 {
        self.0
    }

    /// True for the answers that end with their head: 1xx, 204 and 304 (RFC 9110 section 6.4.1).
    pub const fn is_bodiless(self) -> bool {
        self.0 < 200 || self.0 == 204 || self.0 == 304
    }

    /// False for the answers that have no content: those that end with their head, and 205, whose content has the length
    /// zero (RFC 9110 section 15.3.6).
    pub const fn has_content(self) -> bool {
        !self.is_bodiless() && self.0 != 205
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason() {
            "" => write!(f, "{}", self.0),
            reason => write!(f, "{} {reason}", self.0),
        }
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

    #[test]
    fn every_code_of_three_digits_is_a_status_and_keeps_its_code() {
        for code in 100..600 {
            let status = Status::new(code).expect("a status");
            assert_eq!(status.code(), code);
            assert_eq!(Status::parse(&code.to_string()), Some(status));
            let is_registered = Status::ALL.contains(&status);
            assert_eq!(status.reason().is_empty(), !is_registered, "{status}");
            let without = matches!(code, 100..200 | 204 | 205 | 304);
            assert_eq!(status.has_content(), !without, "{status}");
        }
        assert!(Status::new(99).is_none() && Status::new(600).is_none());
        for text in ["", "20", "+20", "+200", "0200", "600", " 200", "2x0"] {
            assert_eq!(Status::parse(text), None, "{text:?}");
        }
        assert_eq!(Status::new(299).expect("a status").to_string(), "299");
    }
}
