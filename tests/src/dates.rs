//! HTTP dates for requests and expectations.

use std::time::{Duration, UNIX_EPOCH};

/// `unix_seconds` as an IMF-fixdate (RFC 9110, 5.6.7).
pub fn http_date(unix_seconds: u64) -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(unix_seconds))
}

/// The seconds since 1970 an HTTP date names, in any of its three forms; `None` when it is none.
pub fn parse(date: &str) -> Option<u64> {
    let time = httpdate::parse_http_date(date).ok()?;
    time.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}
