//! A step of the sender and its state, as `c/steps.h` lays them out.

/// Microseconds of a clock that never jumps.
pub type Micros = u64;

/// Segments that one transfer may have.
pub const MAX_SEGMENTS: u32 = 128;

/// Bytes of a `struct step`.
pub const STEP_BYTES: usize = 144;

/// An ACK of the client; sequence numbers are offsets of the transfer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ack {
    /// Cumulative. Beyond the transfer's end it counts as its end.
    pub ack: u32,
    /// Bytes that the client accepts from `ack` on.
    pub wnd: u32,
    /// SACK blocks; empty ones are ignored. The first may be a DSACK.
    pub sack: [(u32, u32); 4],
    /// The echoed timestamp, milliseconds of our clock.
    pub tsecr: Option<u32>,
    /// The flag ECE.
    pub ece: bool,
    /// The first block is a DSACK of an earlier transfer.
    pub earlier_dsack: bool,
}

/// The measurements that a connection keeps from one transfer to the next: `struct path`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // as in bpf/include/afpa/tcp/path.h
pub struct Path {
    pub last_sent: Micros,
    pub srtt: u32,
    pub rttvar: u32,
    pub min_rtt: u32,
    /// 0: `path_init` makes the path, and all other fields are ignored.
    pub cwnd: u32,
    pub ssthresh: u32,
    pub cwnd_cnt: u32,
    pub undo_cwnd: u32,
    pub undo_ssthresh: u32,
    pub undo_retrans: u32,
    pub reordering_seen: bool,
    pub cwr_pending: bool,
    pub reo_wnd_mult: u32,
    pub reo_wnd_persist: u32,
}

/// An event for a sender.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // as in c/steps.h
pub enum Step {
    Begin { length: u32, segment: u32, window: u32, path: Path },
    Ack(Ack),
    Timer,
    Poll,
    MtuLowered,
    RequestEce,
    RttSample(u32),
    Rto(u32),
    Pto(u32),
    GrowCwnd(u32),
    ReduceCwnd,
}

impl Step {
    /// A `struct step` for the sender of this number.
    pub fn bytes(&self, sender: u32, now: Micros) -> [u8; STEP_BYTES] {
        let mut words = [0u32; STEP_BYTES / 4];
        let set_now = |words: &mut [u32], time: Micros| {
            words[..2].copy_from_slice(&[time as u32, (time >> 32) as u32]);
        };
        set_now(&mut words, now);
        words[4] = sender;
        (words[5], words[6]) = match *self {
            Self::Begin { .. } => (0, 0),
            Self::Ack(_) => (1, 0),
            Self::Timer => (2, 0),
            Self::Poll => (3, 0),
            Self::MtuLowered => (4, 0),
            Self::RequestEce => (5, 0),
            Self::RttSample(sample) => (6, sample),
            Self::Rto(backoff) => (7, backoff),
            Self::Pto(outstanding) => (8, outstanding),
            Self::GrowCwnd(acked) => (9, acked),
            Self::ReduceCwnd => (10, 0),
        };
        match *self {
            Self::Begin { length, segment, window, path } => {
                set_now(&mut words[2..], path.last_sent);
                words[7..10].copy_from_slice(&[length, segment, window]);
                words[10..23].copy_from_slice(&path.words());
            }
            Self::Ack(ack) => {
                words[24..26].copy_from_slice(&[ack.ack, ack.wnd]);
                for (place, (from, to)) in words[26..34].chunks_mut(2).zip(ack.sack) {
                    place.copy_from_slice(&[from, to]);
                }
                words[34] = ack.tsecr.unwrap_or(0);
                let flags = [ack.tsecr.is_some(), ack.ece, ack.earlier_dsack, false];
                words[35] = u32::from_ne_bytes(flags.map(u8::from));
            }
            _ => {}
        }
        let mut bytes = [0; STEP_BYTES];
        for (place, word) in bytes.chunks_mut(4).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }
}

impl Path {
    fn words(&self) -> [u32; 13] {
        [
            self.srtt,
            self.rttvar,
            self.min_rtt,
            self.cwnd,
            self.ssthresh,
            self.cwnd_cnt,
            self.undo_cwnd,
            self.undo_ssthresh,
            self.undo_retrans,
            self.reordering_seen.into(),
            self.cwr_pending.into(),
            self.reo_wnd_mult,
            self.reo_wnd_persist,
        ]
    }
}

