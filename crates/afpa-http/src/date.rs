//! HTTP dates (RFC 9110 section 5.6.7).

use std::fmt::{self, Write as _};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The last second that has a four-digit year: 9999-12-31 23:59:59.
const LAST_SECOND: u64 = 253_402_300_799;

/// An `IMF-fixdate`, the only form that is ever sent: `Sun, 06 Nov 1994 08:49:37 GMT`.
///
/// A worker formats it once a second and hands it to every
/// [`ResponseHead::write`](crate::ResponseHead::write).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct HttpDate([u8; HttpDate::LEN]);

impl HttpDate {
    /// Length of the fixed form in bytes.
    pub const LEN: usize = 29;

    /// Formats a time in whole seconds since the Unix epoch.
    ///
    /// Times behind the year 9999 become its last second: the form has no fifth digit.
    pub fn new(unix_seconds: u64) -> HttpDate {
        let time = UNIX_EPOCH + Duration::from_secs(unix_seconds.min(LAST_SECOND));
        let mut text = Fixed { bytes: [b' '; HttpDate::LEN], used: 0 };
        let written = write!(text, "{}", httpdate::HttpDate::from(time));
        debug_assert!(written.is_ok() && text.used == HttpDate::LEN);
        HttpDate(text.bytes)
    }

    /// The 29 bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8; HttpDate::LEN] {
        &self.0
    }

    /// The 29 bytes as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for HttpDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for HttpDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Reads any of the three forms a recipient must accept: IMF-fixdate, RFC 850 and asctime.
///
/// Returns whole seconds since the Unix epoch, or `None` for anything else. Two limits of the
/// representation: times before 1970 and leap seconds (`:60`) are not dates here, so a
/// condition that names one is ignored. A two-digit year below 70 means this century.
pub fn parse(value: &[u8]) -> Option<u64> {
    // The underlying parser trims any white space of Unicode; the grammar knows none inside.
    if !value.first()?.is_ascii_alphabetic() || !value.last()?.is_ascii_alphanumeric() {
        return None;
    }
    let date: httpdate::HttpDate = std::str::from_utf8(value).ok()?.parse().ok()?;
    let since_epoch = SystemTime::from(date).duration_since(UNIX_EPOCH).ok()?;
    Some(since_epoch.as_secs())
}

/// A writer into a date's bytes that cannot overrun them.
struct Fixed {
    bytes: [u8; HttpDate::LEN],
    used: usize,
}

impl fmt::Write for Fixed {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.used.checked_add(text.len()).ok_or(fmt::Error)?;
        self.bytes.get_mut(self.used..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.used = end;
        Ok(())
    }
}

/// Year, month and day of a day counted from 1970-01-01 (Howard Hinnant, `civil_from_days`, without
/// the half that is for days before).
pub fn civil(days: u64) -> (u64, u64, u64) {
    // Years that begin on 1 March have their leap day at the end.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_three_forms_of_the_rfc_name_one_second() {
        for form in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(parse(form.as_bytes()), Some(784_111_777), "{form}");
        }
        assert_eq!(HttpDate::new(784_111_777).as_str(), "Sun, 06 Nov 1994 08:49:37 GMT");
    }

    #[test]
    fn what_is_not_a_date_is_none() {
        for bad in [
            &b""[..],
            b"0",
            b"yesterday",
            b"Mon, 06 Nov 1994 08:49:37 GMT",
            b"Sun, 06 Nov 1994 08:49:37 UTC",
            b"Sun, 06 Nov 1994 24:49:37 GMT",
            b"Sun, 06 Nov 1994 08:49:60 GMT",
            b"Sun, 31 Feb 1994 08:49:37 GMT",
            b" Sun, 06 Nov 1994 08:49:37 GMT",
            b"Sun, 06 Nov 1994 08:49:37 GMT ",
            b"Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
            b"Wed, 31 Dec 1969 23:59:59 GMT",
            b"\xffun, 06 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(parse(bad), None, "{:?}", String::from_utf8_lossy(bad));
        }
    }

    #[test]
    fn the_ends_of_the_range_are_formatted() {
        assert_eq!(HttpDate::new(0).as_str(), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(HttpDate::new(u64::MAX).as_str(), "Fri, 31 Dec 9999 23:59:59 GMT");
    }

    proptest! {
        #[test]
        fn formatting_then_parsing_is_the_identity(seconds in 0..=LAST_SECOND) {
            prop_assert_eq!(parse(HttpDate::new(seconds).as_bytes()), Some(seconds));
        }

        #[test]
        fn parsing_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..48)) {
            let _ = parse(&bytes);
        }
    }

    #[test]
    fn days_become_dates() {
        for (days, date) in [
            (0, (1970, 1, 1)),
            (58, (1970, 2, 28)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (19_722, (2023, 12, 31)),
            (19_723, (2024, 1, 1)),
            (47_540, (2100, 2, 28)),
            (47_541, (2100, 3, 1)),
        ] {
            assert_eq!(civil(days), date, "{days}");
        }
    }
}
