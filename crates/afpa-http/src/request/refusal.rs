//! Why a request head is refused.

use crate::Status;

macro_rules! refusals {
    ($($name:ident $status:ident $key:literal $text:literal;)*) => {
        /// The reason a request head is refused; the connection closes after the answer.
        ///
        /// Each reason has a stable [`key`](Refusal::key) for counters and for the shared corpus.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
        pub enum Refusal {
            $(
                #[doc = concat!($text, ".")]
                #[error($text)]
                $name,
            )*
        }

        impl Refusal {
            /// Every reason, in the order of their numbers.
            pub const ALL: &[Refusal] = &[$(Refusal::$name),*];

            /// The status to answer with.
            pub const fn status(self) -> Status {
                match self {
                    $(Refusal::$name => Status::$status,)*
                }
            }

            /// A short stable name.
            pub const fn key(self) -> &'static str {
                match self {
                    $(Refusal::$name => $key,)*
                }
            }
        }
    };
}

refusals! {
    RequestLine BAD_REQUEST "request-line"
        "request line is not method SP target SP version (RFC 9112 section 3)";
    TargetBytes BAD_REQUEST "target-bytes"
        "request target holds a byte that no URI has (RFC 3986 section 2)";
    TargetForm BAD_REQUEST "target-form"
        "request target is in none of the forms its method allows (RFC 9112 section 3.2)";
    RequestLineTooLong URI_TOO_LONG "request-line-too-long"
        "request line is longer than the limit (RFC 9112 section 3)";
    Version VERSION_NOT_SUPPORTED "version"
        "only HTTP/1.0 and HTTP/1.1 are served (RFC 9110 section 2.5)";
    BareLf BAD_REQUEST "bare-lf"
        "LF without CR (RFC 9112 section 2.2)";
    BareCr BAD_REQUEST "bare-cr"
        "CR without LF (RFC 9112 section 2.2)";
    FieldName BAD_REQUEST "field-name"
        "field name is not a token (RFC 9110 section 5.1)";
    SpaceBeforeColon BAD_REQUEST "space-before-colon"
        "white space between field name and colon (RFC 9112 section 5.1)";
    Folded BAD_REQUEST "folded"
        "line starts with white space: obsolete line folding (RFC 9112 section 5.2)";
    FieldValue BAD_REQUEST "field-value"
        "field value holds a control character (RFC 9110 section 5.5)";
    HeadTooLong FIELDS_TOO_LARGE "head-too-long"
        "head is longer than the limit (RFC 6585 section 5)";
    TooManyFields FIELDS_TOO_LARGE "too-many-fields"
        "more field lines than the limit (RFC 6585 section 5)";
    HostMissing BAD_REQUEST "host-missing"
        "HTTP/1.1 request without Host (RFC 9112 section 3.2)";
    HostRepeated BAD_REQUEST "host-repeated"
        "more than one Host line (RFC 9112 section 3.2)";
    HostInvalid BAD_REQUEST "host-invalid"
        "Host or authority is not a host name or address with an optional port (RFC 9112 section 3.2)";
    ContentLength BAD_REQUEST "content-length"
        "Content-Length is not one plain decimal number (RFC 9112 section 6.3)";
    LengthAndCoding BAD_REQUEST "length-and-coding"
        "Transfer-Encoding together with Content-Length (RFC 9112 section 6.3)";
    CodingInHttp10 BAD_REQUEST "coding-in-http10"
        "Transfer-Encoding in HTTP/1.0 (RFC 9112 section 6.1)";
    CodingMalformed BAD_REQUEST "coding-malformed"
        "Transfer-Encoding does not end with chunked, or says it twice (RFC 9112 section 6.3)";
    CodingUnknown NOT_IMPLEMENTED "coding-unknown"
        "Transfer-Encoding names a coding besides chunked (RFC 9112 section 6.1)";
    Expectation EXPECTATION_FAILED "expectation"
        "Expect asks for something other than 100-continue (RFC 9110 section 10.1.1)";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique_and_statuses_are_errors() {
        let mut keys: Vec<_> = Refusal::ALL.iter().map(|refusal| refusal.key()).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), Refusal::ALL.len());
        for refusal in Refusal::ALL {
            assert!(refusal.status().code() >= 400, "{refusal}");
        }
    }
}
