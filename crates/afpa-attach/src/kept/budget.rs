//! How much of the server's time questions may take.

use std::time::{Duration, Instant};

/// Each question is paid for with this many times the time that its answer took. So less than a tenth of the server's
/// time is left for questions, even if clients provoke them.
const SHARE: u32 = 12;
/// Answers that may be asked for at once when nothing was asked for a while.
const AT_ONCE: Duration = Duration::from_millis(150);

/// The budget of questions. A new one is empty.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// When everything will be paid for that was asked.
    paid: Instant,
}

impl Budget {
    /// The budget of a process that begins now.
    pub fn new(now: Instant) -> Self {
        Self { paid: now + AT_ONCE * SHARE }
    }

    /// How long to wait before the next question.
    pub fn wait(&self, now: Instant) -> Duration {
        self.paid.saturating_duration_since(now + AT_ONCE * SHARE)
    }

    /// An answer took so long.
    pub fn spend(&mut self, took: Duration, now: Instant) {
        self.paid = self.paid.max(now) + took * SHARE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time of the server that the budget allows in each second of an hour, if questions come as early as they
    /// may.
    fn spent(took: impl Fn(u32) -> Duration) -> Vec<Duration> {
        let begin = Instant::now();
        let (mut budget, mut now, mut seconds) = (Budget::new(begin), begin, Vec::new());
        for question in 0.. {
            now += budget.wait(now);
            let second = (now - begin).as_secs() as usize;
            if second >= 3600 {
                break;
            }
            seconds.resize(seconds.len().max(second + 1), Duration::ZERO);
            seconds[second] += took(question);
            now += took(question);
            budget.spend(took(question), now);
        }
        seconds
    }

    #[test]
    fn no_ten_seconds_have_more_than_a_tenth_for_questions() {
        let cases: [fn(u32) -> Duration; 4] = [
            |_| Duration::from_micros(300),
            |_| Duration::from_millis(40),
            |question| Duration::from_millis(u64::from(question % 90)),
            |question| Duration::from_millis(if question % 50 == 0 { 700 } else { 2 }),
        ];
        for (case, took) in cases.iter().enumerate() {
            let seconds = spent(took);
            let most = seconds.windows(10).map(|ten| ten.iter().sum::<Duration>()).max();
            let longest = (0..200).map(took).max().unwrap();
            assert!(most.unwrap() <= Duration::from_secs(1) + longest, "{case}: {most:?}");
            let all: Duration = seconds.iter().sum();
            assert!(all > Duration::from_secs(200), "it is used: {case}: {all:?}");
        }
    }

    #[test]
    fn what_was_not_spent_is_not_saved_up() {
        let begin = Instant::now();
        let mut budget = Budget::new(begin);
        let later = begin + Duration::from_secs(3600);
        assert_eq!(budget.wait(later), Duration::ZERO);
        budget.spend(AT_ONCE, later);
        assert_eq!(budget.wait(later), Duration::ZERO);
        budget.spend(AT_ONCE, later);
        assert_eq!(budget.wait(later), AT_ONCE * SHARE);
    }
}
