//! `afpa top`: the work of the running process, drawn again and again.
//!
//! A [`Screen`] knows nothing of terminals; [`top`] asks, waits and draws.

use std::io::IsTerminal as _;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use terminal_size::{Height, Width, terminal_size};

use super::stats::digest::Digest;
use super::stats::table;
use crate::cli;
use crate::control::{self, Socket};

/// `afpa top`.
///
/// # Errors
/// When there is no process to ask, or it does not answer any more.
pub fn top(options: &cli::Top) -> anyhow::Result<()> {
    let target = super::target(&options.target);
    let mut socket = control::find(&target)?;
    let (mut before, mut begun) = (super::numbers(&socket.get("/stats")?)?, Instant::now());
    let is_terminal = std::io::stdout().is_terminal();
    let every = Duration::from_secs_f64(options.every);
    let mut left = options.screens;
    while left != Some(0) {
        sleep(every);
        let now = match statistics(&socket) {
            Ok(now) => now,
            // The next process may have taken its place; its counters begin anew.
            Err(_) => {
                socket = control::find(&target)?;
                statistics(&socket)?
            }
        };
        let between = begun.elapsed();
        begun = Instant::now();
        let screen =
            Screen { digest: Digest { before: &before, now: &now.0, between }, saved: &now.1 };
        let text = screen.text();
        super::print(&match is_terminal {
            true => format!("{HOME}{}", cut(&text, terminal_size())),
            false => text + "\n",
        })?;
        before = now.0;
        left = left.map(|left| left - 1);
    }
    Ok(())
}

/// The cursor goes to the first line, and the screen becomes empty (ECMA-48, CUP and ED).
const HOME: &str = "\x1b[H\x1b[2J";

/// Rows of each table.
const ROWS: usize = 10;

fn statistics(socket: &Socket) -> anyhow::Result<(Value, Value)> {
    let all = super::numbers(&socket.get("/stats")?)?;
    // Other processes than `afpa serve` keep no answers of servers.
    let saved = socket.get(&format!("/top?most={ROWS}"));
    let saved = saved.ok().and_then(|saved| serde_json::from_str(&saved).ok());
    Ok((all, saved.unwrap_or_default()))
}

/// The part of a text that fits a terminal; the cursor rests in the last line.
fn cut(text: &str, size: Option<(Width, Height)>) -> String {
    let Some((Width(width), Height(height))) = size else { return text.to_owned() };
    let lines = text.lines().take(usize::from(height).saturating_sub(1));
    let lines = lines.map(|line| line.chars().take(usize::from(width)).collect::<String>());
    lines.fold(String::new(), |text, line| text + &line + "\n")
}

/// One screen, of the statistics at two moments.
struct Screen<'v> {
    digest: Digest<'v>,
    /// The kept answers of servers that have saved most time.
    saved: &'v Value,
}

