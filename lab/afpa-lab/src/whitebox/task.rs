//! The task of a server in which a sample was taken: JAWS's categories of calls, and what is no call.

use serde::{Deserialize, Serialize};

use super::Category;
use super::stacks::Frame;

/// The use of some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Outside of calls, in user mode: JAWS's HTTP processing.
    Processing,
    /// In a system call.
    Call(Category),
    /// In an interrupt: packets that arrive, and programs that answer them.
    Packets,
}

impl Task {
    /// JAWS's order, what is no call around it.
    pub const ALL: [Self; 9] = [
        Self::Processing,
        Self::Call(Category::File),
        Self::Call(Category::Write),
        Self::Call(Category::Read),
        Self::Call(Category::Signal),
        Self::Call(Category::Synchronisation),
        Self::Call(Category::Process),
        Self::Call(Category::Other),
        Self::Packets,
    ];

    /// For a table's head.
    pub fn title(self) -> &'static str {
        match self {
            Self::Processing => "user mode",
            Self::Call(category) => category.title(),
            Self::Packets => "packets",
        }
    }

    /// Whether it is the network's: the tasks of JAWS's ideal server.
    pub fn is_network(self) -> bool {
        matches!(self, Self::Call(Category::Read | Category::Write) | Self::Packets)
    }

    /// Of a sample, by its frames from the innermost one outwards.
    pub(super) fn of(frames: &[Frame<'_>]) -> Self {
        if frames.first().is_some_and(|frame| !frame.is_kernel()) {
            return Self::Processing;
        }
        for frame in frames.iter().take_while(|frame| frame.is_kernel()) {
            if INTERRUPTS.iter().any(|prefix| frame.symbol.starts_with(prefix)) {
                return Self::Packets;
            }
            if let Some(category) = call(frame.symbol) {
                return Self::Call(category);
            }
        }
        Self::Call(Category::Other)
    }
}

const INTERRUPTS: &[&str] = &[
    "handle_softirqs",
    "__do_softirq",
    "net_rx_action",
    "do_softirq",
    "irq_exit",
    "sysvec_",
    "asm_sysvec",
];
const CALLS: &[&str] = &["__x64_sys_", "__arm64_sys_", "__se_sys_", "__do_sys_"];

/// The category of a call's function, or of an operation of io_uring.
fn call(symbol: &str) -> Option<Category> {
    match symbol {
        "io_send" | "io_sendmsg" | "io_send_zc" | "io_sendmsg_zc" | "io_write" | "io_splice" => {
            return Some(Category::Write);
        }
        "io_recv" | "io_recvmsg" | "io_read" | "io_accept" | "io_poll_add" => {
            return Some(Category::Read);
        }
        "io_openat" | "io_openat2" | "io_close" | "io_statx" => return Some(Category::File),
        _ => {}
    }
    let name = CALLS.iter().find_map(|prefix| symbol.strip_prefix(prefix))?;
    Some(Category::named(name.split('.').next().unwrap_or(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(symbols: &[&str]) -> Task {
        let frames: Vec<Frame<'_>> = symbols.iter().map(|symbol| Frame::kernel(symbol)).collect();
        Task::of(&frames)
    }

    #[test]
    fn a_sample_counts_for_the_call_it_is_in() {
        assert_eq!(
            task(&["memcpy", "tcp_sendmsg", "__x64_sys_writev", "do_syscall_64"]),
            Task::Call(Category::Write)
        );
        assert_eq!(
            task(&["ep_poll", "__x64_sys_epoll_wait", "do_syscall_64"]),
            Task::Call(Category::Read)
        );
        assert_eq!(task(&["path_openat", "__x64_sys_openat"]), Task::Call(Category::File));
        assert_eq!(task(&["futex_wait", "__x64_sys_futex"]), Task::Call(Category::Synchronisation));
        assert_eq!(
            task(&["tcp_sendmsg", "io_send", "io_issue_sqe", "__x64_sys_io_uring_enter"]),
            Task::Call(Category::Write)
        );
        assert_eq!(
            task(&["io_submit_sqes", "__x64_sys_io_uring_enter"]),
            Task::Call(Category::Read)
        );
        assert_eq!(task(&["__x64_sys_getpid"]), Task::Call(Category::Other));
        assert_eq!(task(&["something"]), Task::Call(Category::Other));
    }

    #[test]
    fn packets_that_arrive_during_a_call_are_none_of_it() {
        let frames =
            ["tcp_v4_rcv", "net_rx_action", "handle_softirqs", "tcp_sendmsg", "__x64_sys_sendto"];
        assert_eq!(task(&frames), Task::Packets);
        assert_eq!(Task::of(&[Frame { address: 1, symbol: "main" }]), Task::Processing);
    }
}
