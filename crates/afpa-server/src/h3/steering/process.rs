//! The way to a worker of another process: a socket pair of which the worker has one end. The other one goes from each
//! process to the next, until nobody needs it.
//!
//! The end that is handed on has a message in its queue, which each process looks at and none takes: the [`Label`].

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use afpa_tls::quic::{SECRET, Secret};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};

use super::super::socket::Arrived;
use super::id::{GENERATIONS, IdKey, LENGTH, Spot};
use super::wire;

/// Which worker's it is, and the secret of its ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Label {
    pub(super) spot: Spot,
    pub(super) secret: Secret,
}

/// Of this form of labels and messages.
const VERSION: u8 = 1;
const LABEL: usize = 4 + SECRET;

/// A worker of a process before.
#[derive(Debug)]
pub(super) struct Before {
    pub(super) label: Label,
    pub(super) key: IdKey,
    pub(super) way: OwnedFd,
}

/// The end for other processes, and the worker's end.
pub(super) fn way(label: &Label) -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let (theirs, own) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    let [low, high] = label.spot.worker.to_be_bytes();
    let mut said = vec![VERSION, label.spot.generation, low, high];
    said.extend_from_slice(label.secret.bytes());
    send(&own, &said, SendFlags::NOSIGNAL)?;
    Ok((theirs, own))
}

/// A number that no process has that still lives.
pub(super) fn free_generation(before: &[Before]) -> Option<u8> {
    let latest = before.last().map_or(0, |last| last.label.spot.generation);
    let is_taken = |number: u8| before.iter().any(|before| before.label.spot.generation == number);
    (1..=GENERATIONS).map(|step| (latest + step) % GENERATIONS).find(|number| !is_taken(*number))
}

impl Before {
    /// `None`: it is no such way, or the process has ended.
    pub(super) fn of(way: OwnedFd) -> Option<Self> {
        let mut said = [0; LABEL + 1];
        let (n, _) = recv(&way, &mut said, RecvFlags::PEEK | RecvFlags::DONTWAIT).ok()?;
        let [VERSION, generation, high, low, secret @ ..] = said.get(..n)? else { return None };
        let secret = Secret::of(secret.try_into().ok()?);
        let spot = Spot {
            generation: (*generation < GENERATIONS).then_some(*generation)?,
            worker: u16::from_be_bytes([*high, *low]),
        };
        let key = IdKey(secret.keys().ids);
        let before = Self { label: Label { spot, secret }, key, way };
        before.lives().then_some(before)
    }

    /// Whether the id is one of its worker.
    pub(super) fn has(&self, id: [u8; LENGTH]) -> bool {
        self.key.read(id) == Some(self.label.spot)
    }

    /// Whether the worker's end is open: then it takes a message that says nothing.
    pub(super) fn lives(&self) -> bool {
        !is_gone(send(&self.way, &[0], SendFlags::NOSIGNAL | SendFlags::DONTWAIT).map(drop))
    }

    /// Passes a datagram on. If the worker is behind, it is lost. False: the worker has ended.
    pub(super) fn send(&self, socket: SocketAddr, arrived: Arrived, bytes: &[u8]) -> bool {
        !is_gone(wire::send(&self.way, socket, arrived, bytes))
    }
}

fn is_gone(sent: rustix::io::Result<()>) -> bool {
    matches!(sent, Err(rustix::io::Errno::PIPE | rustix::io::Errno::CONNRESET))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(generation: u8, worker: u16) -> Label {
        Label { spot: Spot { generation, worker }, secret: Secret::of([5; SECRET]) }
    }

    #[test]
    fn a_label_can_be_read_by_one_process_after_another() {
        let (theirs, own) = way(&label(3, 300)).expect("made");
        let again = theirs.try_clone().expect("cloned");
        let first = Before::of(theirs).expect("a way");
        assert_eq!(first.label, label(3, 300));
        drop(first);
        let second = Before::of(again).expect("a way still");
        assert_eq!(second.label, label(3, 300));
        assert!(second.lives());
        drop(own);
        assert!(!second.lives());
        let again = second.way.try_clone().expect("cloned");
        assert!(Before::of(again).is_none());
    }

    #[test]
    fn a_new_process_has_a_number_that_is_free() {
        let before = |numbers: &[u8]| {
            let mut ends = Vec::new();
            let of = |number: &u8| {
                let (theirs, own) = way(&label(*number, 0)).expect("made");
                ends.push(own);
                Before::of(theirs).expect("a way")
            };
            let all: Vec<Before> = numbers.iter().map(of).collect();
            free_generation(&all)
        };
        assert_eq!(before(&[]), Some(1));
        assert_eq!(before(&[1]), Some(2));
        assert_eq!(before(&[14, 15]), Some(0));
        assert_eq!(before(&[0, 1, 15]), Some(2));
        assert_eq!(before(&(0..16).collect::<Vec<_>>()), None);
    }
}
