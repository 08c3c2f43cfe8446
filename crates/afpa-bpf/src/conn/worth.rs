//! Whether connections without a socket pay: one that the programs answer to its end saves a socket, some twelve microseconds of a core;
//! one that becomes the kernel's after all costs one to three more than if it had begun there.

use std::time::{Duration, Instant};

/// Whether they pay among the clients of the last seconds. Pure.
#[derive(Debug, Default)]
pub(super) struct Worth {
    seen: Begun,
    until: Option<Instant>,
}

/// Counts of the connections that may do without a socket.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Begun {
    /// Those that began without one.
    pub(super) opened: u64,
    /// Those that were assigned to the kernel's TCP.
    pub(super) assigned: u64,
    /// At least as many as those of `assigned` that were never opened, for want of room.
    pub(super) unopened: u64,
}

impl Worth {
    /// Fewer in a second tell little, and cost little.
    const LEAST: u64 = 200;
    /// Then they are tried again for a second.
    const PAUSE: Duration = Duration::from_secs(20);

    /// Takes the counts, once a second. Whether new ones begin with a socket, because more than seven of eight need one.
    pub(super) fn see(&mut self, now_begun: Begun, now: Instant) -> bool {
        let seen = std::mem::replace(&mut self.seen, now_begun);
        let opened = now_begun.opened.saturating_sub(seen.opened);
        let unopened = now_begun.unopened.saturating_sub(seen.unopened);
        let assigned = now_begun.assigned.saturating_sub(seen.assigned).saturating_sub(unopened);
        if opened >= Self::LEAST && assigned > opened / 8 * 7 {
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
            let begun = Begun { opened, assigned, unopened: 0 };
            worth.see(begun, begin + Duration::from_secs(second))
        };
        assert!(!see(1000, 870, 1), "some pay");
        assert!(!see(1199, 1069, 2), "few");
        assert!(see(2199, 2000, 3), "nearly all need one");
        assert!(see(2199, 2000, 22) && !see(2199, 2000, 23), "tried again");
        assert!(see(3199, 3000, 24) && !see(3199, 3000, 44));
        assert!(!see(4199, 3100, 45), "others come now");
    }

    #[test]
    fn those_that_found_no_room_say_nothing_of_the_others() {
        let (mut worth, begin) = (Worth::default(), Instant::now());
        let mut see = |opened, assigned, unopened| {
            worth.see(Begun { opened, assigned, unopened }, begin + Duration::from_secs(1))
        };
        assert!(!see(1000, 1200, 1000), "of a thousand two hundred needed one");
        assert!(!see(2000, 1300, 2000), "others found no room, and have not come back yet");
        assert!(see(3000, 3300, 3000));
    }
}
