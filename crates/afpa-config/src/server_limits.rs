//! `largest_content` and `first_byte`: limits of requests to servers that a place has instead of their group's.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::reader::Section;
use crate::units::GIB;

/// Limits of requests to servers; `None`: as outside, and in the end as the server group says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerLimits {
    /// Bytes of a request's content; beyond it 413.
    pub largest_content: Option<u64>,
    /// From the end of the request to the first byte of the response; beyond it 504.
    pub first_byte: Option<Duration>,
}

/// The shortest and the longest time-out.
const PATIENCE: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(3600);

impl ServerLimits {
    /// `word` stands for the value outside.
    pub(crate) fn read(s: &mut Section<'_, '_>, word: &'static str) -> Self {
        let content = s.size_or("largest_content", word, 0..=1024 * GIB);
        Self {
            largest_content: content.map(|bytes| bytes as u64),
            first_byte: s.duration_or("first_byte", word, PATIENCE),
        }
    }

    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Those of a place, with those around it where it says nothing.
    pub(crate) fn within(self, outer: Self) -> Self {
        Self {
            largest_content: self.largest_content.or(outer.largest_content),
            first_byte: self.first_byte.or(outer.first_byte),
        }
    }
}
