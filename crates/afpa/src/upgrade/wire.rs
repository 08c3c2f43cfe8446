//! Orders to the starting process: a byte each, some with descriptors.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recv, recvmsg, sendmsg,
};

/// An order.
#[derive(Debug)]
pub(super) enum Order {
    /// Descriptors for the next process, behind those before.
    Take(Vec<OwnedFd>),
    /// Start it.
    Start,
    /// End it: it is not wanted any more.
    End,
}

/// Descriptors in one message: the kernel takes 253 (`SCM_MAX_FD`).
pub(super) const MOST: usize = 64;

const TAKE: u8 = b'T';
const START: u8 = b'S';
const END: u8 = b'E';

pub(super) fn send_descriptors(to: &UnixStream, all: &[BorrowedFd<'_>]) -> io::Result<()> {
    for some in all.chunks(MOST) {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(some));
        sendmsg(to, &[IoSlice::new(&[TAKE])], &mut ancillary, SendFlags::NOSIGNAL)?;
    }
    Ok(())
}

pub(super) fn send_start(to: &UnixStream) -> io::Result<()> {
    send(to, START)
}

pub(super) fn send_end(to: &UnixStream) -> io::Result<()> {
    send(to, END)
}

/// Reads what is there of the other side's news.
pub(super) fn drop_news(from: &UnixStream) -> io::Result<()> {
    loop {
        match recv(from, &mut [0; 512], RecvFlags::DONTWAIT) {
            Ok((_, 0)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(error) if error == rustix::io::Errno::AGAIN => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

fn send(to: &UnixStream, order: u8) -> io::Result<()> {
    let mut nothing = SendAncillaryBuffer::default();
    sendmsg(to, &[IoSlice::new(&[order])], &mut nothing, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// The next order; `None`: the other side has gone. Descriptors stay open in programs that are started: they are for one.
pub(super) fn receive(from: &UnixStream) -> io::Result<Option<Order>> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut room = [IoSliceMut::new(&mut byte)];
    let message = recvmsg(from, &mut room, &mut ancillary, RecvFlags::empty())?;
    let descriptors = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let descriptors: Vec<OwnedFd> = descriptors.flatten().collect();
    if message.bytes == 0 {
        return Ok(None);
    }
    match byte {
        [TAKE] => Ok(Some(Order::Take(descriptors))),
        [START] => Ok(Some(Order::Start)),
        [END] => Ok(Some(Order::End)),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn orders_and_more_descriptors_than_one_message_takes_arrive() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let sockets: Vec<UnixStream> = (0..MOST + 1).map(|_| theirs.try_clone().unwrap()).collect();
        let all: Vec<_> = sockets.iter().map(AsFd::as_fd).collect();
        send_descriptors(&ours, &all).unwrap();
        send_start(&ours).unwrap();
        send_end(&ours).unwrap();
        drop(ours);
        let count = |order| match order {
            Order::Take(taken) => taken.len(),
            _ => 0,
        };
        assert_eq!(receive(&theirs).unwrap().map(count), Some(MOST));
        assert_eq!(receive(&theirs).unwrap().map(count), Some(1));
        assert!(matches!(receive(&theirs).unwrap(), Some(Order::Start)));
        assert!(matches!(receive(&theirs).unwrap(), Some(Order::End)));
        assert!(receive(&theirs).unwrap().is_none());
    }
}
