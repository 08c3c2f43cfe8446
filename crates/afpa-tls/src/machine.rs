//! One connection of TLS, between ciphertext and plaintext.
//!
//! The machine has no socket and no buffers. Its caller gives it ciphertext that has arrived, and gets plaintext and
//! ciphertext to be sent. This file is the only one that knows rustls' interface for records, because that interface
//! changes with its next release.

use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
pub use rustls::pki_types::ServerName;

/// A certificate in DER.
pub type CertificateDer = rustls::pki_types::CertificateDer<'static>;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, InsufficientSizeError,
    ReadEarlyData, UnbufferedStatus,
};
use rustls::{CommonState, Error, HandshakeKind, InvalidMessage, ProtocolVersion};

use crate::client::ClientTls;
use crate::failure::Failure;
pub use crate::sealing::{HEAD, TAIL};
use crate::server::AuthoritiesId;

mod sealer;
mod serving;

use sealer::{Sealer, turn};
pub use serving::{ServerMachine, ServerSide};

/// The longest plaintext of one record (RFC 8446, section 5.1).
pub const RECORD: usize = 16 * 1024;

/// The longest record as it is received: ciphertext of TLS 1.2 may be 2,048 bytes longer than its plaintext, and there
/// are five bytes of header (RFC 5246, section 6.2.3).
pub const LONGEST: usize = RECORD + 2048 + 5;

/// The most bytes that a record adds to its plaintext, when we send it.
const OVERHEAD: usize = 64;

/// The client's side of a connection.
pub type ClientMachine = Machine<UnbufferedClientConnection>;

/// The most ciphertext that is kept because a message in it is not complete. A peer could send a long message in
/// records of one byte each, which would have to be kept with all their overhead.
const MOST_KEPT: usize = 96 * 1024;

/// A connection of TLS.
#[derive(Debug)]
pub struct Machine<S> {
    side: S,
    /// Ciphertext that is not complete yet. rustls remembers positions in it, so it has to see it at every call.
    kept: Vec<u8>,
    peer_closed: bool,
    /// How the connection has failed. rustls is not asked again then.
    failed: Option<Failure>,
    sealer: Sealer,
}

/// The state of a connection after it has processed ciphertext.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Whether the handshake goes on.
    pub handshaking: bool,
    /// Whether the peer has said that it will send nothing more (close_notify).
    pub peer_closed: bool,
}

/// The results of a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// `TLSv1.3` or `TLSv1.2`.
    pub version: &'static str,
    /// The cipher suite by its name in the registry of IANA.
    pub cipher: &'static str,
    /// Whether a session was resumed.
    pub resumed: bool,
    /// The protocol chosen by ALPN (RFC 7301).
    pub protocol: Option<Box<[u8]>>,
    /// The subject of the peer's certificate, as RFC 4514 writes it.
    pub peer: Option<Box<str>>,
    /// The authorities whose certificates the client was asked for, if it was.
    pub authorities: Option<AuthoritiesId>,
    /// The fate of early data.
    pub early_data: EarlyData,
}

/// The fate of a client's early data (0-RTT; RFC 8446, section 2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EarlyData {
    /// None was offered, or none would be accepted from anybody.
    #[default]
    None,
    /// Some was accepted.
    Accepted,
    /// It was offered, and is not looked at.
    Refused,
}

/// The side of a connection: the client's or the server's.
pub trait Side {
    /// The type by which rustls tells the sides apart.
    type Data;

    #[doc(hidden)]
    fn process<'c, 'i>(&'c mut self, input: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data>;

    #[doc(hidden)]
    fn common(&self) -> &CommonState;

    /// Appends early data to `plain`. Returns the length of its input, beyond the length that rustls reports itself.
    #[doc(hidden)]
    fn take_early(_: ReadEarlyData<'_, '_, Self::Data>, _: &mut Vec<u8>) -> Result<usize, Error> {
        Ok(0)
    }

    #[doc(hidden)]
    fn note_early(&mut self) {}

    #[doc(hidden)]
    fn was_early(&self) -> bool {
        false
    }
}

impl Side for UnbufferedClientConnection {
    type Data = rustls::client::ClientConnectionData;

