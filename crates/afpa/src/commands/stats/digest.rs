//! The ten lines that matter: answers and where they come from, failures, limits that are reached.

use std::time::Duration;

use serde_json::Value;

use afpa_config::human_size;

use super::{duration, grouped, printable};

/// Statistics at two moments.
pub(in crate::commands) struct Digest<'v> {
    pub(in crate::commands) before: &'v Value,
    pub(in crate::commands) now: &'v Value,
    pub(in crate::commands) between: Duration,
}

impl Digest<'_> {
    /// The lines; empty for other processes than `afpa serve`, because their statistics are short.
    pub(in crate::commands) fn text(&self) -> String {
        if self.now["requests"].is_null() {
            return String::new();
        }
        let version = self.now["version"].as_str().unwrap_or_default();
        let up = duration(self.now["uptime_seconds"].as_f64().unwrap_or_default());
        let mut lines = vec![format!("afpa {version}, process {}, up {up}", self.now["pid"])];
        let rows = [
            ("requests", self.requests()),
            ("kernel", self.hits(&["fast_path", "answers"], "hits")),
            ("memory", self.memory()),
            ("files", self.hits(&["requests", "misses"], "misses")),
            ("servers", self.servers()),
            ("errors", self.errors()),
            ("connections", self.connections()),
            ("cache", self.cache()),
            ("limited", self.limited()),
        ];
        lines.extend(rows.into_iter().map(|(name, fact)| format!("  {name:<11}  {fact}")));
        lines.join("\n") + "\n"
    }

    fn requests(&self) -> String {
        let (hits, all) =
            (self.grown(&["requests", "hits"]), self.grown(&["requests", "responses"]));
        let shared =
            self.grown(&["shared_cache", "hits"]) - self.grown(&["shared_cache", "hits_in_kernel"]);
        let ratio = match all {
            0 => String::new(),
            all => format!(", {:.1} % hits", 100.0 * (hits + shared.max(0)) as f64 / all as f64),
        };
        format!(
            "{} a second{ratio}; {} since the start",
            self.rate(all),
            self.total(&["requests", "responses"])
        )
    }

    fn memory(&self) -> String {
        let in_kernel = self.grown(&["fast_path", "answers"]);
        let files = self.grown(&["requests", "hits"]) - in_kernel;
        let shared =
            self.grown(&["shared_cache", "hits"]) - self.grown(&["shared_cache", "hits_in_kernel"]);
        format!("{} hits a second in user mode", self.rate((files + shared).max(0)))
    }

    fn hits(&self, path: &[&str], what: &str) -> String {
        format!(
            "{} {what} a second; {} since the start",
            self.rate(self.grown(path)),
            self.total(path)
        )
    }

    fn servers(&self) -> String {
        let path = &["requests", "remote"];
        let all = self.rows("servers");
        let up = all.iter().filter(|server| server["state"] == "up").count();
        let state = match all.len() {
            0 => "no servers".to_owned(),
            count => format!("{up} of {count} servers are up"),
        };
        format!("{} requests a second; {state}", self.rate(self.grown(path)))
    }

    fn errors(&self) -> String {
        let of_class = |numbers: &Value, class: char| -> i64 {
            let status = numbers["requests"]["status"].as_object();
            let codes = status.into_iter().flatten().filter(|(code, _)| code.starts_with(class));
            codes.filter_map(|(_, count)| count.as_i64()).sum()
        };
        let rate = |class| self.rate(of_class(self.now, class) - of_class(self.before, class));
        let total = |class| grouped(of_class(self.now, class).unsigned_abs());
        format!(
            "{} a second are 5xx ({} since the start), {} are 4xx ({})",
            rate('5'),
            total('5'),
            rate('4'),
            total('4')
        )
    }

    fn connections(&self) -> String {
        // An assigned one is accepted as well.
        let [begun, assigned] = ["socketless_opened", "socketless_to_kernel"]
            .map(|name| self.grown(&["fast_path", "packets", name]));
        let new = self.rate(self.grown(&["connections", "accepted"]) + begun - assigned);
        let without = match self.number(self.now, &["connections", "without_socket"]) {
            0 => String::new(),
            _ => {
                format!(" and {} without a socket", self.total(&["connections", "without_socket"]))
            }
        };
        format!(
            "{} open{without}, {new} new a second; {} timed out",
            self.total(&["connections", "open"]),
            self.total(&["connections", "timed_out"])
        )
    }

    fn cache(&self) -> String {
        let size = |path: &[&str]| human_size(self.number(self.now, path).unsigned_abs());
        format!(
            "{} of {} for files, {} of {} for answers of servers",
            size(&["cache", "pinned_bytes"]),
            size(&["cache", "pinned_limit_bytes"]),
            size(&["shared_cache", "pinned_bytes"]),
            size(&["shared_cache", "pinned_limit_bytes"])
        )
    }

    /// Limits that are reached, and faults that cost speed.
    fn limited(&self) -> String {
        let mut limits = Vec::new();
        let counted: [(&[&str], &str); 9] = [
            (&["connections", "refused"], "connections were refused"),
            (&["access_log", "dropped"], "lines of the access log were lost"),
            (&["spans", "dropped"], "spans were lost"),
            (&["messages_lost"], "messages were lost"),
            (&["mirror", "dropped"], "requests were not mirrored"),
            (&["watch", "unwatched"], "directories are not watched"),
            (&["cache", "ejections"], "objects were dropped to make room"),
            (&["fleet", "silent"], "machines of the fleet are silent"),
            (&["fleet", "waiting_orders"], "orders wait for the servers of the fleet"),
        ];
        for (path, what) in counted {
            if self.number(self.now, path) > 0 {
                limits.push(format!("{} {what}", self.total(path)));
            }
        }
        for server in self.rows("servers").iter().filter(|server| server["state"] != "up") {
            let word = |key: &str| printable(server[key].as_str().unwrap_or_default());
            limits.push(format!("{} is {}", word("server"), word("state")));
        }
        if self.now["fleet"]["connected"] == false {
            limits.push("no server of the fleet can be reached".to_owned());
        }
        limits.extend(self.now["fleet"]["rollout"].as_str().map(printable));
        let fast_path = self.now["fast_path"]["state"].as_str().unwrap_or_default();
        if fast_path.starts_with("not in use") {
            limits.push(format!("the fast path is {}", printable(fast_path)));
        }
        let sockets = self.now["fast_path"]["sockets"].as_str().unwrap_or_default();
        if sockets.starts_with("all connections") {
            limits.push(printable(sockets));
        }
        if limits.is_empty() { "nothing".to_owned() } else { limits.join("; ") }
    }

    fn rows(&self, name: &str) -> &[Value] {
        self.now[name].as_array().map_or(&[], Vec::as_slice)
    }

    fn number(&self, numbers: &Value, path: &[&str]) -> i64 {
        let found = path.iter().try_fold(numbers, |value, key| value.get(key));
        found.and_then(Value::as_i64).unwrap_or_default()
    }

    fn total(&self, path: &[&str]) -> String {
        grouped(self.number(self.now, path).unsigned_abs())
    }

    /// By how much a counter has grown.
    pub(in crate::commands) fn grown(&self, path: &[&str]) -> i64 {
        (self.number(self.now, path) - self.number(self.before, path)).max(0)
    }

    /// A count as one for each second.
    pub(in crate::commands) fn rate(&self, count: i64) -> String {
        let rate = count.max(0) as f64 / self.between.as_secs_f64().max(0.001);
        if rate > 0.0 && rate < 10.0 { format!("{rate:.1}") } else { grouped(rate.round() as u64) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ten_lines_say_what_matters_and_count_the_kernel_s_answers_as_hits() {
        let numbers = |round: u64| {
            json!({
                "version": "0.1.0", "pid": 7, "uptime_seconds": 90,
                "requests": {
                    "responses": 100 * round, "hits": 80 * round, "misses": 10 * round,
                    "remote": 10 * round, "status": { "200": 90 * round, "404": 8 * round, "502": 2 * round },
                },
                "fast_path": { "state": "in use on eth0", "answers": 60 * round },
                "cache": { "pinned_bytes": 1 << 20, "pinned_limit_bytes": 1 << 30, "ejections": 0 },
                "shared_cache": { "hits": 0, "hits_in_kernel": 0, "pinned_bytes": 0, "pinned_limit_bytes": 1 << 24 },
                "connections": { "open": 3, "accepted": 5 * round, "refused": 2, "timed_out": 0 },
                "servers": [
                    { "server": "127.0.0.1:3000", "state": "up" },
                    { "server": "127.0.0.1:3001", "state": "refused" },
                ],
                "access_log": { "dropped": 0 },
            })
        };
        let (before, now) = (numbers(1), numbers(2));
        let digest = Digest { before: &before, now: &now, between: Duration::from_millis(500) };
        let expected = "afpa 0.1.0, process 7, up 1 min 30 s
  requests     200 a second, 80.0 % hits; 200 since the start
  kernel       120 hits a second; 120 since the start
  memory       40 hits a second in user mode
  files        20 misses a second; 20 since the start
  servers      20 requests a second; 1 of 2 servers are up
  errors       4.0 a second are 5xx (4 since the start), 16 are 4xx (16)
  connections  3 open, 10 new a second; 0 timed out
  cache        1.0 MiB of 1.0 GiB for files, 0 B of 16.0 MiB for answers of servers
  limited      2 connections were refused; 127.0.0.1:3001 is refused
";
        assert_eq!(digest.text(), expected, "\n{}", digest.text());
        assert_eq!(expected.lines().count(), 10);
    }

    #[test]
    fn connections_without_a_socket_are_told_and_why_there_are_none() {
        let numbers = |round: u64| {
            json!({
                "connections": { "open": 3, "without_socket": 12, "accepted": 5 * round },
                "requests": { "status": {} },
                "fast_path": {
                    "state": "in use on eth0",
                    "sockets": "all connections have sockets of the kernel's: it is old",
                    "packets": { "socketless_opened": 9 * round, "socketless_to_kernel": 4 * round },
                },
            })
        };
        let (before, now) = (numbers(1), numbers(2));
        let digest = Digest { before: &before, now: &now, between: Duration::from_secs(1) };
        assert_eq!(
            digest.connections(),
            "3 open and 12 without a socket, 10 new a second; 0 timed out"
        );
        assert_eq!(digest.limited(), "all connections have sockets of the kernel's: it is old");
    }

    #[test]
    fn an_attachment_has_no_digest() {
        let numbers = json!({ "state": "attached", "answered": 5 });
        let digest = Digest { before: &numbers, now: &numbers, between: Duration::from_secs(1) };
        assert_eq!(digest.text(), "");
    }
}
