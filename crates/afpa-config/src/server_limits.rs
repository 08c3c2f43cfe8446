//! Limits of requests to servers that a place has instead of their group's: the length of content, time-outs.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::reader::Section;
use crate::units::GIB;

/// Limits of requests to servers; `None`: as outside, and in the end as the server group says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerLimits {
    /// Bytes of a request's content; beyond it 413.
    pub largest_content: Option<u64>,
    /// For a connection to a server; beyond it 504.
    pub connect: Option<Duration>,
    /// From the end of the request to the first byte of the response; beyond it 504.
    pub first_byte: Option<Duration>,
    /// Between two arrivals of a response, and between two bytes that the server takes.
    pub idle: Option<Duration>,
    /// For the whole exchange; zero: as long as bytes move.
    pub total: Option<Duration>,
    /// In a tunnel, without a byte in either direction.
    pub tunnel_idle: Option<Duration>,
}

/// The shortest and the longest time-out.
const PATIENCE: RangeInclusive<Duration> = from(10)..=Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

const fn from(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

impl ServerLimits {
    /// `word` stands for the value outside.
    pub(crate) fn read(s: &mut Section<'_, '_>, word: &'static str) -> Self {
        let content = s.size_or("largest_content", word, 0..=1024 * GIB);
        Self {
            largest_content: content.map(|bytes| bytes as u64),
            connect: s.duration_or("connect", word, from(10)..=Duration::from_secs(600)),
            first_byte: s.duration_or("first_byte", word, PATIENCE),
            idle: s.duration_or("idle", word, from(10)..=DAY),
            total: s.duration_or("total", word, Duration::ZERO..=DAY),
            tunnel_idle: s.duration_or("tunnel_idle", word, from(10)..=DAY),
        }
    }

    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The shortest time-out.
    pub(crate) fn shortest(self) -> Option<Duration> {
        let Self { connect, first_byte, idle, total, tunnel_idle, .. } = self;
        let total = total.filter(|total| !total.is_zero());
        [connect, first_byte, idle, total, tunnel_idle].into_iter().flatten().min()
    }

    /// The limits of a place, with the limits around it where it says nothing.
    pub(crate) fn within(self, outer: Self) -> Self {
        Self {
            largest_content: self.largest_content.or(outer.largest_content),
            connect: self.connect.or(outer.connect),
            first_byte: self.first_byte.or(outer.first_byte),
            idle: self.idle.or(outer.idle),
            total: self.total.or(outer.total),
            tunnel_idle: self.tunnel_idle.or(outer.tunnel_idle),
        }
    }
}
