//! A step and what came of it, as `steps.h` lays them out.

use afpa_send::{Ack, Micros, Progress, Send};

/// Bytes of a `struct step`.
pub(crate) const STEP: usize = 72;
/// Numbers of a `struct state`: a result, a transmission, and the engine's state.
pub(crate) const STATE: usize = 7 + 49;

/// What happens to the engine.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Begin { length: u32, segment: u32, window: u32 },
    Ack(Ack),
    Time,
    Send,
    Narrowed,
}

impl Step {
    pub(crate) fn bytes(&self, now: Micros) -> [u8; STEP] {
        let mut words = [0u32; STEP / 4];
        words[0] = now as u32;
        words[1] = (now >> 32) as u32;
        match *self {
            Step::Begin { length, segment, window } => {
                words[3..6].copy_from_slice(&[length, segment, window]);
            }
            Step::Ack(ack) => {
                words[2] = 1;
                words[6] = ack.ack;
                words[7] = ack.window;
                for (place, (from, to)) in words[8..16].chunks_mut(2).zip(ack.sack) {
                    place.copy_from_slice(&[from, to]);
                }
                words[16] = ack.echo.unwrap_or(0);
                let flags = [ack.echo.is_some(), ack.marked, ack.earlier, false].map(u8::from);
                words[17] = u32::from_ne_bytes(flags);
            }
            Step::Time => words[2] = 2,
            Step::Send => words[2] = 3,
            Step::Narrowed => words[2] = 4,
        }
        let mut bytes = [0; STEP];
        for (place, word) in bytes.chunks_mut(4).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }
}

/// A state out of the bytes of a `struct state`.
pub(crate) fn state(bytes: &[u8]) -> Vec<u64> {
    let words = bytes.chunks_exact(8).map(|word| word.try_into().expect("eight bytes"));
    words.map(u64::from_ne_bytes).collect()
}

pub(crate) fn progress(progress: Progress) -> u64 {
    match progress {
        Progress::Going => 0,
        Progress::Done => 1,
        Progress::Impossible => 2,
        Progress::GivenUp => 3,
    }
}

pub(crate) fn transmission(send: Option<Send>) -> [u64; 6] {
    send.map_or([0; 6], |send| {
        let [again, reduced, markable, last] =
            [send.again, send.reduced, send.markable, send.last].map(u64::from);
        [send.offset.into(), send.length.into(), again, reduced, markable, last]
    })
}
