//! Requests of an access log: how many of them the kernel could answer. A log has no request fields, so the shares are the
//! most that it can be.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use afpa_bpf::Reason;
use afpa_bpf::explain::Assumed;
use anyhow::{Context as _, bail};

use super::{because, verdict};

/// Bytes of a line that are read; the rest is skipped.
const LINE: u64 = 16 << 10;

/// The shares of a log's requests.
pub(super) fn explain(file: &Path, assumed: &Assumed<'_>) -> anyhow::Result<String> {
    let cannot = || format!("cannot read {}", file.display());
    let input: Box<dyn std::io::Read> = match file == Path::new("-") {
        true => Box::new(std::io::stdin()),
        false => Box::new(File::open(file).with_context(cannot)?),
    };
    let (mut input, mut line, mut shares) = (BufReader::new(input), Vec::new(), Shares::default());
    loop {
        line.clear();
        if (&mut input).take(LINE).read_until(b'\n', &mut line).with_context(cannot)? == 0 {
            break;
        }
        let whole = line.ends_with(b"\n");
        shares.note(&line, assumed);
        if !whole && line.len() as u64 == LINE {
            input.skip_until(b'\n').with_context(cannot)?;
        }
    }
    match shares.all {
        0 => bail!("{} has no line of an access log (combined, or JSON)", file.display()),
        _ => Ok(shares.text()),
    }
}

#[derive(Default)]
struct Shares {
    all: u64,
    kernel: u64,
    /// By what the server answers for, and one target of each.
    server: HashMap<String, (u64, String)>,
    /// Lines that are none of a log.
    unread: u64,
    /// Verdicts by request line, so that a popular one is judged once.
    known: HashMap<String, Reason>,
}

/// Verdicts that are remembered.
const KNOWN: usize = 4096;

impl Shares {
    fn note(&mut self, line: &[u8], assumed: &Assumed<'_>) {
        let text = String::from_utf8_lossy(line);
        let text = text.trim();
        let found = if text.starts_with('{') { json(text) } else { combined(text) };
        let Some((request, status)) = found else {
            self.unread += u64::from(!text.is_empty());
            return;
        };
        self.all += 1;
        let why = match (status, self.reason(&request, assumed)) {
            (200 | 304, Reason::Answered) => {
                self.kernel += 1;
                return;
            }
            (200 | 304, reason) => because(reason),
            (_, reason) if reason != Reason::Answered => because(reason),
            (status, _) => format!("its answer was {status}, and only 200 is pinned"),
        };
        let target = request.split(' ').nth(1).unwrap_or_default();
        let entry = self.server.entry(why).or_insert_with(|| (0, super::shown(target.as_bytes())));
        entry.0 += 1;
    }

    fn reason(&mut self, request: &str, assumed: &Assumed<'_>) -> Reason {
        if let Some(known) = self.known.get(request) {
            return *known;
        }
        let head = format!("{request}\r\nHost: log\r\n\r\n");
        let reason =
            verdict(head.as_bytes(), assumed).map_or(Reason::PassRequestLine, |found| found.reason);
        if self.known.len() < KNOWN {
            self.known.insert(request.to_owned(), reason);
        }
        reason
    }

    fn text(&self) -> String {
        let share = |count: u64| 100.0 * count as f64 / self.all.max(1) as f64;
        let mut text = format!(
            "{} requests; the kernel could answer {} of them at most ({:.1} %), as far as their files are pinned and their \
             fields allow it\n",
            self.all,
            self.kernel,
            share(self.kernel)
        );
        let mut rows: Vec<_> = self.server.iter().collect();
        rows.sort_by_key(|(why, (count, _))| (std::cmp::Reverse(*count), why.as_str()));
        for (why, (count, example)) in rows {
            text.push_str(&format!(
                "  {count} ({:.1} %) are the server's: {why}, such as {example}\n",
                share(*count)
            ));
        }
        if self.unread > 0 {
            text.push_str(&format!("  {} lines are none of an access log\n", self.unread));
        }
        text
    }
}

/// The first quoted part is the request, the next word the status: nginx's and Apache's `combined` and `common`.
fn combined(line: &str) -> Option<(String, u16)> {
    let (_, rest) = line.split_once('"')?;
    let end = rest
        .match_indices('"')
        .find(|(at, _)| !rest.get(..*at).is_some_and(|t| t.ends_with('\\')))?
        .0;
    let request = rest.get(..end)?;
    let status = rest.get(end + 1..)?.split_whitespace().next()?.parse().ok()?;
    (request.split(' ').count() == 3).then(|| (request.to_owned(), status))
}

/// Our own log in JSON, and others with these names.
fn json(line: &str) -> Option<(String, u16)> {
    let value: serde_json::Value = serde_json::from_str(line).ok()?;
    let word = |names: &[&str]| names.iter().find_map(|name| value.get(*name)?.as_str());
    let status = value.get("status")?.as_u64()?.try_into().ok()?;
    let target = word(&["target", "uri", "request_uri"])?;
    let method = word(&["method", "request_method"]).unwrap_or("GET");
    let version = word(&["version", "protocol", "proto", "server_protocol"]).unwrap_or("HTTP/1.1");
    Some((format!("{method} {target} {version}"), status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_of_every_form_are_read() {
        let assumed = Assumed { codings: &[], fields: None, may_close: false };
        let lines = [
            r#"10.0.0.1 - - [28/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200 5 "-" "curl/7.88.1""#,
            r#"10.0.0.1 - - [28/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" 304 0"#,
            r#"10.0.0.1 - - [28/Nov/2026:10:00:00 +0000] "GET /a?b=\"c HTTP/1.1" 200 5 "-" "x""#,
            r#"10.0.0.1 - - [28/Nov/2026:10:00:00 +0000] "POST /a HTTP/1.1" 200 5 "-" "x""#,
            r#"10.0.0.1 - - [28/Nov/2026:10:00:00 +0000] "GET /gone HTTP/1.1" 404 5 "-" "x""#,
            r#"10.0.0.1 - - [28/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.0" 200 5 "-" "ab""#,
            r#"{"method":"GET","target":"/a","version":"HTTP/1.1","status":200}"#,
            "nothing",
            "",
        ];
        let mut shares = Shares::default();
        lines.iter().for_each(|line| shares.note(line.as_bytes(), &assumed));
        assert_eq!((shares.all, shares.kernel, shares.unread), (7, 3, 1), "{}", shares.text());
        let text = shares.text();
        let first = "7 requests; the kernel could answer 3 of them at most (42.9 %)";
        assert!(text.starts_with(first), "{text}");
        for part in ["such as /a?b", "[19]", "its answer was 404", "1 lines are none"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
