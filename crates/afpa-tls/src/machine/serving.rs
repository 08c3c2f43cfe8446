//! The server's side of rustls, with the facts that rustls does not report.

use std::ops::Deref;
use std::sync::Arc;

use rustls::pki_types::UnixTime;
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ReadEarlyData, UnbufferedStatus};
use rustls::{CommonState, Error, ProtocolVersion};

use super::{EarlyData, Facts, Failure, Machine, Side};
use crate::hello::{self, Hello};
use crate::server::ServerTls;
use crate::tickets;

/// A connection that a client has begun.
pub struct ServerSide {
    connection: UnbufferedServerConnection,
    /// Early data may be accepted.
    may_be_early: bool,
    /// The client's first message, once it has arrived, where early data may be accepted.
    hello: Option<Hello>,
    /// Some was accepted.
    was_early: bool,
}

impl std::fmt::Debug for ServerSide {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServerSide")
    }
}

impl Deref for ServerSide {
    type Target = UnbufferedServerConnection;

    fn deref(&self) -> &UnbufferedServerConnection {
        &self.connection
    }
}

impl Side for ServerSide {
    type Data = ServerConnectionData;

    fn process<'c, 'i>(&'c mut self, input: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        if self.may_be_early && self.hello.is_none() {
            self.hello = hello::read(input);
        }
        // Sessions of TLS 1.3 are in the store then. rustls asks for tickets before it says which version it has chosen.
        let uses_13 = match self.connection.protocol_version() {
            Some(version) => version == ProtocolVersion::TLSv1_3,
            None => self.hello.is_some_and(|hello| hello.knows_13),
        };
        tickets::begin_step(self.may_be_early && uses_13);
        self.connection.process_tls_records(input)
    }

    fn common(&self) -> &CommonState {
        &self.connection
    }

    fn take_early(
        mut data: ReadEarlyData<'_, '_, Self::Data>,
        plain: &mut Vec<u8>,
    ) -> Result<usize, Error> {
        let mut discard = 0;
        while let Some(record) = data.next_record() {
            let record = record?;
            discard += record.discard;
            plain.extend_from_slice(record.payload);
        }
        Ok(discard)
    }

    fn note_early(&mut self) {
        self.was_early = true;
    }

    fn was_early(&self) -> bool {
        self.was_early
    }
}

/// The server's side of a connection.
pub type ServerMachine = Machine<ServerSide>;

impl ServerMachine {
    /// A connection that a client begins.
    ///
    /// # Errors
    /// When the settings cannot be used for any connection.
    pub fn new(tls: &ServerTls) -> Result<Self, Failure> {
        let connection = UnbufferedServerConnection::new(Arc::clone(tls.config()))?;
        let (may_be_early, hello, was_early) = (tls.accepts_early_data(), None, false);
        Ok(Self::begin(ServerSide { connection, may_be_early, hello, was_early }))
    }

    /// The results of the handshake, at its end or as soon as early data has arrived. A session carries the certificate
    /// that its client once showed, so that certificate is verified again when the session is resumed.
    ///
    /// # Errors
    /// When that certificate is not valid any more, or there are no results yet.
    pub fn agreed(&self, tls: &ServerTls) -> Result<Facts, Failure> {
        self.agreed_at(tls, UnixTime::now())
    }

    pub(super) fn agreed_at(&self, tls: &ServerTls, now: UnixTime) -> Result<Facts, Failure> {
        let facts = self.facts().ok_or(Error::HandshakeNotComplete)?;
        if facts.resumed
            && let Some(chain) = self.side.common().peer_certificates()
        {
            tls.verify(chain, now)?;
        }
        Ok(Facts { authorities: tls.authorities(), early_data: self.early_data(), ..facts })
    }

    pub(super) fn early_data(&self) -> EarlyData {
        match self.side.hello {
            _ if self.side.was_early => EarlyData::Accepted,
            Some(Hello { offers_early_data: true, .. }) => EarlyData::Refused,
            _ => EarlyData::None,
        }
    }
}