impl Screen<'_> {
    fn text(&self) -> String {
        let digest = self.digest.text();
        if digest.is_empty() {
            let rates = self.dns().map(|rates| table(&rates) + "\n").unwrap_or_default();
            return rates + &table(self.digest.now);
        }
        let tables = json!({
            // A small terminal has room for the first ones.
            "sites": self.sites(),
            "servers": self.servers(),
            "answers": self.contexts(),
            "workers": self.workers(),
            "files_by_use": self.files(),
            "kept_answers_by_time_saved": self.saved["answers_of_servers"],
        });
        format!("{digest}\n{}", table(&tables))
    }

    /// Rates of an attachment to a name server.
    fn dns(&self) -> Option<Value> {
        let types = self.digest.now["types"].as_object()?;
        let rate = |path: &[&str]| self.digest.rate(self.digest.grown(path));
        let types = types.keys().map(|kind| (kind.clone(), json!(rate(&["types", kind]))));
        Some(json!({
            "answers_of_the_kernel_per_second": rate(&["answered"]),
            "nxdomain_per_second": rate(&["nxdomain"]),
            "types_per_second": types.collect::<serde_json::Map<_, _>>(),
        }))
    }

    /// Where answers came from since the last screen.
    fn contexts(&self) -> Value {
        let grown = |path: &[&str]| self.digest.grown(path);
        let kernel = grown(&["fast_path", "answers"]);
        let kept = grown(&["shared_cache", "hits"]) - grown(&["shared_cache", "hits_in_kernel"]);
        let files = grown(&["requests", "hits"]);
        let memory = (files - kernel).max(0) + kept.max(0);
        let all = grown(&["requests", "responses"]).max(1);
        let share = |count: i64| json!(format!("{:.1} %", 100.0 * count as f64 / all as f64));
        let rows = [
            ("kernel", kernel),
            ("memory, in user mode", memory),
            ("files", grown(&["requests", "misses"])),
            ("servers", grown(&["requests", "remote"])),
        ];
        let rows = rows.into_iter().map(|(from, count)| {
            json!({ "from": from, "per_second": self.digest.rate(count), "share": share(count) })
        });
        rows.collect()
    }

    fn workers(&self) -> Value {
        let rows = self.pairs("workers", &["worker"]).map(|(before, now)| {
            let [responses, hits, accepted] =
                ["responses", "hits", "accepted"].map(|key| grown(before, now, key));
            let share = 100.0 * hits as f64 / responses.max(1) as f64;
            json!({
                "worker": now["worker"],
                "open": now["open"],
                "new_per_second": self.digest.rate(accepted),
                "responses_per_second": self.digest.rate(responses),
                "hits": format!("{share:.1} %"),
            })
        });
        rows.collect()
    }

    fn servers(&self) -> Value {
        let rows = self.pairs("servers", &["group", "server"]).take(ROWS).map(|(before, now)| {
            let rate = |key| self.digest.rate(grown(before, now, key));
            json!({
                "group": now["group"],
                "server": now["server"],
                "state": now["state"],
                "in_flight": now["in_flight"],
                "requests_per_second": rate("requests"),
                "5xx_per_second": rate("5xx"),
                "errors_per_second": rate("errors"),
                "first_byte_50_us": now["first_byte_50_us"],
                "first_byte_99_us": now["first_byte_99_us"],
            })
        });
        rows.collect()
    }

    /// The sites with most requests.
    fn sites(&self) -> Value {
        let mut all: Vec<_> = self.pairs("sites", &["site"]).collect();
        all.sort_by_key(|(before, now)| std::cmp::Reverse(grown(before, now, "requests")));
        let rows = all.into_iter().take(ROWS).map(|(before, now)| {
            let rate = |key| self.digest.rate(grown(before, now, key));
            json!({
                "site": now["site"],
                "requests_per_second": rate("requests"),
                "from_kernel": rate("from_kernel"),
                "4xx_per_second": rate("4xx"),
                "5xx_per_second": rate("5xx"),
                "in_flight": now["in_flight"],
                "duration_50_us": now["duration_50_us"],
                "duration_99_us": now["duration_99_us"],
            })
        });
        rows.collect()
    }

    fn files(&self) -> Value {
        let known = self.digest.now["fast_path"]["most_useful_objects"].as_array();
        let rows = known.into_iter().flatten().take(ROWS).map(|file| {
            json!({
                "hits_in_10_s": file["hits_in_10_s"],
                "bytes": file["bytes"],
                "in_kernel": file["in_kernel"],
                "path": file["path"],
            })
        });
        rows.collect()
    }

    /// The rows of a list, each with the one that had the same name before.
    fn pairs<'s>(
        &'s self,
        list: &'s str,
        names: &'s [&str],
    ) -> impl Iterator<Item = (&'s Value, &'s Value)> {
        let before = self.digest.before[list].as_array().map_or(&[][..], Vec::as_slice);
        let now = self.digest.now[list].as_array().map_or(&[][..], Vec::as_slice);
        now.iter().enumerate().map(move |(place, row)| {
            let is_same = |other: &&Value| names.iter().all(|name| other[*name] == row[*name]);
            // Nearly always it stands at the same place.
            let same = before.get(place).filter(is_same);
            (same.or_else(|| before.iter().find(is_same)).unwrap_or(&Value::Null), row)
        })
    }
}

