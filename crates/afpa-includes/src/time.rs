//! Times as `strftime` writes them, in UTC and English.

use afpa_http::date::civil;

const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Days of a year before each month, without a leap day.
const DAYS_BEFORE: [u64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];

/// The format that Apache uses unless a page says otherwise.
pub(crate) const DEFAULT: &[u8] = b"%A, %d-%b-%Y %H:%M:%S %Z";

/// Most bytes of a formatted time.
const MOST: usize = 1024;

/// A day and a time of day (Gregorian).
struct Calendar {
    year: u64,
    /// From 0.
    month: usize,
    /// From 1.
    day: u64,
    /// From 0.
    day_of_year: u64,
    /// Sunday is 0.
    weekday: usize,
    hour: u64,
    minute: u64,
    second: u64,
    unix: u64,
}

/// Formats `unix`, seconds since 1970, as `format` says; unknown conversions stay as they are. `zone`: `GMT` or
/// `UTC`.
pub(crate) fn format(unix: u64, format: &[u8], zone: &str) -> Vec<u8> {
    let calendar = Calendar::of(unix);
    let mut text = Vec::new();
    let mut bytes = format.iter().copied();
    while let Some(byte) = bytes.next() {
        if text.len() > MOST {
            break;
        }
        if byte != b'%' {
            text.push(byte);
            continue;
        }
        match bytes.next() {
            Some(conversion) => calendar.convert(conversion, zone, &mut text),
            None => text.push(byte),
        }
    }
    text.truncate(MOST);
    text
}

impl Calendar {
    fn of(unix: u64) -> Calendar {
        // Years with more than four digits are of no use to anybody.
        let unix = unix.min(253_402_300_799);
        let days = unix / 86_400;
        let (year, number, day) = civil(days);
        let leap =
            year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let month = number as usize - 1;
        let before = DAYS_BEFORE.get(month).copied().unwrap_or_default();
        let day_of_year = before + u64::from(leap && number > 2) + day - 1;
        let second = unix % 86_400;
        Calendar {
            year,
            month,
            day,
            day_of_year,
            weekday: ((days + 4) % 7) as usize,
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
            unix,
        }
    }

    fn convert(&self, conversion: u8, zone: &str, text: &mut Vec<u8>) {
        let weekday = DAYS.get(self.weekday).copied().unwrap_or_default();
        let month = MONTHS.get(self.month).copied().unwrap_or_default();
        let number = self.month + 1;
        let twelve = (self.hour + 11) % 12 + 1;
        let half = if self.hour < 12 { "AM" } else { "PM" };
        let Calendar { year, day, hour, minute, second, .. } = *self;
        let written = match conversion {
            b'a' => weekday[..3].to_owned(),
            b'A' => weekday.to_owned(),
            b'b' | b'h' => month[..3].to_owned(),
            b'B' => month.to_owned(),
            b'c' => format!(
                "{} {} {day:2} {hour:02}:{minute:02}:{second:02} {year}",
                &weekday[..3],
                &month[..3]
            ),
            b'C' => format!("{:02}", year / 100),
            b'd' => format!("{day:02}"),
            b'D' | b'x' => format!("{number:02}/{day:02}/{:02}", year % 100),
            b'e' => format!("{day:2}"),
            b'F' => format!("{year}-{number:02}-{day:02}"),
            b'H' => format!("{hour:02}"),
            b'I' => format!("{twelve:02}"),
            b'j' => format!("{:03}", self.day_of_year + 1),
            b'k' => format!("{hour:2}"),
            b'l' => format!("{twelve:2}"),
            b'm' => format!("{number:02}"),
            b'M' => format!("{minute:02}"),
            b'n' => "\n".to_owned(),
            b'p' => half.to_owned(),
            b'r' => format!("{twelve:02}:{minute:02}:{second:02} {half}"),
            b'R' => format!("{hour:02}:{minute:02}"),
            b's' => self.unix.to_string(),
            b'S' => format!("{second:02}"),
            b't' => "\t".to_owned(),
            b'T' | b'X' => format!("{hour:02}:{minute:02}:{second:02}"),
            b'u' => (if self.weekday == 0 { 7 } else { self.weekday }).to_string(),
            b'w' => self.weekday.to_string(),
            b'y' => format!("{:02}", year % 100),
            b'Y' => year.to_string(),
            b'z' => "+0000".to_owned(),
            b'Z' => zone.to_owned(),
            b'%' => "%".to_owned(),
            other => return text.extend_from_slice(&[b'%', other]),
        };
        text.extend_from_slice(written.as_bytes());
    }
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
