//! Whether connections without a socket pay: one that the programs answer to its end saves a socket, some twelve microseconds of a core;
//! one that becomes the kernel's after all costs one to three more than if it had begun there.

use std::time::{Duration, Instant};

/// Whether they pay among the clients of the last seconds. Pure.
#[derive(Debug, Default)]
pub(super) struct Worth {
    opened: u64,
    assigned: u64,
    until: Option<Instant>,
}

impl Worth {
    /// Fewer in a second tell little, and cost little.
    const LEAST: u64 = 200;
    /// Then they are tried again for a second.
    const PAUSE: Duration = Duration::from_secs(20);

    /// Takes the counts of those that were opened, and of those that were assigned to the kernel's TCP, once a second. Whether
    /// new ones begin with a socket, because more than seven of eight need one.
    pub(super) fn see(&mut self, opened: u64, assigned: u64, now: Instant) -> bool {
        let (more_opened, more_assigned) =
            (opened.saturating_sub(self.opened), assigned.saturating_sub(self.assigned));
        (self.opened, self.assigned) = (opened, assigned);
        if more_opened >= Self::LEAST && more_assigned > more_opened / 8 * 7 {
            self.until = now.checked_add(Self::PAUSE);
        }
        self.until.is_some_and(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_nearly_all_need_a_socket_they_begin_with_one_for_a_while() {
        let (mut worth, begin) = (Worth::default(), Instant::now());
        let mut see = |opened, assigned, second| {
            worth.see(opened, assigned, begin + Duration::from_secs(second))
        };
        assert!(!see(1000, 870, 1), "some pay");
        assert!(!see(1199, 1069, 2), "few");
        assert!(see(2199, 2000, 3), "nearly all need one");
        assert!(see(2199, 2000, 22) && !see(2199, 2000, 23), "tried again");
        assert!(see(3199, 3000, 24) && !see(3199, 3000, 44));
        assert!(!see(4199, 3100, 45), "others come now");
    }
}