/// A state of the sender as the worker tells it.
macro_rules! state {
    ($($field:ident)*) => {
        /// The result of a step, its transmission, and the state after it: the names of `struct transmission`,
        /// `struct path` and `struct sender`.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub struct SenderState {
            $(pub $field: u64,)*
        }

        impl SenderState {
            /// Bytes of a `struct state`.
            pub const BYTES: usize = 8 * [$(stringify!($field)),*].len();

            /// Out of a `struct state`.
            pub fn parse(bytes: &[u8]) -> Self {
                let mut words = bytes.chunks_exact(8);
                let mut next = || {
                    let word = words.next().and_then(|word| word.try_into().ok());
                    word.map(u64::from_ne_bytes).expect("a whole state")
                };
                Self { $($field: next(),)* }
            }
        }
    };
}

state! {
    result offset sent_length retransmission cwr ect last
    last_sent srtt rttvar min_rtt cwnd ssthresh cwnd_cnt undo_cwnd undo_ssthresh undo_retrans
    reordering_seen cwr_pending reo_wnd_mult reo_wnd_persist
    deadline timer_base last_progress sacked_low sacked_high lost_low lost_high
    retransmitted_low retransmitted_high length mss snd_una snd_wnd_end rack_xmit_ts rack_rtt max_pipe
    segments next rack_fack rack_valid rack_segment ca_state recovery_point fast_retransmit
    tlp tlp_segment window_probe timer rto_backoff cwr_until reduced_until reo_wnd_until mtu_blackhole
    any_retransmitted
    any_delivered pipe ready sent_at_first sent_at_next sent_at_last
}

/// `enum progress`
pub mod progress {
    #![allow(missing_docs)]
    pub const GOING: u64 = 0;
    pub const DONE: u64 = 1;
    pub const IMPOSSIBLE: u64 = 2;
    pub const GIVEN_UP: u64 = 3;
}

/// `enum timer`
pub mod timer {
    #![allow(missing_docs)]
    pub const NONE: u64 = 0;
    pub const RACK: u64 = 1;
    pub const TLP: u64 = 2;
    pub const RTO: u64 = 3;
    pub const PERSIST: u64 = 4;
}

/// `enum ca_state`
pub mod ca_state {
    #![allow(missing_docs)]
    pub const OPEN: u64 = 0;
    pub const FAST_RECOVERY: u64 = 1;
    pub const LOSS: u64 = 2;
}

/// `enum tlp`
pub mod tlp {
    #![allow(missing_docs)]
    pub const NONE: u64 = 0;
    pub const DUE: u64 = 1;
    pub const NEW_DATA: u64 = 2;
    pub const RETRANSMITTED: u64 = 3;
}

/// Bytes to be sent: `struct transmission`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// Of the transfer.
    pub offset: u32,
    /// 0: a window probe, an empty segment one byte below `offset`.
    pub length: u32,
    /// It was sent before.
    pub retransmitted: bool,
    /// It carries CWR.
    pub cwr: bool,
    /// It is ECN-capable.
    pub ect: bool,
    /// The transfer ends with it.
    pub last: bool,
}

impl SenderState {
    /// Segments that were delivered above `snd_una`.
    pub fn sacked(&self) -> u128 {
        set(self.sacked_low, self.sacked_high)
    }

    /// Segments that are presumed lost, and not retransmitted yet.
    pub fn lost(&self) -> u128 {
        set(self.lost_low, self.lost_high)
    }

    /// Segments that were sent more than once.
    pub fn retransmitted(&self) -> u128 {
        set(self.retransmitted_low, self.retransmitted_high)
    }

    /// The segment that left in this step.
    pub fn transmission(&self) -> Transmission {
        Transmission {
            offset: self.offset as u32,
            length: self.sent_length as u32,
            retransmitted: self.retransmission != 0,
            cwr: self.cwr != 0,
            ect: self.ect != 0,
            last: self.last != 0,
        }
    }

    /// The path with which the next transfer begins.
    pub fn path(&self) -> Path {
        Path {
            last_sent: self.last_sent,
            srtt: self.srtt as u32,
            rttvar: self.rttvar as u32,
            min_rtt: self.min_rtt as u32,
            cwnd: self.cwnd as u32,
            ssthresh: self.ssthresh as u32,
            cwnd_cnt: self.cwnd_cnt as u32,
            undo_cwnd: self.undo_cwnd as u32,
            undo_ssthresh: self.undo_ssthresh as u32,
            undo_retrans: self.undo_retrans as u32,
            reordering_seen: self.reordering_seen != 0,
            cwr_pending: self.cwr_pending != 0,
            reo_wnd_mult: self.reo_wnd_mult as u32,
            reo_wnd_persist: self.reo_wnd_persist as u32,
        }
    }

    /// The state alone, without what the step returned and transmitted.
    pub fn at_rest(&self) -> Self {
        Self {
            result: 0,
            offset: 0,
            sent_length: 0,
            retransmission: 0,
            cwr: 0,
            ect: 0,
            last: 0,
            ..*self
        }
    }
}

fn set(low: u64, high: u64) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}
