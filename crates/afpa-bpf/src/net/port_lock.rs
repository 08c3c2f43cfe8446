//! A lock that ends with its process: each port of a network namespace has one fast path at most.
//!
//! The lock is an abstract unix socket: these belong to the network namespace, and the kernel gives their names
//! free when the process is gone, however it ended.

use std::io;
use std::os::fd::OwnedFd;

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};
use rustix::process::geteuid;

use crate::found::Process;

/// The lock of one port.
#[derive(Debug)]
pub(crate) struct PortLock {
    _socket: OwnedFd,
}

/// The result of an attempt.
pub(crate) enum Attempt {
    /// It is ours.
    Taken(PortLock),
    /// Another process has it; None: which one could not be found out.
    Held(Option<Process>),
    /// A process of another user has the name, perhaps only to keep others from having a fast path. Whether it has
    /// one itself must be found out in another way.
    Squatted,
}

impl PortLock {
    /// Tries to take the lock of a port in the calling thread's network namespace.
    ///
    /// # Errors
    /// When sockets cannot be had.
    pub(crate) fn attempt(port: u16) -> io::Result<Attempt> {
        attempt(&format!("afpa/fast-path/{port}"))
    }
}

fn attempt(name: &str) -> io::Result<Attempt> {
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
    let socket = socket()?;
    match bind(&socket, &address) {
        Ok(()) => {
            // A process that is refused the lock connects, to learn the owner from the socket's credentials. No
            // connection is ever accepted.
            listen(&socket, 64)?;
            Ok(Attempt::Taken(PortLock { _socket: socket }))
        }
        Err(rustix::io::Errno::ADDRINUSE) => Ok(holder(&address)),
        Err(error) => Err(error.into()),
    }
}

fn holder(address: &SocketAddrUnix) -> Attempt {
    let credentials = || {
        let socket = socket().ok()?;
        connect(&socket, address).ok()?;
        getsockopt(&socket, PeerCredentials).ok()
    };
    let Some(credentials) = credentials() else { return Attempt::Held(None) };
    let legitimate = [0, geteuid().as_raw()].contains(&credentials.uid());
    // 0: it is in another process namespace.
    let id = credentials.pid().unsigned_abs();
    match legitimate {
        true => Attempt::Held((id != 0).then(|| Process::new(id))),
        false => Attempt::Squatted,
    }
}

fn socket() -> io::Result<OwnedFd> {
    // Without waiting: where many were refused, the queue may be full.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(test: &str) -> String {
        format!("afpa/test/{}/{test}", std::process::id())
    }

    fn take(name: &str) -> PortLock {
        match attempt(name).unwrap() {
            Attempt::Taken(lock) => lock,
            _ => panic!("it is held"),
        }
    }

    #[test]
    fn the_second_one_is_told_who_the_first_is() {
        let name = name("second");
        let lock = take(&name);
        for _ in 0..3 {
            match attempt(&name).unwrap() {
                Attempt::Held(Some(process)) => assert_eq!(process.id, std::process::id()),
                Attempt::Held(None) => {} // its queue is full
                _ => panic!("it was taken twice"),
            }
        }
        drop(lock);
        take(&name);
    }

    #[test]
    fn of_many_at_once_one_has_it() {
        let name = name("many");
        let barrier = std::sync::Barrier::new(8);
        let taken: Vec<PortLock> = std::thread::scope(|scope| {
            let attempts: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        barrier.wait();
                        attempt(&name).unwrap()
                    })
                })
                .collect();
            let attempts = attempts.into_iter().map(|attempt| attempt.join().unwrap());
            attempts
                .filter_map(|attempt| match attempt {
                    Attempt::Taken(lock) => Some(lock),
                    _ => None,
                })
                .collect()
        });
        assert_eq!(taken.len(), 1);
    }
}
