//! The sealer of the next records: rustls, or the machine, which seals in place.

use std::sync::Arc;

use rustls::unbuffered::{ConnectionState, UnbufferedStatus};

use super::{Closed, Machine, RECORD, Side, encode};
use crate::sealing::{self, HEAD, SendingKey, TAIL};

/// The sealer of application data.
#[derive(Default)]
pub(super) enum Sealer {
    /// rustls alone: it is TLS 1.2, or there is no key yet.
    #[default]
    Rustls,
    /// rustls has a new key, and may hold back records sealed with the old one: it seals the next records.
    RustlsNext(Arc<SendingKey>),
    /// The machine.
    Machine(Arc<SendingKey>),
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealer")
    }
}

impl Sealer {
    /// rustls has sealed a record, and with it has given out the records that it held back. The machine seals the next.
    pub(super) fn rustls_has_sealed(&mut self) {
        *self = match std::mem::take(self) {
            Self::RustlsNext(key) => Self::Machine(key),
            other => other,
        };
    }
}

impl<S: Side> Machine<S> {
    /// Whether [`seal`](Self::seal) can be used for this many records. Bytes that must be sent before them are appended
    /// to `out`: nearly always none.
    ///
    /// # Errors
    /// As [`encrypt`](Self::encrypt).
    pub fn seals(&mut self, records: usize, out: &mut Vec<u8>) -> Result<bool, Closed> {
        let Sealer::Machine(key) = &self.sealer else { return Ok(false) };
        if key.is_used_up(records as u64) {
            self.renew(out)?;
        }
        self.write(|_| true)?;
        Ok(true)
    }

    /// Makes `record` a record of application data, whose content is there already: between [`HEAD`] and [`TAIL`], and of at
    /// most [`RECORD`] bytes. To be called only after [`seals`](Self::seals) has returned true.
    ///
    /// # Errors
    /// The record must not be sent, and the connection cannot go on.
    pub fn seal(&mut self, record: &mut [u8]) -> Result<(), Closed> {
        let fits = (HEAD + TAIL + 1..=HEAD + RECORD + TAIL).contains(&record.len());
        match &self.sealer {
            Sealer::Machine(key) if fits => key.seal(record).map_err(|_| Closed),
            _ => Err(Closed),
        }
    }

    pub(super) fn seal_to(&self, content: &[u8], out: &mut Vec<u8>) -> Result<(), Closed> {
        match &self.sealer {
            Sealer::Machine(key) => key.seal_to(content, out).map_err(|_| Closed),
            _ => Err(Closed),
        }
    }

    /// Has the connection go on with another key (RFC 8446, section 4.6.3). rustls would do so in time if it sealed
    /// everything.
    fn renew(&mut self, out: &mut Vec<u8>) -> Result<(), Closed> {
        let Self { side, kept, sealer, .. } = self;
        let (renewed, key) = sealing::watch(|| match side.process(kept).state {
            Ok(ConnectionState::WriteTraffic(traffic)) => traffic.refresh_traffic_keys().is_ok(),
            _ => false,
        });
        *sealer = Sealer::Machine(key.filter(|_| renewed).ok_or(Closed)?);
        loop {
            match side.process(kept).state {
                Ok(ConnectionState::EncodeTlsData(data)) => encode(data, out),
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::WriteTraffic(_)) => return Ok(()),
                _ => return Err(Closed),
            }
        }
    }
}

/// Has rustls go on, and notices when it has made another key for sending. In the handshake everything that it seals is
/// handed out at once; after that it answers an update of the peer's key with the next records.
pub(super) fn turn<'c, 'i, S: Side>(
    side: &'c mut S,
    sealer: &mut Sealer,
    input: &'i mut [u8],
) -> UnbufferedStatus<'c, 'i, S::Data> {
    let in_handshake = side.common().is_handshaking();
    let (status, made) = sealing::watch(|| side.process(input));
    if let Some(key) = made {
        *sealer = match in_handshake {
            true => Sealer::Machine(key),
            false => Sealer::RustlsNext(key),
        };
    }
    status
}
