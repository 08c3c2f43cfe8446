//! The descriptors of a process in /proc: its eBPF programs, links and maps among them.

use std::collections::HashMap;
use std::fs;

/// The text of every descriptor; nothing when the process is gone.
pub(super) fn descriptors(process: u32) -> Vec<String> {
    let entries = fs::read_dir(format!("/proc/{process}/fdinfo")).into_iter().flatten().flatten();
    // A descriptor that was closed meanwhile has no text.
    entries.filter_map(|entry| fs::read_to_string(entry.path()).ok()).collect()
}

/// The fields of such a text, by name.
pub(super) fn fields(text: &str) -> HashMap<&str, &str> {
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.map(|(name, value)| (name.trim(), value.trim())).collect()
}

/// Bytes that the kernel has locked for the map of a process that has room for so many entries.
pub(super) fn locked_for_map(process: u32, entries: u32) -> Option<u64> {
    let size = entries.to_string();
    descriptors(process).iter().find_map(|text| {
        let fields = fields(text);
        (*fields.get("max_entries")? == size).then_some(())?;
        fields.get("memlock")?.parse().ok()
    })
}
