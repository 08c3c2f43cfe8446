//! Times as `strftime` writes them, in UTC and English.

use ::time::OffsetDateTime;
use ::time::format_description::parse_strftime_borrowed;

/// The format that Apache uses unless a page says otherwise.
pub(crate) const DEFAULT: &[u8] = b"%A, %d-%b-%Y %H:%M:%S %Z";

/// Most bytes of a formatted time.
const MOST: usize = 1024;

/// The end of the year 9999. Years with more than four digits are of no use to anybody.
const LAST: u64 = 253_402_300_799;

/// Formats `unix`, seconds since 1970, as `format` says; unknown conversions stay as they are. `zone`: `GMT` or
/// `UTC`.
pub(crate) fn format(unix: u64, format: &[u8], zone: &str) -> Vec<u8> {
    let time = OffsetDateTime::from_unix_timestamp(unix.min(LAST) as i64);
    let time = time.unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let mut text = Vec::new();
    let mut rest = format;
    while let [byte, after @ ..] = rest
        && text.len() <= MOST
    {
        let converted = match rest {
            [b'%', b'Z', ..] => Some(zone.to_owned()),
            // The library counts from 1.
            [b'%', b'w', ..] => Some(time.weekday().number_days_from_sunday().to_string()),
            [b'%', conversion, ..] => converted(time, *conversion),
            _ => None,
        };
        rest = match (converted, after) {
            (Some(converted), [_, after @ ..]) => {
                text.extend_from_slice(converted.as_bytes());
                after
            }
            _ => {
                text.push(*byte);
                after
            }
        };
    }
    text.truncate(MOST);
    text
}

fn converted(time: OffsetDateTime, conversion: u8) -> Option<String> {
    let pair = [b'%', conversion];
    let items = parse_strftime_borrowed(str::from_utf8(&pair).ok()?).ok()?;
    time.format(&items).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formatted(unix: u64, form: &str) -> String {
        String::from_utf8(format(unix, form.as_bytes(), "UTC")).unwrap()
    }

    #[test]
    fn the_default_form_is_apaches() {
        let form = std::str::from_utf8(DEFAULT).unwrap();
        assert_eq!(formatted(784_111_777, form), "Sunday, 06-Nov-1994 08:49:37 UTC");
        assert_eq!(formatted(0, form), "Thursday, 01-Jan-1970 00:00:00 UTC");
    }

    #[test]
    fn every_day_agrees_with_the_dates_of_http() {
        for day in (0..40_000).map(|day| day * 86_400 + 3_723) {
            let date = afpa_http::HttpDate::new(day);
            assert_eq!(formatted(day, "%a, %d %b %Y %H:%M:%S GMT"), date.as_str());
        }
    }

    #[test]
    fn days_of_the_year_are_counted_in_leap_years_too() {
        for (date, day) in [
            (951_782_400, "060 2000-02-29"),
            (978_220_800, "366 2000-12-31"),
            (1_704_067_200, "001 2024-01-01"),
            (1_740_787_200, "060 2025-03-01"),
            (4_107_542_400, "060 2100-03-01"),
        ] {
            assert_eq!(formatted(date, "%j %F"), day);
        }
    }

    #[test]
    fn conversions_are_those_of_strftime() {
        let time = 784_111_777;
        assert_eq!(formatted(time, "%I:%M %p|%l|%e|%y|%C|%u%w"), "08:49 AM| 8| 6|94|19|70");
        assert_eq!(
            formatted(time, "%c|%D|%R|%T|%r"),
            "Sun Nov  6 08:49:37 1994|11/06/94|08:49|08:49:37|08:49:37 AM"
        );
        assert_eq!(formatted(time, "%s %z %Z 100%% %Q %"), "784111777 +0000 UTC 100% %Q %");
        assert_eq!(formatted(43_200, "%I %p"), "12 PM");
        assert_eq!(formatted(u64::MAX, "%Y"), "9999");
        assert!(formatted(0, &"%A".repeat(10_000)).len() <= MOST);
    }
}
