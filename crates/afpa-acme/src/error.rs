//! Why there is no certificate.

use std::io;
use std::path::PathBuf;

/// Why an order, or the folder that keeps certificates, failed. No message contains a key.
#[derive(Debug, thiserror::Error)]
pub enum AcmeError {
    /// The folder belongs to somebody else, or others can write to it.
    #[error(
        "{0} belongs to somebody else, or others can read or write it: it holds keys, so change its owner, and its mode \
         to 0700"
    )]
    Folder(PathBuf),
    /// A file of the folder.
    #[error("{path}: {error}")]
    File {
        /// Which one.
        path: PathBuf,
        /// The error of the system call.
        error: io::Error,
    },
    /// A file of the folder is not what it should be.
    #[error("{path}: {why}; remove it, and another one is made")]
    Content {
        /// Which one.
        path: PathBuf,
        /// The fault of its content.
        why: String,
    },
    /// The authority refused, or could not be asked.
    #[error("{0}")]
    Authority(#[from] instant_acme::Error),
    /// The authority does not answer; seconds that were waited.
    #[error(
        "the authority has not answered for {0} s: is [acme] directory its URL, and does this machine reach it?"
    )]
    Silent(u64),
    /// The authority does not offer the challenge.
    #[error("the authority offers no {challenge} for {name}: choose another [acme] challenge")]
    NotOffered {
        /// Which challenge.
        challenge: &'static str,
        /// For which name.
        name: String,
    },
    /// The authority did not accept an answer.
    #[error("the authority did not accept that {name} is ours: {why}")]
    NotOurs {
        /// Which name.
        name: String,
        /// The authority's reason.
        why: String,
    },
    /// The program that sets records in the DNS.
    #[error("{program} {verb} failed: {why}")]
    Program {
        /// Its path.
        program: PathBuf,
        /// Its first argument: the action that failed.
        verb: &'static str,
        /// Its exit status and last line of output, or the error.
        why: String,
    },
    /// No zone of this process can have the record.
    #[error("the record {name} cannot be shown: {why}")]
    Zone {
        /// Its name.
        name: String,
        /// The reason.
        why: String,
    },
    /// The other machines of the fleet, or its servers.
    #[error("the fleet: {0}")]
    Others(String),
    /// The certificate that came is not usable.
    #[error("the authority sent a certificate that cannot be used: {0}")]
    Certificate(String),
}

impl AcmeError {
    /// Whether the authority does not know the account (RFC 8555 section 6.7), because it has removed it, for example.
    pub(crate) fn is_unknown_account(&self) -> bool {
        const UNKNOWN: &str = "urn:ietf:params:acme:error:accountDoesNotExist";
        matches!(self, Self::Authority(instant_acme::Error::Api(problem))
            if problem.r#type.as_deref() == Some(UNKNOWN))
    }

    /// Whether the authority has no such order any more, or has that of another account.
    pub(crate) fn is_no_order(&self) -> bool {
        let Self::Authority(instant_acme::Error::Api(problem)) = self else { return false };
        const KINDS: [&str; 2] =
            ["urn:ietf:params:acme:error:malformed", "urn:ietf:params:acme:error:unauthorized"];
        let is_said = match problem.status {
            Some(status) => matches!(status, 401 | 403 | 404),
            None => problem.r#type.as_deref().is_some_and(|kind| KINDS.contains(&kind)),
        };
        is_said && !self.is_unknown_account()
    }

    /// Whether no certificate will come of the order.
    pub(crate) fn ends_order(&self) -> bool {
        matches!(self, Self::NotOurs { .. } | Self::Certificate(_))
    }

    pub(crate) fn file(path: &std::path::Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::File { path, error }
    }
}
