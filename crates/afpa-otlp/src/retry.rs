//! The fate of a batch after an attempt to send it (OTLP 1, section *OTLP/HTTP Response*).

use std::time::Duration;

/// How often a batch is sent.
pub(crate) const MOST_ATTEMPTS: u32 = 5;

/// The pause after the first attempt; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause, also of those that a collector asks for.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Why the spans of a batch are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The collector cannot be reached, or says nothing in time.
    Unreachable,
    /// The collector refuses them with this status.
    Refused(u16),
}

/// The judgement on an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Taken,
    /// It may be sent again after a pause; `Some`: the collector has said after how long.
    Again(Loss, Option<Duration>),
    Lost(Loss),
}

/// Judges an answer. `retry_after`: the field of that name.
pub(crate) fn judge(status: u16, retry_after: Option<&[u8]>) -> Verdict {
    match status {
        200..=299 => Verdict::Taken,
        429 | 502 | 503 | 504 => Verdict::Again(Loss::Refused(status), seconds(retry_after)),
        _ => Verdict::Lost(Loss::Refused(status)),
    }
}

/// The pause after this number of attempts, the first of them being 1. `chance` spreads those of several programs: from
/// half of the pause to all of it.
pub(crate) fn pause(attempts: u32, asked_for: Option<Duration>, chance: u16) -> Duration {
    if let Some(asked_for) = asked_for {
        return asked_for.min(LONGEST_PAUSE);
    }
    let doubled = FIRST_PAUSE.saturating_mul(1 << attempts.saturating_sub(1).min(6));
    let half = doubled.min(LONGEST_PAUSE) / 2;
    half + half * u32::from(chance) / u32::from(u16::MAX)
}

/// Seconds of Retry-After; a date there counts as none.
fn seconds(retry_after: Option<&[u8]>) -> Option<Duration> {
    let text = str::from_utf8(retry_after?).ok()?.trim();
    text.parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_four_statuses_of_the_protocol_are_tried_again() {
        for status in 100..600 {
            let expected = match status {
                200..=299 => Verdict::Taken,
                429 | 502 | 503 | 504 => Verdict::Again(Loss::Refused(status), None),
                _ => Verdict::Lost(Loss::Refused(status)),
            };
            assert_eq!(judge(status, None), expected);
        }
        let after = |text: &[u8]| match judge(503, Some(text)) {
            Verdict::Again(_, after) => after,
            _ => panic!("{text:?}"),
        };
        assert_eq!(after(b"7"), Some(Duration::from_secs(7)));
        for strange in [&b"-1"[..], b"soon", b"Wed, 21 Oct 2026 07:28:00 GMT", b"\xff"] {
            assert_eq!(after(strange), None);
        }
    }

    #[test]
    fn pauses_grow_and_have_a_bound() {
        let of = |attempts, chance| pause(attempts, None, chance).as_millis();
        assert_eq!((of(1, 0), of(1, u16::MAX)), (500, 1000));
        assert_eq!((of(4, 0), of(4, u16::MAX)), (4000, 8000));
        assert_eq!(of(u32::MAX, u16::MAX), 60_000);
        let asked_for = |seconds| pause(1, Some(Duration::from_secs(seconds)), 9).as_secs();
        assert_eq!((asked_for(0), asked_for(7), asked_for(u64::MAX)), (0, 7, 60));
    }
}
