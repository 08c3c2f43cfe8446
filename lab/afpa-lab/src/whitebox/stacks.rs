//! The output of `perf script`: a block for each sample, its frames from the innermost one outwards.

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

/// A sample: the process in which it was taken, and its frames.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sample<'t> {
    pub(super) process: i32,
    pub(super) frames: Vec<Frame<'t>>,
}

/// The samples of `perf script -F pid,ip,sym`: a line with the process, and one for each frame. Lines that are neither end
/// a sample.
pub(super) fn samples(text: &str) -> impl Iterator<Item = Sample<'_>> {
    let mut lines = text.lines().peekable();
    std::iter::from_fn(move || {
        loop {
            let Ok(process) = lines.next()?.trim().parse() else { continue };
            let mut frames = Vec::new();
            while let Some(frame) = lines.peek().and_then(|line| Frame::parse(line)) {
                frames.push(frame);
                lines.next();
            }
            if !frames.is_empty() {
                return Some(Sample { process, frames });
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "    0 \n\tffffffff81c01234 tcp_ack\n\tffffffff81c05678 tcp_v4_rcv\n\n\
                           12345 \n\t    55d0c0ffee00 [unknown]\n\n7\n\n    9\n\tffffffffc0000000 bpf_prog_12_x\n";

    #[test]
    fn blocks_become_samples() {
        let processes: Vec<i32> = samples(PRINTED).map(|sample| sample.process).collect();
        assert_eq!(processes, [0, 12345, 9], "a sample without frames is none");
        let found: Vec<Vec<Frame<'_>>> = samples(PRINTED).map(|sample| sample.frames).collect();
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
            let _ = samples(&text).map(|sample| sample.frames.len()).sum::<usize>();
        }
    }
}
