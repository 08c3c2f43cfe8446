//! Common log format: `host ident user [date] "GET /path HTTP/1.0" status bytes`.

use std::fmt;
use std::io::BufRead;

use anyhow::{Result, ensure};

/// One request of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The client, as the log names it.
    pub client: String,
    /// Seconds since 1970, UTC.
    pub time: i64,
    /// Request target, without its query.
    pub path: String,
    /// Status of the response.
    pub status: u16,
    /// Bytes of content; 0 for a dash.
    pub bytes: u64,
}

/// Limits on the cost of a log.
#[derive(Debug, Clone)]
pub struct LogLimits {
    /// Entries that are used; the rest of the log is left.
    pub entries: usize,
    /// Bytes of a line; longer ones are passed over.
    pub line: usize,
    /// Different files.
    pub files: usize,
    /// Bytes of one file; larger ones are passed over.
    pub file: u64,
    /// Bytes of all files.
    pub working_set: u64,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self {
            entries: 1_000_000,
            line: 16_384,
            files: 50_000,
            file: 64 << 20,
            working_set: 2 << 30,
        }
    }
}

/// Reads a log. Lines that are no GET with status 200, 304 or 404 are passed over; their number is
/// the second of the two.
///
/// # Errors
///
/// When the log cannot be read, or has no entry that can be used.
pub fn read_log(mut log: impl BufRead, limits: &LogLimits) -> Result<(Vec<Entry>, usize)> {
    let (mut entries, mut passed_over, mut line) = (Vec::new(), 0, Vec::new());
    while entries.len() < limits.entries && read_line(&mut log, &mut line, limits.line)? {
        let entry = std::str::from_utf8(&line).ok().and_then(parse);
        match entry.filter(|entry| entry.bytes <= limits.file) {
            Some(entry) => entries.push(entry),
            None => passed_over += 1,
        }
    }
    ensure!(!entries.is_empty(), "the log has no entry in common log format that can be replayed");
    // Servers write when a response has ended; the order of two of them may be wrong.
    entries.sort_by_key(|entry| entry.time);
    Ok((entries, passed_over))
}

/// As people read it; and as it is read back.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { client, path, status, bytes, .. } = self;
        let date = date(self.time);
        let bytes = if *status == 304 { "-".to_owned() } else { bytes.to_string() };
        write!(f, "{client} - - [{date}] \"GET {path} HTTP/1.0\" {status} {bytes}")
    }
}

/// Reads the next line without its end; keeps no more of it than `limit` and one byte. False at the
/// end of the log.
fn read_line(log: &mut impl BufRead, line: &mut Vec<u8>, limit: usize) -> Result<bool> {
    line.clear();
    let mut any = false;
    loop {
        let buffer = log.fill_buf()?;
        if buffer.is_empty() {
            break;
        }
        any = true;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let part = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or(buffer);
        let room = (limit + 1).saturating_sub(line.len());
        line.extend_from_slice(part.get(..room).unwrap_or(part));
        let used = end.map_or(buffer.len(), |end| end + 1);
        log.consume(used);
        if end.is_some() {
            break;
        }
    }
    if line.len() > limit {
        line.clear();
    }
    Ok(any)
}

