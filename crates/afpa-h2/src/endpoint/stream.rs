//! The state of a connection's streams that both endpoints keep.

use crate::frame::{ErrorCode, MAX_WINDOW};

/// The number of a stream: odd, because clients open them.
pub type StreamId = u32;

/// A stream that is open, in one or both directions. `T` is the state that only one of the endpoints keeps.
#[derive(Debug)]
pub(crate) struct Stream<T> {
    pub(crate) id: StreamId,
    /// The peer may still send on it.
    pub(crate) peer_open: bool,
    /// We may still send on it.
    pub(crate) we_open: bool,
    /// The head of the peer's message has come, and content may.
    pub(crate) headed: bool,
    /// Content that we may send; below 0 after the peer has made its windows smaller (section 6.9.2).
    pub(crate) send_window: i64,
    /// Content that the peer may send.
    pub(crate) receive: Window,
    /// Content that has arrived and was not read by the stream's owner.
    pub(crate) unread: u32,
    /// Content that is to come, where that is known.
    pub(crate) content_left: Option<u64>,
    pub(crate) own: T,
}

impl<T> Stream<T> {
    /// Whether both directions have ended.
    pub(crate) fn has_ended(&self) -> bool {
        !self.peer_open && !self.we_open
    }

    /// DATA of this length, padding included, has come with so many bytes of content.
    pub(super) fn take(&mut self, length: usize, bytes: u64, end: bool) -> Result<(), ErrorCode> {
        if !self.peer_open {
            return Err(ErrorCode::StreamClosed);
        }
        if !self.headed {
            return Err(ErrorCode::Protocol);
        }
        if !self.receive.take(length) {
            return Err(ErrorCode::FlowControl);
        }
        self.count_content(bytes, end)
    }

    /// Content-Length and the content have to agree (section 8.1.1).
    fn count_content(&mut self, bytes: u64, end: bool) -> Result<(), ErrorCode> {
        let Some(before) = self.content_left else { return Ok(()) };
        let left = before.checked_sub(bytes).filter(|left| *left == 0 || !end);
        self.content_left = Some(left.ok_or(ErrorCode::Protocol)?);
        Ok(())
    }

    /// The peer lets us send more on it.
    pub(crate) fn grow(&mut self, increment: i64) -> Result<(), ErrorCode> {
        grow(&mut self.send_window, increment)
    }

    /// Whether all content that was announced has come.
    pub(crate) fn is_whole(&self) -> bool {
        self.content_left.is_none_or(|left| left == 0)
    }
}

/// The open streams, in the order of their numbers. There are not many, and the newest is looked for most often.
#[derive(Debug)]
pub(crate) struct Streams<T>(Vec<Stream<T>>);

impl<T> Default for Streams<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Streams<T> {
    fn place(&self, id: StreamId) -> Result<usize, usize> {
        match self.0.last() {
            Some(newest) if newest.id == id => Ok(self.0.len() - 1),
            Some(newest) if newest.id < id => Err(self.0.len()),
            _ => self.0.binary_search_by_key(&id, |stream| stream.id),
        }
    }

    pub(crate) fn get(&self, id: StreamId) -> Option<&Stream<T>> {
        self.0.get(self.place(id).ok()?)
    }

    pub(crate) fn get_mut(&mut self, id: StreamId) -> Option<&mut Stream<T>> {
        let place = self.place(id).ok()?;
        self.0.get_mut(place)
    }

    /// Adds the newest stream.
    pub(crate) fn push(&mut self, stream: Stream<T>) {
        debug_assert!(self.place(stream.id) == Err(self.0.len()), "numbers grow");
        self.0.push(stream);
    }

    pub(crate) fn remove(&mut self, id: StreamId) -> Option<Stream<T>> {
        let place = self.place(id).ok()?;
        Some(self.0.remove(place))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Stream<T>> {
        self.0.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream<T>> {
        self.0.iter_mut()
    }
}

/// A window that we have given to the peer (section 6.9).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// The size that it grows to.
    most: i64,
    size: i64,
    /// Content that the peer may still send.
    left: i64,
    /// Content that was read since the last WINDOW_UPDATE.
    read: i64,
}

impl Window {
    pub(crate) fn new(size: i64) -> Self {
        Self::growing(size, size)
    }

