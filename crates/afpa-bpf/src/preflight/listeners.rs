//! The sockets that listen on ports, and whose they are.

use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;

use crate::found::Process;
use crate::found::connections;

/// A socket that listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListeningSocket {
    /// Where.
    pub address: SocketAddr,
    /// The server that has it open: the first process, of which others are children. `None`: it cannot be seen.
    pub server: Option<Process>,
}

/// The sockets that listen on these ports.
pub(super) fn on(ports: &[u16]) -> Vec<ListeningSocket> {
    let mut sockets = connections::listening().unwrap_or_default();
    sockets.retain(|(address, _)| ports.contains(&address.port()));
    let holders = holders(&sockets.iter().map(|(_, inode)| *inode).collect::<Vec<_>>());
    let mut all: Vec<ListeningSocket> = sockets
        .into_iter()
        .map(|(address, inode)| {
            let server = holders.get(&inode).map(|id| Process::new(top(*id, &holders)));
            ListeningSocket { address, server }
        })
        .collect();
    all.sort_by_key(|socket| (socket.address, socket.server.as_ref().map(|server| server.id)));
    all.dedup();
    all
}

/// The process with the lowest number that has each socket open.
fn holders(inodes: &[u64]) -> HashMap<u64, u32> {
    let mut holders: HashMap<u64, u32> = HashMap::new();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    for id in entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
        let open = fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten().flatten();
        for link in open.filter_map(|entry| fs::read_link(entry.path()).ok()) {
            let inode = link.to_str().and_then(inode_of).filter(|inode| inodes.contains(inode));
            if let Some(inode) = inode {
                let holder = holders.entry(inode).or_insert(id);
                *holder = id.min(*holder);
            }
        }
    }
    holders
}

fn inode_of(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// The ancestor of a process that is the first to hold any of the sockets.
fn top(mut id: u32, holders: &HashMap<u64, u32>) -> u32 {
    let mut next = id;
    while let Some(parent) = parent_of(next).filter(|parent| *parent > 1) {
        if holders.values().any(|holder| *holder == parent) {
            id = parent;
        }
        next = parent;
    }
    id
}

fn parent_of(id: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok())
}
