//! The summary that the start prints: the resources in use, and advice.

use std::fmt;

use crate::privileges::Limit;
use afpa_config::human_size;

/// The facts that `afpa serve` prints before its first request.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Cores this process may run on.
    pub cores: usize,
    /// Worker threads.
    pub workers: usize,
    /// How they wait for connections, and why not otherwise.
    pub waiting: String,
    /// Which threads are confined, how, and which parts the kernel lacks.
    pub confined: String,
    /// Where connections are accepted, as a client would write it.
    pub listeners: Vec<String>,
    /// The document root.
    pub root: String,
    /// Servers behind that do not listen yet, as far as can be seen without asking them; empty if all do.
    pub absent: String,
    /// The user that the process has become; empty if it stays the same.
    pub user: String,
    /// Bytes of the arena.
    pub pinned_limit: u64,
    /// Whether it is locked in memory.
    pub memory: Memory,
    /// Descriptors.
    pub descriptors: Limit,
    /// Coherency.
    pub watches: Watches,
    /// Whether the kernel answers, and if not, why.
    pub fast_path: String,
    /// Where connections begin, unless it is in the kernel's TCP because the settings say so.
    pub sockets: Option<String>,
    /// Control socket, if there is one.
    pub control: Option<String>,
    /// Metrics and health, if they are served.
    pub admin: Option<String>,
}

/// The outcome of locking the arena.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Memory {
    /// It stays in memory.
    Locked,
    /// It may be swapped out.
    NotLocked {
        /// Why.
        reason: String,
        /// The remedy.
        remedy: String,
    },
}

/// How changes of files are noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watches {
    /// Every directory is watched.
    All {
        /// So many.
        directories: usize,
    },
    /// Some are; files in the others are compared with their objects after `max_age`.
    Some {
        /// Watched directories.
        directories: usize,
        /// Why not all.
        reason: String,
        /// For example `1s`.
        max_age: String,
        /// The remedy.
        remedy: String,
    },
    /// Not watched because the configuration says so.
    Off {
        /// For example `1s`.
        max_age: String,
    },
}

impl Summary {
    /// Advice for a better configuration or host.
    pub fn advice(&self) -> Vec<String> {
        let mut advice = Vec::new();
        if self.workers > self.cores {
            let (workers, cores) = (self.workers, self.cores);
            advice.push(format!("{workers} workers share {cores} cores: use --workers {cores}"));
        }
        if let Memory::NotLocked { reason, remedy } = &self.memory {
            advice.push(format!("memory is not locked ({reason}): {remedy}"));
        }
        if let Some(remedy) = self.descriptors.remedy() {
            advice.push(format!("descriptors may run out ({}): {remedy}", self.descriptors));
        }
        if let Watches::Some { reason, remedy, .. } = &self.watches {
            advice.push(format!("not every directory is watched ({reason}): {remedy}"));
        }
        advice
    }

    fn rows(&self) -> Vec<(&'static str, String)> {
        let mut rows = vec![
            ("serving", self.root.clone()),
            ("on", self.listeners.join("  ")),
            ("servers", self.absent.clone()),
            ("workers", format!("{} on {} cores", self.workers, self.cores)),
            ("waiting", self.waiting.clone()),
            ("confined", self.confined.clone()),
            ("cache", self.cache()),
            ("files", format!("{} descriptors", self.descriptors)),
            ("changes", self.changes()),
            ("fast path", self.fast_path.clone()),
        ];
        rows.retain(|(name, fact)| *name != "servers" || !fact.is_empty());
        rows.extend(self.sockets.iter().map(|line| ("sockets", line.clone())));
        if !self.user.is_empty() {
            rows.push(("user", self.user.clone()));
        }
        rows.extend(self.control.iter().map(|path| ("control", path.clone())));
        rows.extend(self.admin.iter().map(|address| ("metrics", address.clone())));
        rows
    }

    fn cache(&self) -> String {
        let size = human_size(self.pinned_limit);
        match self.memory {
            Memory::Locked => format!("up to {size}, locked in memory"),
            Memory::NotLocked { .. } => format!("up to {size}, not locked in memory"),
        }
    }

    fn changes(&self) -> String {
        match &self.watches {
            Watches::All { directories } => format!("{directories} directories watched"),
            Watches::Some { directories, max_age, .. } => {
                format!("{directories} directories watched, others at most {max_age} old")
            }
            Watches::Off { max_age } => format!("not watched, files at most {max_age} old"),
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "afpa {}", env!("CARGO_PKG_VERSION"))?;
        for (name, fact) in self.rows() {
            writeln!(f, "  {name:<9}  {fact}")?;
        }
        match &self.advice()[..] {
            [] => Ok(()),
            advice => writeln!(f, "  ! {}", advice.join("; ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privileges::LimitName;

    fn descriptors(granted: u64) -> Limit {
        Limit { name: LimitName::Descriptors, needed: 5000, granted: Some(granted) }
    }

    fn summary() -> Summary {
        Summary {
            cores: 4,
            workers: 4,
            waiting: "by epoll, as configured".to_owned(),
            confined: "workers and helpers".to_owned(),
            listeners: vec!["http://127.0.0.1:8080/".to_owned(), "unix:/run/a.sock".to_owned()],
            root: "/var/www/html".to_owned(),
            absent: String::new(),
            user: "www-data".to_owned(),
            pinned_limit: 2 << 30,
            memory: Memory::Locked,
            descriptors: descriptors(8192),
            watches: Watches::All { directories: 31 },
            fast_path: "in use on lo".to_owned(),
            sockets: None,
            control: Some("/run/afpa/7.sock".to_owned()),
            admin: None,
        }
    }

    #[test]
    fn a_good_start_has_no_advice() {
        let expected = format!(
            "\
afpa {}
  serving    /var/www/html
  on         http://127.0.0.1:8080/  unix:/run/a.sock
  workers    4 on 4 cores
  waiting    by epoll, as configured
  confined   workers and helpers
  cache      up to 2.0 GiB, locked in memory
  files      8192 descriptors
  changes    31 directories watched
  fast path  in use on lo
  user       www-data
  control    /run/afpa/7.sock
",
            env!("CARGO_PKG_VERSION")
        );
        assert_eq!(summary().to_string(), expected);
    }

    #[test]
    fn what_is_not_optimal_comes_with_its_remedy() {
        let summary = Summary {
            workers: 8,
            memory: Memory::NotLocked {
                reason: "RLIMIT_MEMLOCK is 8 MiB".to_owned(),
                remedy: "ulimit -l unlimited".to_owned(),
            },
            descriptors: descriptors(1024),
            watches: Watches::Some {
                directories: 100,
                reason: "the limit is 100".to_owned(),
                max_age: "1s".to_owned(),
                remedy: "sysctl fs.inotify.max_user_watches=65536".to_owned(),
            },
            ..summary()
        };
        let expected = [
            "8 workers share 4 cores: use --workers 4",
            "memory is not locked (RLIMIT_MEMLOCK is 8 MiB): ulimit -l unlimited",
            "descriptors may run out (1024 of 5000 needed): ulimit -Hn 5000, or LimitNOFILE=5000 in the unit",
            "not every directory is watched (the limit is 100): sysctl fs.inotify.max_user_watches=65536",
        ];
        assert_eq!(summary.advice(), expected);
        let text = summary.to_string();
        assert!(text.contains("  changes    100 directories watched, others at most 1s old\n"));
        assert!(text.contains("not locked in memory\n"));
        assert!(text.ends_with(&format!("  ! {}\n", expected.join("; "))), "{text}");
    }
}
