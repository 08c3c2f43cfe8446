//! Why a connection failed, as metrics count it.

use std::fmt;

use rustls::{AlertDescription, Error, InvalidMessage, PeerIncompatible};

/// Kinds of failures. Metrics have a counter for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The first bytes are no TLS record: most often plain HTTP.
    NotTls,
    /// The two sides have no version, cipher suite or group in common.
    NothingShared,
    /// There is no certificate that the client could use.
    NoCertificate,
    /// The peer's certificate is missing or not valid.
    PeerCertificate,
    /// The peer sent an alert.
    Alert,
    /// The peer broke the protocol.
    Malformed,
    /// The handshake took too long.
    TimedOut,
    /// The peer went away during the handshake.
    Gone,
    /// Too many handshakes were in progress, in total or for this client.
    Limit,
    /// Anything else, such as no random numbers.
    Other,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Reason; 10] = [
        Reason::NotTls,
        Reason::NothingShared,
        Reason::NoCertificate,
        Reason::PeerCertificate,
        Reason::Alert,
        Reason::Malformed,
        Reason::TimedOut,
        Reason::Gone,
        Reason::Limit,
        Reason::Other,
    ];

    /// Its name in statistics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotTls => "not_tls",
            Self::NothingShared => "nothing_shared",
            Self::NoCertificate => "no_certificate",
            Self::PeerCertificate => "peer_certificate",
            Self::Alert => "alert",
            Self::Malformed => "malformed",
            Self::TimedOut => "timed_out",
            Self::Gone => "gone",
            Self::Limit => "limit",
            Self::Other => "other",
        }
    }
}

/// The end of a connection by an error of TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its kind.
    pub reason: Reason,
    text: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { reason: reason(&error), text: error.to_string() }
    }
}

fn reason(error: &Error) -> Reason {
    match error {
        Error::InvalidMessage(
            InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
        ) => Reason::NotTls,
        Error::General(_) | Error::FailedToGetRandomBytes | Error::FailedToGetCurrentTime => {
            Reason::Other
        }
        Error::PeerIncompatible(PeerIncompatible::NoSignatureSchemesInCommon) => {
            Reason::NoCertificate
        }
        Error::NoApplicationProtocol | Error::PeerIncompatible(_) => Reason::NothingShared,
        Error::NoCertificatesPresented | Error::InvalidCertificate(_) => Reason::PeerCertificate,
        Error::AlertReceived(AlertDescription::CloseNotify) => Reason::Gone,
        Error::AlertReceived(_) => Reason::Alert,
        _ => Reason::Malformed,
    }
}
