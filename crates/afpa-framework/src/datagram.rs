//! Protocols whose requests are datagrams: their state functions, and the walk through them.
//!
//! A datagram is a whole request, and its answer is a whole datagram. So there is no connection data, nothing is
//! incomplete, and *derive deferred response* is the only miss: the datagram is left to others, or to nobody.

use std::net::SocketAddr;

use crate::clock::Now;
use crate::module::Protocol;
use crate::state::{Event as E, State as S};
use crate::table::Table;

/// A request, and where it came from.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'d> {
    /// Its sender, as it says. Anybody can send in the name of others.
    pub client: SocketAddr,
    /// It came on a connection, so that its sender is the one that it says.
    pub is_connected: bool,
    /// Its bytes.
    pub bytes: &'d [u8],
}

/// The result of *derive request*.
#[derive(Debug)]
pub enum Arrived<R> {
    /// It is a request.
    Request(R),
    /// It is none, and the answer behind `out` says so.
    Refused,
    /// It is not to be answered.
    Deferred,
}

/// The result of *derive cached response*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looked {
    /// The answer is behind `out`.
    Hit,
    /// It is not to be answered.
    Miss,
}

/// An application protocol over datagrams: the state functions of one core.
///
/// The value is the core's part of the module, as that of a [`Module`](crate::Module) is: no state function takes a lock.
pub trait DatagramModule: Protocol {
    /// A request as it lies in the datagram.
    type Request<'d>;

    /// Reads a datagram.
    fn derive_request<'d>(
        &mut self,
        now: Now,
        datagram: Datagram<'d>,
        out: &mut Vec<u8>,
    ) -> Arrived<Self::Request<'d>>;

    /// Writes the answer behind `out`.
    fn derive_cached_response(
        &mut self,
        now: Now,
        request: Self::Request<'_>,
        out: &mut Vec<u8>,
    ) -> Looked;
}

/// Walks a datagram through the states of its module, and returns the last one: *send response*, with the answer behind
/// `out`, or *derive deferred response*.
pub fn walk<M: DatagramModule>(
    module: &mut M,
    now: Now,
    datagram: Datagram<'_>,
    out: &mut Vec<u8>,
) -> S {
    let request = match module.derive_request(now, datagram, out) {
        Arrived::Request(request) => request,
        Arrived::Refused => return const { successor::<M::Table>(S::DeriveRequest, E::Refused) },
        Arrived::Deferred => return const { successor::<M::Table>(S::DeriveRequest, E::Deferred) },
    };
    const {
        assert!(matches!(
            successor::<M::Table>(S::DeriveRequest, E::Request),
            S::DeriveCachedResponse
        ))
    };
    match module.derive_cached_response(now, request, out) {
        Looked::Hit => const { successor::<M::Table>(S::DeriveCachedResponse, E::Hit) },
        Looked::Miss => const { successor::<M::Table>(S::DeriveCachedResponse, E::Miss) },
    }
}

const fn successor<T: Table>(state: S, event: E) -> S {
    match state.next::<T>(event) {
        Some(next) => next,
        None => panic!("a module may report an event for which the table has no row"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Datagrams;

    struct Echo;

    impl Protocol for Echo {
        type Table = Datagrams;
    }

    impl DatagramModule for Echo {
        type Request<'d> = &'d [u8];

        fn derive_request<'d>(
            &mut self,
            _: Now,
            datagram: Datagram<'d>,
            out: &mut Vec<u8>,
        ) -> Arrived<&'d [u8]> {
            match datagram.bytes {
                [] => Arrived::Deferred,
                [b'?', ..] => {
                    out.push(b'!');
                    Arrived::Refused
                }
                bytes => Arrived::Request(bytes),
            }
        }

        fn derive_cached_response(&mut self, _: Now, request: &[u8], out: &mut Vec<u8>) -> Looked {
            if request == b"miss" {
                return Looked::Miss;
            }
            out.extend_from_slice(request);
            Looked::Hit
        }
    }

    #[test]
    fn each_event_leads_where_the_table_says() {
        for (bytes, state, answer) in [
            (&b"hit"[..], S::SendResponse, &b"hit"[..]),
            (b"?", S::SendResponse, b"!"),
            (b"miss", S::DeriveDeferredResponse, b""),
            (b"", S::DeriveDeferredResponse, b""),
        ] {
            let client = ([127, 0, 0, 1], 5).into();
            let (now, mut out) = (Now { unix_us: 0, steady_us: 0 }, Vec::new());
            let datagram = Datagram { client, is_connected: false, bytes };
            assert_eq!(walk(&mut Echo, now, datagram, &mut out), state);
            assert_eq!(out, answer);
        }
    }
}
