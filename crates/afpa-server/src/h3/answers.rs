//! Memory of small answers, which the transport keeps until the client has acknowledged them.
//!
//! An allocator cuts a piece for each answer out of a larger one, and joins it to that again; with thousands of answers under
//! way the pieces lie all over its memory. So those that a connection makes together lie one behind the other in a room, and a
//! room is used again when the clients have all of it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;

use bytes::{Bytes, BytesMut};

/// The answers of a worker's connections.
#[derive(Default)]
pub(crate) struct Answers(RefCell<Rooms>);

#[derive(Default)]
struct Rooms {
    /// Several answers are being made.
    is_together: bool,
    /// The room in which they are put.
    open: Option<BytesMut>,
    /// The others, in the order in which they were left: some of their answers may still be under way.
    left: VecDeque<BytesMut>,
    /// For the next answer that is put together.
    spare: Vec<u8>,
}

/// Bytes of a room.
const ROOM: usize = 16 * 1024;

/// Rooms of a worker at most: 4 MiB. A client that acknowledges all but one answer of a room holds the whole of it, so further
/// answers have memory of their own then, which a connection's own bound counts.
const ROOMS: usize = 256;

/// Rooms that a worker keeps while there is little to do.
const SPARES: usize = 16;

/// Rooms that are asked whether clients have all of them, for each one that is needed.
const LOOKS: usize = 2;

/// The longest answer that is put in a room.
const SMALL: usize = ROOM / 4;

impl Answers {
    /// So many requests are about to be answered, up to [`apart`](Self::apart).
    pub(super) fn together(&self, count: usize) {
        self.0.borrow_mut().is_together = count > 1;
    }

    /// Later answers are made by themselves: a connection shares no room with another one.
    pub(super) fn apart(&self) {
        let mut rooms = self.0.borrow_mut();
        rooms.is_together = false;
        let open = rooms.open.take();
        rooms.left.extend(open);
    }

    /// An empty vector for an answer of so many bytes. [`keep`](Self::keep) takes it.
    pub(super) fn begin(&self, length: usize) -> Vec<u8> {
        let mut rooms = self.0.borrow_mut();
        if !rooms.is_together || length > SMALL {
            return Vec::with_capacity(length);
        }
        let mut spare = std::mem::take(&mut rooms.spare);
        spare.reserve(SMALL);
        spare
    }

    /// An answer, to be sent.
    pub(super) fn keep(&self, mut bytes: Vec<u8>) -> Bytes {
        let mut rooms = self.0.borrow_mut();
        let kept = match rooms.for_answer(bytes.len()) {
            Some(room) => {
                room.extend_from_slice(&bytes);
                room.split().freeze()
            }
            // One that is much shorter than its vector holds no more than its length, either.
            None if bytes.len() < bytes.capacity() / 2 => Bytes::copy_from_slice(&bytes),
            None => return bytes.into(),
        };
        if bytes.capacity() <= 2 * SMALL {
            bytes.clear();
            rooms.spare = bytes;
        }
        kept
    }

    /// There is nothing to do for now: gives back what a busier time has left, by and by.
    pub(super) fn tidy(&self) {
        let mut rooms = self.0.borrow_mut();
        if rooms.left.len() > SPARES
            && let Some(room) = rooms.next_free(1)
        {
            drop(room);
        }
    }

    /// Gives back all of it.
    pub(super) fn shrink(&self) {
        *self.0.borrow_mut() = Rooms::default();
    }
}

impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answers")
    }
}

impl Rooms {
    /// A room with so many bytes left; `None`: the answer has memory of its own.
    fn for_answer(&mut self, length: usize) -> Option<&mut BytesMut> {
        if !self.is_together || length > SMALL {
            return None;
        }
        if self.open.as_ref().is_none_or(|open| open.capacity() < length) {
            let next = self.next_free(LOOKS).or_else(|| self.another());
            let full = std::mem::replace(&mut self.open, next);
            self.left.extend(full);
        }
        self.open.as_mut()
    }

    /// A room of which clients have everything, among the oldest ones.
    fn next_free(&mut self, looks: usize) -> Option<BytesMut> {
        for _ in 0..looks {
            let mut room = self.left.pop_front()?;
            if room.try_reclaim(ROOM) {
                return Some(room);
            }
            self.left.push_back(room);
        }
        None
    }

    fn another(&self) -> Option<BytesMut> {
        let count = self.left.len() + usize::from(self.open.is_some());
        (count < ROOMS).then(|| BytesMut::with_capacity(ROOM))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(answers: &Answers, length: usize, byte: u8) -> Bytes {
        let mut bytes = answers.begin(length);
        assert!(bytes.is_empty() && bytes.capacity() >= length, "{length}");
        bytes.resize(length, byte);
        answers.keep(bytes)
    }

    fn left(answers: &Answers) -> usize {
        answers.0.borrow().left.len()
    }

    #[test]
    fn answers_that_are_made_together_lie_one_behind_the_other() {
        let answers = Answers::default();
        answers.together(3);
        let kept: Vec<_> =
            [600, 0, SMALL, 700].map(|length| put(&answers, length, length as u8)).into();
        answers.apart();
        let ends: Vec<_> = kept.iter().map(|bytes| bytes.as_ptr_range()).collect();
        assert!(ends.windows(2).all(|two| two[0].end == two[1].start));
        for (bytes, length) in kept.iter().zip([600, 0, SMALL, 700]) {
            assert_eq!(*bytes, vec![length as u8; length]);
        }
        let (of_another, long) = (put(&answers, 600, 1), {
            answers.together(2);
            put(&answers, SMALL + 1, 2)
        });
        assert_eq!((of_another.len(), long.len()), (600, SMALL + 1));
        answers.apart();
        assert_eq!(left(&answers), 1, "neither has a room");
    }

    #[test]
    fn a_room_is_used_again_when_all_of_it_was_let_go() {
        let answers = Answers::default();
        let round = || {
            answers.together(9);
            let kept: Vec<_> = (0..9).map(|at| put(&answers, 1000, at)).collect();
            answers.apart();
            kept
        };
        let first = round();
        let place = first[0].as_ptr();
        let second = round();
        assert_eq!(left(&answers), 2);
        let mut first = first.into_iter();
        let last = first.next_back().expect("nine");
        drop(first);
        let third = round();
        assert_eq!(left(&answers), 3, "the first room is held by one answer");
        assert_eq!(last, vec![8; 1000]);
        drop(last);
        // Two are looked at each time.
        let (fourth, fifth) = (round(), round());
        assert!([&fourth, &fifth].iter().any(|kept| kept[0].as_ptr() == place));
        for kept in [&second, &third, &fourth, &fifth] {
            assert!(kept.iter().enumerate().all(|(at, bytes)| *bytes == vec![at as u8; 1000]));
        }
    }

    #[test]
    fn what_is_held_has_a_bound_and_goes_when_little_is_done() {
        let answers = Answers::default();
        answers.together(9);
        let each_room = ROOM / SMALL;
        let kept: Vec<_> = (0..(ROOMS + 9) * each_room).map(|_| put(&answers, SMALL, 3)).collect();
        answers.apart();
        assert!(left(&answers) <= ROOMS, "{}", left(&answers));
        assert!(kept.iter().all(|bytes| *bytes == vec![3; SMALL]));
        drop(kept);
        (0..ROOMS).for_each(|_| answers.tidy());
        assert_eq!(left(&answers), SPARES);
        answers.shrink();
        assert_eq!(left(&answers), 0);
    }
}
