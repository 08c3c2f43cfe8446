//! Bytes outside of the arena that count against its limit.
//!
//! For bytes outside, ranges of the same size in the arena are taken out of use, and their pages go back to the kernel.
//! So the pages of the arena and the bytes outside together are never more than the limit, whatever their proportion
//! was before.

use crate::ranges::Taken;
use crate::{Arena, Space, UNIT};

/// The charged bytes, and the ranges that stand for them.
#[derive(Default)]
pub(crate) struct Charges {
    bytes: usize,
    /// The bytes of these.
    covered: usize,
    ranges: Vec<(Taken, usize)>,
}

/// Bytes of one of these ranges. They are large, because each costs the kernel's work; the small ones are for an arena
/// whose free ranges are small.
const RANGES: [usize; 2] = [64 << 10, 16 << 10];

impl Charges {
    pub(crate) fn ranges(&self) -> usize {
        self.ranges.len()
    }
}

impl Arena {
    /// Counts bytes outside of the arena against its limit, until [`Arena::uncharge`]. False: there is no room for them, and they
    /// are not counted.
    #[must_use]
    pub fn charge(&self, bytes: usize) -> bool {
        let mut space = self.shared.space();
        let all = space.charges.bytes.saturating_add(bytes);
        let before = space.charges.ranges();
        while all > space.charges.covered {
            let taken = RANGES.iter().find_map(|len| Some((space.take(*len)?, *len)));
            let Some((range, len)) = taken else {
                while space.charges.ranges() > before {
                    space.give_last();
                }
                return false;
            };
            self.shared.mapping.clear(range.start as usize * UNIT, len);
            space.charges.covered += len;
            space.charges.ranges.push((range, len));
        }
        space.charges.bytes = all;
        true
    }

    /// Counts bytes for which there is no room, and which are there all the same. Others find no room meanwhile.
    pub fn charge_anyway(&self, bytes: usize) {
        self.shared.space().charges.bytes += bytes;
    }

    /// Ends the charge of these bytes.
    pub fn uncharge(&self, bytes: usize) {
        let mut space = self.shared.space();
        debug_assert!(space.charges.bytes >= bytes);
        space.charges.bytes = space.charges.bytes.saturating_sub(bytes);
        // A spare range stays locked, so that bytes that come and go do not cost the kernel's work each time.
        let [spare, ..] = RANGES;
        let is_more = |charges: &Charges| {
            let last = charges.ranges.last().map_or(usize::MAX, |(_, len)| *len);
            charges.covered >= charges.bytes.saturating_add(last).saturating_add(spare)
        };
        let mut is_less = false;
        while is_more(&space.charges) {
            space.give_last();
            is_less = true;
        }
        drop(space);
        if is_less {
            self.shared.freed.notify_all();
        }
    }
}

impl Space {
    /// Gives back the range that was taken last.
    fn give_last(&mut self) {
        if let Some((range, len)) = self.charges.ranges.pop() {
            self.charges.covered -= len;
            self.give_back(range, len);
        }
    }
}