fn grown(before: &Value, now: &Value, key: &str) -> i64 {
    let number = |row: &Value| row[key].as_i64().unwrap_or_default();
    (number(now) - number(before)).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(round: u64) -> Value {
        json!({
            "version": "0.1.0", "pid": 7, "uptime_seconds": 90,
            "requests": {
                "responses": 100 * round, "hits": 80 * round, "misses": 5 * round,
                "remote": 15 * round, "status": {},
            },
            "fast_path": {
                "state": "in use on eth0", "answers": 60 * round,
                "most_useful_objects": [{ "path": "/a\u{1b}.css", "in_kernel": true, "bytes": 512, "hits_in_10_s": 40 }],
            },
            "servers": [{
                "group": "app", "server": "127.0.0.1:3000", "state": "up", "in_flight": 2, "requests": 15 * round,
                "5xx": round, "errors": 0, "first_byte_50_us": 1500, "first_byte_99_us": 9000,
            }],
            "sites": [
                { "site": "quiet.test", "requests": 7 },
                { "site": "busy.test", "requests": 90 * round, "4xx": 2 * round, "in_flight": 1 },
            ],
            "workers": [{ "worker": 0, "open": 3, "accepted": 4 * round, "responses": 50 * round, "hits": 25 * round }],
        })
    }

    fn screen(before: &Value, now: &Value) -> String {
        let saved = json!({ "answers_of_servers": [
            { "saved_us": 2_000_000, "hits": 30, "bytes": 2048, "url": "http://busy.test/list" },
        ]});
        let digest = Digest { before, now, between: Duration::from_secs(1) };
        Screen { digest, saved: &saved }.text()
    }

    /// Words of the first line that has all of these.
    fn row<'t>(screen: &'t str, of: &str) -> Vec<&'t str> {
        let line = screen.lines().find(|line| line.contains(of));
        line.unwrap_or_default().split_whitespace().collect()
    }

    #[test]
    fn a_screen_has_rates_since_the_last_one_and_shares_by_context() {
        let text = screen(&numbers(1), &numbers(2));
        assert!(text.starts_with("afpa 0.1.0, process 7"), "{text}");
        assert_eq!(
            row(&text, "  kernel     "),
            ["kernel", "60", "hits", "a", "second;", "120", "since", "the", "start"]
        );
        assert!(row(&text, "memory, in user mode").ends_with(&["20", "20.0", "%"]), "{text}");
        assert_eq!(row(&text, "127.0.0.1:3000")[2..7], ["up", "2", "15", "1.0", "0"], "{text}");
        let (busy, quiet) = (text.find("busy.test"), text.find("quiet.test"));
        assert!(busy < quiet, "those with most requests come first: {text}");
        assert_eq!(row(&text, "busy.test")[..4], ["busy.test", "90", "0", "2.0"], "{text}");
        assert!(row(&text, "/a").ends_with(&["512", "B", "yes", "/a\u{fffd}.css"]), "{text}");
        assert!(row(&text, "http://busy.test/list").starts_with(&["2.0", "s", "30"]), "{text}");
    }

    #[test]
    fn counters_that_begin_anew_are_no_rates() {
        let text = screen(&numbers(9), &numbers(1));
        assert!(row(&text, "busy.test")[1..].starts_with(&["0", "0", "0"]), "{text}");
    }

    #[test]
    fn a_terminal_gets_as_much_as_it_has_room_for() {
        assert_eq!(cut("abc\ndef\nghi\n", Some((Width(2), Height(3)))), "ab\nde\n");
        assert_eq!(cut("abc\n", None), "abc\n");
    }

    #[test]
    fn an_attachment_has_its_table() {
        let numbers = json!({ "state": "attached", "answered": 5 });
        assert!(screen(&numbers, &numbers).contains("attached"));
    }
}