fn parse(line: &str) -> Option<Entry> {
    let client = line.split(' ').next().filter(|client| !client.is_empty())?;
    let (_, rest) = line.split_once('[')?;
    let (date, rest) = rest.split_once(']')?;
    let (request, rest) = rest.trim_start().strip_prefix('"')?.split_once("\" ")?;
    let mut words = request.split(' ');
    let target = words.next().filter(|method| *method == "GET").and_then(|_| words.next())?;
    let path = target.split(['?', '#']).next().filter(|path| path.starts_with('/'))?;
    // The combined format has more fields behind these two.
    let mut fields = rest.split(' ');
    let status = fields.next()?.parse().ok().filter(|status| matches!(status, 200 | 304 | 404))?;
    let bytes = match fields.next()?.trim_end() {
        "-" => 0,
        number => number.parse().ok()?,
    };
    Some(Entry { client: client.into(), time: time(date)?, path: path.into(), status, bytes })
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// `10/Oct/2000:13:55:36 -0700` as seconds since 1970.
fn time(date: &str) -> Option<i64> {
    let (date, zone) = date.split_once(' ').unwrap_or((date, "+0000"));
    let mut parts = date.split(['/', ':']);
    let mut number = |least: i64, most: i64| -> Option<i64> {
        parts.next()?.parse().ok().filter(|number| (least..=most).contains(number))
    };
    let day = number(1, 31)?;
    let month = date.split('/').nth(1)?;
    let month = MONTHS.iter().position(|name| *name == month)? as i64;
    let _ = number(0, 0); // the month's name
    let (year, hour) = (number(1970, 9999)?, number(0, 23)?);
    let (minute, second) = (number(0, 59)?, number(0, 60)?);
    let (hours, minutes) = zone.get(1..)?.split_at_checked(2)?;
    let offset = hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?;
    let offset = if zone.starts_with('-') { -offset } else { offset };
    let days = days_before(year, month) + day - 1;
    Some(((days * 24 + hour) * 60 + minute - offset) * 60 + second)
}

fn date(time: i64) -> String {
    let (days, seconds) = (time.div_euclid(86_400), time.rem_euclid(86_400));
    let mut year = 1970 + days.div_euclid(366);
    while days_before(year + 1, 0) <= days {
        year += 1;
    }
    let month = (0..12).rev().find(|month| days_before(year, *month) <= days).unwrap_or(0);
    format!(
        "{:02}/{}/{year}:{:02}:{:02}:{:02} +0000",
        days - days_before(year, month) + 1,
        MONTHS[month as usize % 12],
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// Days from 1970 to the first of a month (0 is January), by the Gregorian rule.
fn days_before(year: i64, month: i64) -> i64 {
    let leaps = |year: i64| year / 4 - year / 100 + year / 400;
    let is_leap = leaps(year) > leaps(year - 1);
    let lengths = [31, if is_leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let in_year: i64 = lengths.iter().take(month as usize).sum();
    (year - 1970) * 365 + leaps(year - 1) - leaps(1969) + in_year
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn no_log_breaks_it(
            line in "[a-z0-9 ]{0,5}\\[[0-9/:A-Za-zé +-]{0,30}\\] \"GET [/ -~é]{0,20}\" [0-9a-]{0,5} ?[0-9a-]{0,22}",
        ) {
            let _ = read(&line);
            let _ = read(&format!("h - - {line}"));
        }

        #[test]
        fn dates_are_read_back(time in 0_i64..200_000_000_000) {
            proptest::prop_assert_eq!(super::time(&date(time)), Some(time));
        }
    }

    const LINE: &str =
        r#"199.72.81.55 - frank [10/Oct/2000:13:55:36 -0700] "GET /a/b.gif?x=1 HTTP/1.0" 200 2326"#;

    fn read(log: &str) -> Result<(Vec<Entry>, usize)> {
        read_log(log.as_bytes(), &LogLimits::default())
    }

    #[test]
    fn lines_are_read_in_both_formats() {
        let expected = Entry {
            client: "199.72.81.55".into(),
            time: 971_211_336,
            path: "/a/b.gif".into(),
            status: 200,
            bytes: 2326,
        };
        let combined = format!("{LINE} \"http://x/\" \"Mozilla/4.08 [en]\"\r\n");
        for log in [LINE, &combined, &format!("{LINE}\n\n")] {
            assert_eq!(read(log).unwrap().0, std::slice::from_ref(&expected), "{log}");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for time in [0, 951_782_399, 951_782_400, 978_307_199, 978_307_200, 4_107_542_399] {
            let entry =
                Entry { client: "h".into(), time, path: "/x".into(), status: 404, bytes: 7 };
            assert_eq!(read(&entry.to_string()).unwrap().0, [entry]);
        }
    }

    #[test]
    fn what_cannot_be_replayed_is_passed_over_and_nothing_breaks_it() {
        let wrong = [
            "",
            "x",
            r#"h - - [] "GET / HTTP/1.0" 200 1"#,
            r#"h - - [10/Okt/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 1"#,
            r#"h - - [10/Oct/2000:13:55:36 -0é00] "GET / HTTP/1.0" 200 1"#,
            r#"h - - [10/Oct/2000:13:55:36 +0000] "POST / HTTP/1.0" 200 1"#,
            r#"h - - [10/Oct/2000:13:55:36 +0000] "GET / HTTP/1.0" 500 1"#,
            r#"h - - [10/Oct/2000:13:55:36 +0000] "GET / HTTP/1.0" 200 99999999999999999999"#,
            r#"h - - [10/Oct/2000:13:55:36 +0000] "GET / HTTP/1.0" 200 999999999"#,
            r#"h - - [10/Oct/2000:13:55:36 +0000] "GET http://x/ HTTP/1.0" 200 1"#,
        ];
        let long = format!("h{} - - [10/Oct", "h".repeat(20_000));
        let log = format!("{}\n{long}\n{LINE}\n", wrong.join("\n"));
        let (entries, passed_over) = read(&log).unwrap();
        assert_eq!((entries.len(), passed_over), (1, wrong.len() + 1));
        assert!(read("nothing").is_err());
    }

    #[test]
    fn entries_are_sorted_and_limited() {
        let line = |second| LINE.replace(":36 ", &format!(":{second:02} "));
        let log = [line(9), line(3), line(5)].join("\n");
        let limits = LogLimits { entries: 2, ..LogLimits::default() };
        let (entries, _) = read_log(log.as_bytes(), &limits).unwrap();
        assert_eq!(entries.len(), 2);
        assert!(entries[0].time < entries[1].time);
    }
}
