//! Files over TLS: they are read into the records that carry them, where those are sealed where they lie.

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::task::{Context, Poll};

use afpa_tls::machine::{HEAD, RECORD, TAIL};

use super::{BURST, Tls};
use crate::transport::Transport;

/// Room for the records of a burst, or for their content.
pub(super) const ROOM: usize = BURST / RECORD * (HEAD + RECORD + TAIL);

impl<T: Transport> Tls<T> {
    /// Sends bursts of a file until the client does not take one at once. Returns how much was encrypted.
    pub(super) fn send_file(
        &mut self,
        cx: &mut Context<'_>,
        file: &File,
        range: Range<u64>,
        room: &mut [u8],
    ) -> io::Result<usize> {
        let mut at = range.start;
        while at < range.end && (at == range.start || !self.slow) {
            let most = (range.end - at).min(self.burst() as u64) as usize;
            // The pages are in memory already: the caller has seen to that.
            let n = match self.can_seal(most.div_ceil(RECORD))? {
                true => self.send_sealed(cx, file, at..at + most as u64, room)?,
                false => {
                    let n = file.read_at(room.get_mut(..most).unwrap_or_default(), at)?;
                    match n {
                        0 => 0,
                        n => self.send_burst(cx, room.get(..n).unwrap_or_default(), true)?,
                    }
                }
            };
            if n == 0 {
                break;
            }
            at += n as u64;
        }
        Ok((at - range.start) as usize)
    }

    /// Whether so many records can be sealed where they lie.
    fn can_seal(&mut self, records: usize) -> io::Result<bool> {
        if self.closed {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let Self { begun, unsent, .. } = self;
        let seals = begun.machine().and_then(|machine| machine.seals(records, unsent));
        // Output that has to go before the records goes with the next burst that is copied.
        Ok(seals.map_err(|_| io::ErrorKind::NotConnected)? && self.unsent.is_empty())
    }

    /// Reads a burst of a file into records, and sends what the socket takes of them. Returns how much was read.
    fn send_sealed(
        &mut self,
        cx: &mut Context<'_>,
        file: &File,
        range: Range<u64>,
        room: &mut [u8],
    ) -> io::Result<usize> {
        let length = (range.end - range.start) as usize;
        let n = read_contents(file, range.start, room, length)?;
        let machine = self.begun.machine().map_err(|_| io::ErrorKind::NotConnected)?;
        let mut end = 0;
        for content in records_of(n) {
            let record = room.get_mut(end..end + HEAD + content + TAIL).unwrap_or_default();
            machine.seal(record).map_err(|_| io::ErrorKind::NotConnected)?;
            end += record.len();
        }
        let burst = room.get(..end).unwrap_or_default();
        let sent = match self.below.poll_send(cx, burst, true) {
            Poll::Ready(sent) => sent?,
            Poll::Pending => 0,
        };
        self.slow = sent < end;
        if self.slow {
            (self.unsent, self.sent) = (burst.get(sent..).unwrap_or_default().to_vec(), 0);
        }
        Ok(n)
    }
}

/// The lengths of the contents of records that carry this much together.
fn records_of(length: usize) -> impl Iterator<Item = usize> {
    (0..length).step_by(RECORD).map(move |at| (length - at).min(RECORD))
}

/// Reads from a file into the places of contents of records, of which all but the last are full.
fn read_contents(file: &File, at: u64, room: &mut [u8], length: usize) -> io::Result<usize> {
    let mut places = room
        .chunks_mut(HEAD + RECORD + TAIL)
        .zip(records_of(length))
        .filter_map(|(place, content)| place.get_mut(HEAD..HEAD + content));
    match (places.next(), places.next()) {
        (Some(first), Some(second)) => {
            let mut both = [IoSliceMut::new(first), IoSliceMut::new(second)];
            Ok(rustix::io::preadv(file, &mut both, at)?)
        }
        (Some(only), None) => file.read_at(only, at),
        _ => Ok(0),
    }
}
