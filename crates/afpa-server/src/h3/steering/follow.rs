//! The task of a worker that takes the datagrams which others pass on.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net;
use std::rc::Rc;

use tokio::net::UnixDatagram;
use tokio::sync::mpsc;

use super::inbox::Datagram;
use super::{WorkerSteering, wire};

/// Delivers the datagrams that other workers and the next process pass on, until the worker ends.
pub(super) async fn follow(
    steering: Rc<WorkerSteering>,
    mut mailbox: mpsc::Receiver<Datagram>,
    inbound: OwnedFd,
) {
    // Its messages have bounds as those of datagrams have; only it has an end as well.
    let mut inbound = UnixDatagram::from_std(net::UnixDatagram::from(inbound))
        .inspect_err(|error| {
            tracing::error!(%error, "connections of HTTP/3 will not outlive an upgrade");
        })
        .ok();
    let mut room = Vec::new();
    loop {
        tokio::select! {
            passed = mailbox.recv() => match passed {
                Some(datagram) => steering.deliver(datagram),
                None => return,
            },
            lives = receive(inbound.as_ref(), &mut room, &steering) => if !lives {
                inbound = None;
                steering.come_back();
            },
        }
    }
}

/// Delivers a datagram that the next process passes on. False: that one has ended, and all later ones.
async fn receive(
    from: Option<&UnixDatagram>,
    room: &mut Vec<u8>,
    steering: &WorkerSteering,
) -> bool {
    let Some(from) = from else { return std::future::pending().await };
    if from.readable().await.is_err() {
        return false;
    }
    // Only now: most workers never need it.
    room.resize(wire::LONGEST, 0);
    match from.try_recv(room) {
        Ok(0) => false,
        Ok(n) => {
            if let Some(datagram) = room.get(..n).and_then(wire::read) {
                steering.deliver(datagram);
            }
            true
        }
        Err(error) => {
            matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
        }
    }
}