    /// A window that doubles, up to `most`, whenever its content was read: a stream that nobody reads holds little.
    pub(crate) fn growing(size: i64, most: i64) -> Self {
        Self { most, size, left: size, read: 0 }
    }

    /// Content has arrived; false if it was more than the window allowed.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        self.left -= bytes as i64;
        self.left >= 0
    }

    /// Content was read. Returns by how much the window grows, once that is worth a frame.
    pub(crate) fn give(&mut self, bytes: u32) -> Option<u32> {
        self.read += i64::from(bytes);
        if self.read == 0 || self.read < self.size / 2 {
            return None;
        }
        let more = (2 * self.size).min(self.most) - self.size;
        let increment = u32::try_from(self.read + more).ok()?;
        self.left += self.read + more;
        (self.size, self.read) = (self.size + more, 0);
        Some(increment)
    }
}

/// The streams that ended last, and whether we reset them: that decides the meaning of a late frame (section 5.1,
/// *closed*).
#[derive(Debug)]
pub(crate) struct Ended {
    streams: [(StreamId, bool); ENDED],
    next: usize,
}

const ENDED: usize = 64;

impl Default for Ended {
    fn default() -> Self {
        Self { streams: [(0, false); ENDED], next: 0 }
    }
}

impl Ended {
    /// `by_us`: we have reset it, and the peer may not know that yet.
    pub(crate) fn push(&mut self, id: StreamId, by_us: bool) {
        if let Some(known) = self.streams.iter_mut().find(|(ended, _)| *ended == id) {
            known.1 = by_us;
            return;
        }
        if let Some(place) = self.streams.get_mut(self.next) {
            *place = (id, by_us);
        }
        self.next = (self.next + 1) % ENDED;
    }

    /// Whether we have reset it; `None`: it is not among the last.
    pub(crate) fn by_us(&self, id: StreamId) -> Option<bool> {
        self.streams.iter().find(|(ended, _)| *ended == id).map(|(_, by_us)| *by_us)
    }
}

/// A window grows (section 6.9.1).
pub(super) fn grow(window: &mut i64, increment: i64) -> Result<(), ErrorCode> {
    *window += increment;
    match (increment, *window) {
        (0, _) => Err(ErrorCode::Protocol),
        (_, window) if window > MAX_WINDOW => Err(ErrorCode::FlowControl),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_grows_by_halves() {
        let mut window = Window::new(100);
        assert!(window.take(60));
        assert_eq!(window.give(49), None);
        assert_eq!(window.give(11), Some(60));
        assert!(window.take(100) && !window.take(1));
        assert_eq!(Window::new(1).give(0), None, "nothing is no increment");
    }

    #[test]
    fn a_window_grows_with_what_is_read_and_no_further() {
        let mut window = Window::growing(100, 300);
        assert!(window.take(100) && window.give(49).is_none());
        assert_eq!(window.give(51), Some(200), "what was read, and as much again");
        assert!(window.take(200) && !window.take(1));
        let mut window = Window::growing(200, 300);
        assert!(window.take(100));
        assert_eq!(window.give(100), Some(200));
        assert!(window.take(150));
        assert_eq!(window.give(150), Some(150), "300 are the most");
        assert!(window.take(300) && !window.take(1));
    }

    #[test]
    fn the_last_ended_streams_are_known() {
        let mut ended = Ended::default();
        ended.push(1, true);
        (0..ENDED as u32 - 1).for_each(|at| ended.push(3 + 2 * at, false));
        assert_eq!((ended.by_us(1), ended.by_us(3)), (Some(true), Some(false)));
        ended.push(999, false);
        assert_eq!(ended.by_us(1), None);
    }
}