    fn process<'c, 'i>(&'c mut self, input: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(input)
    }

    fn common(&self) -> &CommonState {
        self
    }
}

impl ClientMachine {
    /// A connection to the server of this name.
    ///
    /// # Errors
    /// When the settings cannot be used for any connection.
    pub fn new(tls: &ClientTls, name: ServerName<'static>) -> Result<Self, Failure> {
        let side = UnbufferedClientConnection::new(Arc::clone(tls.config()), name)?;
        Ok(Self::begin(side))
    }
}

impl<S: Side> Machine<S> {
    fn begin(side: S) -> Self {
        let (peer_closed, failed, sealer) = (false, None, Sealer::default());
        Self { side, kept: Vec::new(), peer_closed, failed, sealer }
    }

    /// Decrypts ciphertext in place. Appends the plaintext to `plain`, and the bytes for the peer to `out`. A client's
    /// first call passes no ciphertext. Plaintext that a server gets during the handshake is early data, which may be a
    /// replay.
    ///
    /// # Errors
    /// The connection is over. `out` ends with the alert that tells the peer why, if there is one for it.
    pub fn process(
        &mut self,
        arrived: &mut [u8],
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<Progress, Failure> {
        if let Some(failure) = &self.failed {
            return Err(failure.clone());
        }
        self.take(arrived, plain, out).inspect_err(|failure| self.failed = Some(failure.clone()))
    }

    fn take(
        &mut self,
        arrived: &mut [u8],
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<Progress, Failure> {
        if self.kept.is_empty() {
            let consumed = self.step(arrived, plain, out)?;
            self.kept.extend_from_slice(arrived.get(consumed..).unwrap_or_default());
        } else {
            let mut all = std::mem::take(&mut self.kept);
            all.extend_from_slice(arrived);
            let consumed = self.step(&mut all, plain, out)?;
            // An idle connection keeps only the bytes of the incomplete message, not the memory of all that arrived.
            self.kept = match consumed.min(all.len()) {
                0 => all,
                consumed => all.split_off(consumed),
            };
        }
        if self.kept.len() > MOST_KEPT {
            return Err(Error::InvalidMessage(InvalidMessage::HandshakePayloadTooLarge).into());
        }
        let handshaking = self.is_handshaking();
        Ok(Progress { handshaking, peer_closed: self.peer_closed })
    }

    /// Returns how many bytes at the front are not needed again.
    fn step(
        &mut self,
        input: &mut [u8],
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<usize, Failure> {
        let mut consumed = 0;
        loop {
            let rest = input.get_mut(consumed..).unwrap_or_default();
            let UnbufferedStatus { mut discard, state } =
                turn(&mut self.side, &mut self.sealer, rest);
            let mut waits = false;
            match state {
                Err(error) => {
                    self.encode_last(out);
                    return Err(error.into());
                }
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record?;
                        discard += record.discard;
                        plain.extend_from_slice(record.payload);
                    }
                }
                Ok(ConnectionState::ReadEarlyData(data)) => {
                    discard += S::take_early(data, plain)?;
                    self.side.note_early();
                }
                Ok(ConnectionState::EncodeTlsData(data)) => encode(data, out),
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::PeerClosed) => self.peer_closed = true,
                Ok(_) => waits = true,
            }
            consumed += discard;
            if waits {
                return Ok(consumed);
            }
        }
    }

    /// Appends the output from before an error, and the alert. rustls must not process input after an error, and the
    /// loop does not let it: rustls hands out its output first, and the loop ends when there is none left.
    fn encode_last(&mut self, out: &mut Vec<u8>) {
        while self.side.common().wants_write() {
            match self.side.process(&mut []).state {
                Ok(ConnectionState::EncodeTlsData(data)) => encode(data, out),
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while traffic.next_record().is_some() {}
                }
                _ => break,
            }
        }
    }

