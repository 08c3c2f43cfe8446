//! The settings of a fleet.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::rollout::Bounds;

/// `[fleet]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetSettings {
    /// URLs of NATS servers; empty: there is no fleet.
    pub servers: Vec<String>,
    /// The file with the credentials.
    pub credentials: Option<PathBuf>,
    /// The file with the secret by which machines seal what the servers keep; `None`: nothing secret is shared.
    pub secret: Option<PathBuf>,
    /// The file with the authorities of the servers, if the system does not know them.
    pub ca: Option<PathBuf>,
    /// The name of this machine among the members; `None`: that of the host.
    pub name: Option<String>,
    /// Where it stands, in a word.
    pub region: Option<String>,
    /// The first part of all names at the servers.
    pub prefix: String,
    /// How long orders to purge are there for machines that are away.
    pub retention: Duration,
    /// The age of the last word of the servers from which kept answers are stale; `None`: never.
    pub stale_after: Option<Duration>,
    /// Whether this machine takes configurations of the fleet.
    pub configuration: bool,
    /// The bounds of those that are pushed here.
    pub bounds: Bounds,
    /// Whether this machine shares certificates, and orders of certificates, with the others.
    pub certificates: bool,
    /// The folder for what outlives the process.
    pub state: PathBuf,
    /// Where other machines ask this one for answers; `None`: they do not, and it asks none.
    pub peers: Option<SocketAddr>,
    /// How long shared keys are the current ones: `ticket_lifetime` in `[tls]`.
    pub key_period: Duration,
}

impl FleetSettings {
    /// Whether there is a fleet.
    pub fn is_on(&self) -> bool {
        !self.servers.is_empty()
    }

    /// Whether nothing is said to a server without TLS.
    pub fn is_by_tls(&self) -> bool {
        self.ca.is_some() || self.servers.iter().any(|url| is_tls(url))
    }

    /// A server of a list that has others with TLS, but has none itself: it could not be used.
    pub fn plain_among_tls(&self) -> Option<&str> {
        let plain = self.servers.iter().find(|url| !is_tls(url));
        plain.filter(|_| self.ca.is_none() && self.is_by_tls()).map(String::as_str)
    }

    /// How many servers keep a log: three where there are so many, for two then agree without the third.
    pub(crate) fn replicas(&self) -> usize {
        if self.servers.len() >= 3 { 3 } else { 1 }
    }
}

fn is_tls(url: &str) -> bool {
    url.starts_with("tls://")
}

/// How a machine shows the servers that it is one of the fleet.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// A user with a password.
    User(String, String),
    /// A token.
    Token(String),
}

/// A text holds no credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotCredentials {
    /// There is no text.
    #[error("is empty")]
    Empty,
    /// A `.creds` file, of accounts that an operator signs.
    #[error("has a signed key (.creds), which AFPA does not use")]
    Signed,
    /// There are several lines, or spaces.
    #[error("has neither USER:PASSWORD nor a token in one line")]
    Shape,
}

impl Credentials {
    /// Reads the text of a file: `USER:PASSWORD`, or a token, in one line.
    ///
    /// # Errors
    /// When it is neither.
    pub fn parse(text: &str) -> Result<Self, NotCredentials> {
        let line = text.trim();
        if line.is_empty() {
            return Err(NotCredentials::Empty);
        }
        if line.contains("BEGIN NATS USER JWT") || line.contains("USER NKEY SEED") {
            return Err(NotCredentials::Signed);
        }
        if line.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(NotCredentials::Shape);
        }
        Ok(match line.split_once(':') {
            Some((user, password)) if !user.is_empty() && !password.is_empty() => {
                Self::User(user.to_owned(), password.to_owned())
            }
            Some(_) => return Err(NotCredentials::Shape),
            None => Self::Token(line.to_owned()),
        })
    }
}

/// Nobody sees it.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credentials")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_a_user_or_a_token_in_one_line() {
        let user = Credentials::User("afpa".to_owned(), "a:b".to_owned());
        assert_eq!(Credentials::parse("afpa:a:b\n"), Ok(user));
        let token = Credentials::Token("secret".to_owned());
        assert_eq!(Credentials::parse(" secret \n"), Ok(token.clone()));
        assert_eq!(format!("{token:?}"), "Credentials");
        for (text, why) in [
            ("", NotCredentials::Empty),
            ("\n", NotCredentials::Empty),
            ("a:b\nc:d", NotCredentials::Shape),
            (":b", NotCredentials::Shape),
            ("a:", NotCredentials::Shape),
            ("two words", NotCredentials::Shape),
            ("-----BEGIN NATS USER JWT-----\nx", NotCredentials::Signed),
        ] {
            assert_eq!(Credentials::parse(text), Err(why), "{text:?}");
        }
    }
}
