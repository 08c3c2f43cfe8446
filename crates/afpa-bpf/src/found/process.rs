//! Which process holds a map of the kernel.

use std::fmt;
use std::fs;
use std::path::Path;

use super::Ids;

/// A process, and its command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub id: u32,
    /// Its command line; empty, if that cannot be read.
    pub command: String,
}

impl Process {
    /// The process with this number.
    pub fn new(id: u32) -> Self {
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        Self { id, command: command(&line) }
    }

    /// Whether it is an `afpa attach`, by its command.
    pub fn is_attach(&self) -> bool {
        self.command.split(' ').nth(1) == Some("attach")
    }

    /// The first process, besides this one, that has one of these maps open.
    pub(super) fn holding(maps: &Ids) -> Option<Self> {
        let own = std::process::id();
        let entries = fs::read_dir("/proc").ok()?.flatten();
        let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let mut others = ids.filter(|id| *id != own);
        others.find(|id| holds(*id, maps)).map(Self::new)
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.command.is_empty() {
            true => write!(f, "process {}", self.id),
            false => write!(f, "process {} ({})", self.id, self.command),
        }
    }
}

/// The words of a command line, without anything that a terminal could take for an order.
fn command(line: &[u8]) -> String {
    let words = line.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    let words = words.map(|word| String::from_utf8_lossy(word).escape_debug().to_string());
    words.collect::<Vec<_>>().join(" ")
}

fn holds(process: u32, maps: &Ids) -> bool {
    let folder = format!("/proc/{process}/fd");
    let Ok(entries) = fs::read_dir(&folder) else { return false };
    entries.flatten().any(|entry| {
        let is_map =
            fs::read_link(entry.path()).is_ok_and(|at| at == Path::new("anon_inode:bpf-map"));
        let number = entry.file_name();
        is_map
            && fs::read_to_string(Path::new(&format!("/proc/{process}/fdinfo")).join(number))
                .is_ok_and(|text| map_id(&text).is_some_and(|id| maps.contains(&id)))
    })
}

/// The number of a map, from the `fdinfo` of its descriptor in /proc.
fn map_id(text: &str) -> Option<u32> {
    text.lines().find_map(|line| line.strip_prefix("map_id:")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_shown_without_control_characters() {
        assert_eq!(command(b"afpa\0attach\0--root\0a\x1b[2J\0"), "afpa attach --root a\\u{1b}[2J");
        assert_eq!(command(b""), "");
        let process = |command: &str| Process { id: 7, command: command.to_owned() };
        assert_eq!(process("").to_string(), "process 7");
        assert_eq!(process("afpa serve x").to_string(), "process 7 (afpa serve x)");
        assert!(process("/usr/bin/afpa attach -l x").is_attach());
        assert!(!process("afpa serve attach").is_attach());
    }

    #[test]
    fn the_number_of_a_map_is_read() {
        let text = "pos:\t0\nflags:\t02000002\nmap_type:\t3\nmap_id:\t171\nfrozen:\t0\n";
        assert_eq!(map_id(text), Some(171));
        assert_eq!(map_id("pos:\t0\n"), None);
        assert!(!holds(std::process::id(), &Ids::from([u32::MAX])));
    }
}
