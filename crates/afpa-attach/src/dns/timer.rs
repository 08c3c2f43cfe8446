//! When a question without an answer is asked again, and how long rounds rest. No I/O, no clock.

use std::time::Duration;

/// By the times that earlier answers took, as RFC 6298 has it for TCP. A server that clients keep busy answers late, and drops
/// questions when its queue is full. With a fixed time, as long as a slow server needs, little would be learnt then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetransmissionTimer {
    /// The time that answers take, and by how much it varies; None: none has come yet.
    answers: Option<(Duration, Duration)>,
    time: Duration,
}

/// The most, and so the first; the least, since the server may be put aside for as long by other processes.
const MOST: Duration = Duration::from_millis(300);
const LEAST: Duration = Duration::from_millis(30);

impl Default for RetransmissionTimer {
    fn default() -> Self {
        Self { answers: None, time: MOST }
    }
}

impl RetransmissionTimer {
    /// A question without an answer for so long is asked again.
    pub fn time(self) -> Duration {
        self.time
    }

    /// An answer came after this time.
    pub fn heard(self, after: Duration) -> Self {
        let (usual, varies) = match self.answers {
            None => (after, after / 2),
            Some((usual, varies)) => {
                (usual * 7 / 8 + after / 8, varies * 3 / 4 + usual.abs_diff(after) / 4)
            }
        };
        Self { answers: Some((usual, varies)), time: (usual + varies * 4).clamp(LEAST, MOST) }
    }

    /// None came to a question with that timer. Those that wait at a time make it longer once.
    pub fn not_heard(self, had: Self) -> Self {
        Self { time: self.time.max((had.time * 2).min(MOST)), ..self }
    }
}

/// A round rests so many times as long as the server took for an answer, but no longer than that.
const RESTS: u32 = 9;
const LONGEST_REST: Duration = Duration::from_millis(10);

/// How long a round rests after an answer that took this time. So it has a tenth of an idle server; a busy one gets one question in
/// the time of an answer and that of a rest: less than a hundred a second, and about three where an answer takes 300 ms.
pub fn rest_behind(took: Duration) -> Duration {
    took.saturating_mul(RESTS).min(LONGEST_REST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_answers_soon_is_waited_for_less_long() {
        let mut timer = RetransmissionTimer::default();
        assert_eq!(timer.time(), MOST);
        for _ in 0..20 {
            timer = timer.heard(Duration::from_millis(1));
        }
        assert_eq!(timer.time(), LEAST);
        for _ in 0..40 {
            timer = timer.heard(Duration::from_millis(60));
        }
        assert!((60..120).contains(&timer.time().as_millis()), "{timer:?}");
        timer = (0..100).fold(timer, |timer, _| timer.heard(Duration::from_secs(5)));
        assert_eq!(timer.time(), MOST);
    }

    #[test]
    fn rounds_take_a_tenth_of_an_idle_server_and_little_of_a_busy_one() {
        let at_once = Duration::from_micros(100);
        assert_eq!(rest_behind(at_once), at_once * 9);
        for late in [2, 300, u64::MAX / 1_000_000] {
            assert_eq!(rest_behind(Duration::from_millis(late)), LONGEST_REST);
        }
    }

    #[test]
    fn silence_makes_it_longer_once_for_all_that_waited() {
        let begin = (0..20)
            .fold(RetransmissionTimer::default(), |timer, _| timer.heard(Duration::from_millis(1)));
        let late = (0..64).fold(begin, |timer, _| timer.not_heard(begin));
        assert_eq!(late.time(), LEAST * 2);
        let dead = (0..64).fold(late, |timer, _| timer.not_heard(timer));
        assert_eq!(dead.time(), MOST);
        assert_eq!(dead.heard(Duration::from_millis(1)).time(), LEAST);
    }
}