    /// Appends `plain` to `out` as one record, or several if it is longer than [`RECORD`].
    ///
    /// # Errors
    /// The connection cannot send: its handshake is not complete, it was closed, or its keys are used up.
    pub fn encrypt(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Closed> {
        let records = plain.len().div_ceil(RECORD);
        if self.seals(records, out)? {
            return plain.chunks(RECORD).try_for_each(|content| self.seal_to(content, out));
        }
        let room = plain.len() + records * OVERHEAD;
        self.write(|traffic| {
            append(out, room, |room| match traffic.encrypt(plain, room) {
                Err(EncryptError::InsufficientSize(size)) => Err(Some(size)),
                Err(EncryptError::EncryptExhausted) => Err(None),
                Ok(n) => Ok(n),
            })
        })?;
        self.sealer.rustls_has_sealed();
        Ok(())
    }

    /// Appends the alert to `out` that says that nothing more will be sent (close_notify).
    ///
    /// # Errors
    /// As [`encrypt`](Self::encrypt).
    pub fn close(&mut self, out: &mut Vec<u8>) -> Result<(), Closed> {
        self.write(|traffic| {
            append(out, OVERHEAD, |room| match traffic.queue_close_notify(room) {
                Err(EncryptError::InsufficientSize(size)) => Err(Some(size)),
                Err(EncryptError::EncryptExhausted) => Err(None),
                Ok(n) => Ok(n),
            })
        })
    }

    /// Whether the handshake goes on.
    pub fn is_handshaking(&self) -> bool {
        self.side.common().is_handshaking()
    }

    /// Whether everything that has arrived was taken apart.
    pub fn is_drained(&self) -> bool {
        self.kept.is_empty()
    }

    /// The results of the handshake; `None` before its end.
    pub fn facts(&self) -> Option<Facts> {
        facts(self.side.common())
    }

    fn write(
        &mut self,
        write: impl FnOnce(&mut rustls::unbuffered::WriteTraffic<'_, S::Data>) -> bool,
    ) -> Result<(), Closed> {
        // Where early data may be accepted, rustls would let a server send right after any ClientHello. Before the end
        // of the handshake we send only to a client whose early data was accepted.
        if self.failed.is_some() || self.is_handshaking() && !self.side.was_early() {
            return Err(Closed);
        }
        // `kept` holds an incomplete message, which this call does not process; rustls only has to see it.
        match turn(&mut self.side, &mut self.sealer, &mut self.kept).state {
            Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                write(&mut traffic).then_some(()).ok_or(Closed)
            }
            _ => Err(Closed),
        }
    }
}

/// Nothing can be sent any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

fn encode<D>(mut data: EncodeTlsData<'_, D>, out: &mut Vec<u8>) {
    append(out, 0, |room| match data.encode(room) {
        Err(EncodeError::InsufficientSize(size)) => Err(Some(size)),
        Err(EncodeError::AlreadyEncoded) => Err(None),
        Ok(n) => Ok(n),
    });
}

/// Appends the output of `write`, which gets room for at least `likely` bytes, and for more if it asks for more.
fn append(
    out: &mut Vec<u8>,
    likely: usize,
    mut write: impl FnMut(&mut [u8]) -> Result<usize, Option<InsufficientSizeError>>,
) -> bool {
    let start = out.len();
    let mut room = likely;
    // The second attempt has the room that the first one asked for.
    for _ in 0..2 {
        out.resize(start.saturating_add(room), 0);
        match write(out.get_mut(start..).unwrap_or_default()) {
            Ok(n) => {
                out.truncate(start + n);
                return true;
            }
            Err(Some(size)) => room = size.required_size,
            Err(None) => break,
        }
    }
    out.truncate(start);
    false
}

fn facts(common: &CommonState) -> Option<Facts> {
    let version = match common.protocol_version()? {
        ProtocolVersion::TLSv1_3 => "TLSv1.3",
        ProtocolVersion::TLSv1_2 => "TLSv1.2",
        _ => "unknown",
    };
    let peer = common.peer_certificates().and_then(|chain| chain.first());
    Some(Facts {
        version,
        cipher: common.negotiated_cipher_suite()?.suite().as_str().unwrap_or("unknown"),
        resumed: common.handshake_kind()? == HandshakeKind::Resumed,
        protocol: common.alpn_protocol().map(Into::into),
        peer: peer.and_then(|peer| crate::certificate::subject(peer)).map(Into::into),
        authorities: None,
        early_data: EarlyData::None,
    })
}

#[cfg(test)]
mod early_tests;
#[cfg(test)]
mod tests;
