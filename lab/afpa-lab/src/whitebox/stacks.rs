//! What `perf script` prints: a block for each sample, its frames from the innermost one outwards.

/// One function of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame<'t> {
    pub(super) address: u64,
    pub(super) symbol: &'t str,
}

impl<'t> Frame<'t> {
    /// Kernels have the upper half of the addresses, on all 64-bit machines.
    pub(super) fn is_kernel(self) -> bool {
        self.address >> 63 == 1
    }

    /// By hand.
    #[cfg(test)]
    pub(super) fn kernel(symbol: &'t str) -> Self {
        Self { address: u64::MAX, symbol }
    }

    /// `ffffffff81a0b0c0 tcp_sendmsg`, `55d0c0ffee00 [unknown]`.
    fn parse(line: &'t str) -> Option<Self> {
        let (address, symbol) = line.trim().split_once(' ')?;
        let address = u64::from_str_radix(address, 16).ok()?;
        Some(Self { address, symbol: symbol.trim() })
    }
}

/// The samples of `perf script -F ip,sym`. Lines that are no frames end a sample.
pub(super) fn samples(text: &str) -> impl Iterator<Item = Vec<Frame<'_>>> {
    let mut lines = text.lines();
    std::iter::from_fn(move || {
        let first = lines.by_ref().find_map(Frame::parse)?;
        let rest = lines.by_ref().map_while(Frame::parse);
        Some(std::iter::once(first).chain(rest).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "\n\tffffffff81c01234 tcp_ack\n\tffffffff81c05678 tcp_v4_rcv\n\n\
                           \t    55d0c0ffee00 [unknown]\n\n\n\tffffffffc0000000 bpf_prog_12_x\n";

    #[test]
    fn blocks_become_samples() {
        let found: Vec<Vec<Frame<'_>>> = samples(PRINTED).collect();
        let names: Vec<Vec<&str>> =
            found.iter().map(|frames| frames.iter().map(|frame| frame.symbol).collect()).collect();
        assert_eq!(
            names,
            [vec!["tcp_ack", "tcp_v4_rcv"], vec!["[unknown]"], vec!["bpf_prog_12_x"]]
        );
        assert!(found[0][0].is_kernel() && !found[1][0].is_kernel());
        assert_eq!(samples("").count() + samples("no frame\n\n").count(), 0);
    }

    proptest::proptest! {
        #[test]
        fn no_text_breaks_it(text in "[0-9a-f \\n\\té]{0,200}") {
            let _ = samples(&text).map(|frames| frames.len()).sum::<usize>();
        }
    }
}
