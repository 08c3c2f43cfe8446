//! Everything about the machine that the figures depend on.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

/// A machine, at a time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Local time with offset from UTC.
    pub time: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Version line of the kernel: when and how it was built.
    pub kernel_build: String,
    /// Name of the distribution.
    pub system: String,
    /// Model of the processor.
    pub processor: String,
    /// Cores of the machine.
    pub cores: usize,
    /// Cores that share a physical core with core 0.
    pub threads_of_core_0: String,
    /// The frequency governor of the kernel.
    pub frequency_governor: Option<String>,
    /// The processor runs under a hypervisor.
    pub virtual_machine: bool,
    /// Bytes of memory.
    pub memory: u64,
    /// The kernel's mitigations of processor flaws, which cost time.
    pub mitigations: Vec<String>,
    /// Settings of the kernel that figures depend on, by name.
    pub settings: Vec<(String, String)>,
    /// Load averages at the start.
    pub load: String,
    /// Commit of the sources, when they are there.
    pub commit: Option<String>,
    /// Hardware counters: can instructions be counted?
    pub hardware_counters: bool,
}

const SETTINGS: &[&str] = &[
    "net/core/netdev_max_backlog",
    "net/core/netdev_budget",
    "net/core/somaxconn",
    "net/core/bpf_jit_enable",
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_wmem",
    "net/ipv4/ip_local_port_range",
    "kernel/bpf_stats_enabled",
];

impl Environment {
    /// Looks at this machine.
    pub fn look() -> Self {
        Self {
            time: first_line("date", &["+%Y-%m-%d %H:%M:%S %z"]).unwrap_or_default(),
            kernel: read("/proc/sys/kernel/osrelease").unwrap_or_default(),
            kernel_build: without_builder(&read("/proc/version").unwrap_or_default()),
            system: system_name(),
            processor: cpuinfo("model name").unwrap_or_else(|| std::env::consts::ARCH.into()),
            cores: std::thread::available_parallelism().map_or(1, |cores| cores.get()),
            threads_of_core_0: read("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")
                .unwrap_or_default(),
            frequency_governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            virtual_machine: cpuinfo("flags")
                .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            memory: memory(),
            mitigations: mitigations(),
            settings: settings(),
            load: read("/proc/loadavg").unwrap_or_default(),
            commit: commit(),
            hardware_counters: crate::whitebox::hardware_counters(),
        }
    }

    /// One line for people.
    pub fn line(&self) -> String {
        format!(
            "{}, {} cores{}, Linux {}, {}",
            self.processor,
            self.cores,
            if self.virtual_machine { " of a virtual machine" } else { "" },
            self.kernel,
            self.system
        )
    }
}

/// First line of what a command says, on either channel.
pub(crate) fn first_line(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().ok()?;
    let text = [output.stdout, output.stderr].concat();
    let line = String::from_utf8_lossy(&text).lines().next()?.trim().to_owned();
    (output.status.success() && !line.is_empty()).then_some(line)
}

fn read(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// Removes the name of the user and host that built the kernel: no figure depends on it.
fn without_builder(version: &str) -> String {
    let is_builder = |word: &&str| word.starts_with('(') && word.contains('@');
    let words: Vec<&str> = version.split(' ').filter(|word| !is_builder(word)).collect();
    words.join(" ")
}

fn cpuinfo(key: &str) -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let mut found = lines.filter(|(name, _)| name.trim() == key);
    found.next().map(|(_, value)| value.trim().to_owned())
}

fn system_name() -> String {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.unwrap_or("an unknown system").trim_matches('"').to_owned()
}

fn memory() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = total.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

fn mitigations() -> Vec<String> {
    let folder = Path::new("/sys/devices/system/cpu/vulnerabilities");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut lines: Vec<String> = entries
        .filter_map(|entry| {
            let state = fs::read_to_string(entry.path()).ok()?;
            let state = state.trim();
            let name = entry.file_name();
            (state != "Not affected").then(|| format!("{}: {state}", name.to_string_lossy()))
        })
        .collect();
    lines.sort();
    lines
}

fn settings() -> Vec<(String, String)> {
    let known = |name: &&str| {
        let value = read(&format!("/proc/sys/{name}"))?;
        Some((name.replace('/', "."), value.replace('\t', " ")))
    };
    SETTINGS.iter().filter_map(known).collect()
}

fn commit() -> Option<String> {
    let here = env!("CARGO_MANIFEST_DIR");
    let name = first_line("git", &["-C", here, "rev-parse", "--short=12", "HEAD"])?;
    let changed = ["-C", here, "status", "--porcelain", "--untracked-files=no"];
    Some(match first_line("git", &changed) {
        Some(_) => format!("{name} with changes"),
        None => name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known() {
        let found = Environment::look();
        assert!(!found.kernel.is_empty() && found.memory > 0 && found.cores > 0);
        assert!(found.line().contains(&found.kernel));
        assert!(found.settings.iter().any(|(name, _)| name == "net.core.somaxconn"));
    }

    #[test]
    fn a_kernel_is_told_without_its_builder() {
        let version = "Linux version 6.1.0 (me@there.org) (gcc 12.2.0, GNU ld 2.40) #1 SMP";
        assert_eq!(
            without_builder(version),
            "Linux version 6.1.0 (gcc 12.2.0, GNU ld 2.40) #1 SMP"
        );
    }

    #[test]
    fn a_command_that_fails_says_nothing() {
        assert_eq!(first_line("false", &[]), None);
        assert_eq!(first_line("no-such-program-here", &[]), None);
        assert_eq!(first_line("echo", &["a"]).as_deref(), Some("a"));
    }
}
