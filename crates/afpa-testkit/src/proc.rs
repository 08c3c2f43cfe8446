//! The facts about a process in `/proc`.

use std::os::unix::ffi::OsStrExt as _;
use std::{fs, io};

/// A process seen from outside. The process may end at any time: every look can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(pub u32);

impl Process {
    /// Resident set in bytes. Pages of mapped files do not count, as they are not the process's own.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn resident(self) -> io::Result<u64> {
        let kilobytes = |line: String| {
            line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok())
        };
        let part = |name| Ok::<_, io::Error>(self.status(name)?.and_then(kilobytes).unwrap_or(0));
        Ok((part("RssAnon")? + part("RssShmem")?) * 1024)
    }

    /// Bytes of the open files that lie in memory and have no name (`memfd_create`). They are not part of the resident set.
    ///
    /// # Errors
    /// When the process is gone or belongs to somebody else.
    pub fn nameless_files(self) -> io::Result<u64> {
        let open = fs::read_dir(format!("/proc/{}/fd", self.0))?.filter_map(Result::ok);
        let nameless = open.map(|entry| entry.path()).filter(|path| {
            fs::read_link(path).is_ok_and(|to| to.as_os_str().as_bytes().starts_with(b"/memfd:"))
        });
        // A descriptor may be closed meanwhile.
        Ok(nameless.filter_map(|path| fs::metadata(path).ok()).map(|file| file.len()).sum())
    }

    /// Number of open descriptors.
    ///
    /// # Errors
    /// When the process is gone or belongs to somebody else.
    pub fn descriptors(self) -> io::Result<usize> {
        Ok(fs::read_dir(format!("/proc/{}/fd", self.0))?.count())
    }

    /// Number of threads.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn threads(self) -> io::Result<usize> {
        Ok(fs::read_dir(format!("/proc/{}/task", self.0))?.count())
    }

    /// A line for each thread: its name, its state, the function of the kernel in which it waits, and its system call. As
    /// far as they can be read, for a test that fails.
    pub fn waiting_in(self) -> String {
        let threads =
            fs::read_dir(format!("/proc/{}/task", self.0)).into_iter().flatten().flatten();
        let lines = threads.map(|thread| {
            let read = |name| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
            let stat = read("stat");
            let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
            let (name, wait, call) = (read("comm"), read("wchan"), read("syscall"));
            format!(
                "{}: {} in {wait}, system call {}\n",
                name.trim(),
                state.unwrap_or('?'),
                call.trim()
            )
        });
        lines.collect()
    }

    /// Whether every thread has taken a name of its own: until then it bears that of the thread that started it.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn have_threads_begun(self) -> io::Result<bool> {
        let name =
            |thread: &str| fs::read_to_string(format!("/proc/{}/task/{thread}/comm", self.0));
        let first = self.0.to_string();
        let process = name(&first)?;
        for thread in fs::read_dir(format!("/proc/{}/task", self.0))? {
            let thread = thread?.file_name().to_string_lossy().into_owned();
            if thread != first && name(&thread)? == process {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A line for each thread that has a right which a confined process of an ordinary user has not: a capability, a way to one,
    /// system calls without a filter, or root. `bounded`: the process began with the right to empty its bounding set.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn rights_left(self, bounded: bool) -> io::Result<Vec<String>> {
        const NONE: &str = "0000000000000000";
        let mut left = Vec::new();
        for thread in fs::read_dir(format!("/proc/{}/task", self.0))? {
            // A thread may end meanwhile.
            let Ok(status) = fs::read_to_string(thread?.path().join("status")) else { continue };
            let of = |name: &str| {
                let line =
                    status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
                line.unwrap_or_default().trim().to_owned()
            };
            let none = ["CapEff", "CapPrm", "CapInh", "CapAmb"].map(|name| (name, NONE));
            let bound = bounded.then_some(("CapBnd", NONE));
            let due = [("NoNewPrivs", "1"), ("Seccomp", "2")];
            let too_much =
                none.into_iter().chain(bound).chain(due).filter(|(name, due)| of(name) != *due);
            let mut words: Vec<_> =
                too_much.map(|(name, _)| format!("{name} {}", of(name))).collect();
            if of("Uid").split_whitespace().any(|user| user == "0") {
                words.push(format!("Uid {}", of("Uid")));
            }
            if !words.is_empty() {
                left.push(format!("{}: {}", of("Name"), words.join(", ")));
            }
        }
        Ok(left)
    }

    /// Real, effective, saved and file-system user of the process.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn users(self) -> io::Result<Vec<u32>> {
        let line = self.status("Uid")?.unwrap_or_default();
        Ok(line.split_whitespace().filter_map(|word| word.parse().ok()).collect())
    }

    /// Supplementary groups.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn groups(self) -> io::Result<Vec<u32>> {
        let line = self.status("Groups")?.unwrap_or_default();
        Ok(line.split_whitespace().filter_map(|word| word.parse().ok()).collect())
    }

    /// Effective capabilities as a bit set.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn capabilities(self) -> io::Result<u64> {
        let line = self.status("CapEff")?.unwrap_or_default();
        Ok(u64::from_str_radix(line.trim(), 16).unwrap_or(u64::MAX))
    }

    /// Processor time used so far, user and system, in clock ticks of 10 ms.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn processor_ticks(self) -> io::Result<u64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0))?;
        // The name in parentheses may hold spaces: fields are counted from its end.
        let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let number = |index| after_name.split_whitespace().nth(index).and_then(|w| w.parse().ok());
        Ok(number(11).unwrap_or(0u64) + number(12).unwrap_or(0))
    }

    /// Page faults so far of the threads whose names begin so.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn faults_of(self, names: &str) -> io::Result<u64> {
        let mut faults = 0;
        for thread in fs::read_dir(format!("/proc/{}/task", self.0))? {
            let stat = fs::read_to_string(thread?.path().join("stat"))?;
            let (before, after) = stat.rsplit_once(')').unwrap_or_default();
            if before.split_once('(').is_some_and(|(_, name)| name.starts_with(names)) {
                let number = |index| after.split_whitespace().nth(index)?.parse::<u64>().ok();
                faults += number(7).unwrap_or(0) + number(9).unwrap_or(0);
            }
        }
        Ok(faults)
    }

    /// One line of `/proc/<pid>/status` without its name.
    fn status(self, name: &str) -> io::Result<Option<String>> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        Ok(line.map(str::to_owned))
    }
}

#[cfg(test)]
mod tests {
    use super::Process;

    #[test]
    fn this_process_is_seen_as_it_is() {
        let own = Process(std::process::id());
        // Other tests of this process give memory back meanwhile.
        let grows = || {
            let before = own.resident().expect("resident set");
            let memory = vec![1u8; 32 << 20];
            let after = own.resident().expect("resident set");
            (30 << 20..64 << 20).contains(&after.saturating_sub(before)) && memory.len() == 32 << 20
        };
        assert!((0..10).any(|_| grows()), "32 MiB are not seen");
        assert!(own.threads().expect("threads") >= 2);
        let descriptors = own.descriptors().expect("descriptors");
        assert!(descriptors >= 3);
        let user = rustix::process::geteuid().as_raw();
        assert_eq!(own.users().expect("users").get(1), Some(&user));
    }
}
