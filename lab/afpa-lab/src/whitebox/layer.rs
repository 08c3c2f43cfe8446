//! The layer in which a sample of the server's core was taken, as in Kim and Rixner's profiles.

use serde::{Deserialize, Serialize};

use super::stacks::Frame;
use super::symbols::TABLE;

/// Where time goes. Their layers, with those of today beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// User mode: the server itself.
    User,
    /// Entry and exit of system calls, waiting for events, files.
    SystemCall,
    /// Sockets, above TCP.
    Socket,
    /// TCP.
    Tcp,
    /// IP, routing, filters.
    Ip,
    /// The veth pair, the queues of devices: their Ethernet and driver.
    Driver,
    /// Programs in eBPF, and what they call.
    Programs,
    /// Interrupts, timers, everything else.
    Other,
}

impl Layer {
    /// From the top of the stack down.
    pub const ALL: [Self; 8] = [
        Self::User,
        Self::SystemCall,
        Self::Socket,
        Self::Tcp,
        Self::Ip,
        Self::Driver,
        Self::Programs,
        Self::Other,
    ];

    /// For a table's head.
    pub fn title(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::SystemCall => "system call",
            Self::Socket => "socket",
            Self::Tcp => "TCP",
            Self::Ip => "IP",
            Self::Driver => "driver",
            Self::Programs => "programs",
            Self::Other => "other",
        }
    }

    /// Whether the paper counts it as part of the network stack.
    pub fn is_stack(self) -> bool {
        !matches!(self, Self::User | Self::Other)
    }

    /// The layer of a sample, by its frames from the innermost one outwards: the innermost function that belongs to a layer
    /// decides, so that a copy or a lock counts for whoever asked for it. `None` while the core had nothing to do.
    pub(super) fn of(frames: &[Frame<'_>]) -> Option<Self> {
        if frames.first().is_some_and(|frame| !frame.is_kernel()) {
            return Some(Self::User);
        }
        for frame in frames.iter().take_while(|frame| frame.is_kernel()) {
            match place(frame.symbol) {
                Some(Place::Idle) => return None,
                Some(Place::In(layer)) => return Some(layer),
                None => {}
            }
        }
        Some(Self::Other)
    }
}

/// Where a function belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// To a core that has nothing to do.
    Idle,
    /// To a layer.
    In(Layer),
}

/// By the longest prefix of the table that the function's name begins with.
fn place(symbol: &str) -> Option<Place> {
    let known = TABLE.iter().flat_map(|(place, prefixes)| prefixes.iter().map(move |p| (place, p)));
    let fitting = known.filter(|(_, prefix)| symbol.starts_with(**prefix));
    fitting.max_by_key(|(_, prefix)| prefix.len()).map(|(place, _)| *place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(symbols: &[&str]) -> Option<Layer> {
        let frames: Vec<Frame<'_>> = symbols.iter().map(|symbol| Frame::kernel(symbol)).collect();
        Layer::of(&frames)
    }

    #[test]
    fn functions_belong_to_their_layers() {
        for (symbol, expected) in [
            ("veth_xmit", Layer::Driver),
            ("__netif_receive_skb_core.constprop.0", Layer::Driver),
            ("ip_rcv_core", Layer::Ip),
            ("ip_finish_output2", Layer::Ip),
            ("tcp_rcv_established", Layer::Tcp),
            ("inet_csk_accept", Layer::Tcp),
            ("__inet_lookup_established", Layer::Tcp),
            ("inet_sendmsg", Layer::Socket),
            ("sock_def_readable", Layer::Socket),
            ("lock_sock_nested", Layer::Socket),
            ("__x64_sys_epoll_wait", Layer::SystemCall),
            ("ep_send_events", Layer::SystemCall),
            ("io_issue_sqe", Layer::SystemCall),
            ("bpf_prog_1122334455667788_afpa_ingress", Layer::Programs),
            ("bpf_skb_store_bytes", Layer::Programs),
            ("handle_softirqs", Layer::Other),
        ] {
            assert_eq!(layer(&[symbol]), Some(expected), "{symbol}");
        }
    }

    #[test]
    fn a_helper_counts_for_who_called_it() {
        assert_eq!(
            layer(&["memcpy_orig", "skb_copy_bits", "tcp_recvmsg_locked", "inet_recvmsg"]),
            Some(Layer::Tcp)
        );
        assert_eq!(
            layer(&["kmem_cache_alloc", "bpf_prog_ab_x", "tcx_run", "__netif_receive_skb_core"]),
            Some(Layer::Programs)
        );
        assert_eq!(layer(&["memcpy_orig", "something_new"]), Some(Layer::Other));
    }

    #[test]
    fn an_idle_core_is_in_no_layer_and_user_mode_is_no_kernel() {
        assert_eq!(layer(&["pv_native_safe_halt", "default_idle", "do_idle"]), None);
        assert_eq!(layer(&["schedule_idle", "do_idle", "cpu_startup_entry"]), None);
        // An interrupt of the idle task is work.
        assert_eq!(
            layer(&["tcp_ack", "net_rx_action", "handle_softirqs", "do_idle"]),
            Some(Layer::Tcp)
        );
        assert_eq!(
            Layer::of(&[Frame { address: 0x5555_0000, symbol: "tcp_looks_like_it" }]),
            Some(Layer::User)
        );
        // Behind the kernel's frames stand those of the program that called.
        let called = [Frame::kernel("unknown_of_the_kernel"), Frame { address: 1, symbol: "main" }];
        assert_eq!(Layer::of(&called), Some(Layer::Other));
        assert_eq!(Layer::of(&[]), Some(Layer::Other));
    }

    #[test]
    fn no_beginning_is_in_two_layers() {
        let all: Vec<_> = TABLE.iter().flat_map(|(_, prefixes)| *prefixes).collect();
        let mut unique = all.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), all.len());
    }
}
