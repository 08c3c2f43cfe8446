//! The share of errors among the latest answers of one server.

/// Answers of the current window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    since_ms: u64,
    answers: u32,
    errors: u32,
}

impl Window {
    /// Whether the next answer is the last one of this window, unless that is forgotten first.
    pub(crate) fn is_complete_with_next(&self, requests: u32) -> bool {
        self.answers + 1 >= requests
    }

    /// Counts an answer. At the end of a window, after `requests` answers, it gives the percentage
    /// of errors and begins anew; a window older than `within_ms` is forgotten.
    pub(crate) fn count(
        &mut self,
        now_ms: u64,
        error: bool,
        requests: u32,
        within_ms: u64,
    ) -> Option<u32> {
        if self.answers > 0 && now_ms.saturating_sub(self.since_ms) > within_ms {
            *self = Self::default();
        }
        if self.answers == 0 {
            self.since_ms = now_ms;
        }
        self.answers += 1;
        self.errors += u32::from(error);
        if self.answers < requests {
            return None;
        }
        let percent = u64::from(self.errors) * 100 / u64::from(self.answers);
        *self = Self::default();
        Some(percent as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_speaks_when_it_is_full() {
        let mut window = Window::default();
        for n in 0..9 {
            assert!(!window.is_complete_with_next(10));
            assert_eq!(window.count(n, n % 2 == 0, 10, 1000), None);
        }
        assert!(window.is_complete_with_next(10));
        assert_eq!(window.count(9, true, 10, 1000), Some(60));
        assert_eq!(window.count(10, true, 10, 1000), None, "begins anew");
    }

    #[test]
    fn old_answers_say_nothing_of_today() {
        let mut window = Window::default();
        for n in 0..9 {
            window.count(n, true, 10, 1000);
        }
        assert_eq!(window.count(2000, false, 10, 1000), None, "the nine are forgotten");
    }
}
