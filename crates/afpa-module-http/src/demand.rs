//! Names and passwords that a part of a site demands, and clients that have shown them.

use std::sync::Arc;

use afpa_users::Users;

use crate::checks::PasswordChecks;

/// A part of a site that demands a name and a password (RFC 7617).
#[derive(Debug)]
pub struct PasswordDemand {
    /// The users that may.
    pub users: Arc<Users>,
    /// Where passwords are checked.
    pub checks: PasswordChecks,
    /// The value of WWW-Authenticate.
    pub challenge: String,
}

impl PasswordDemand {
    /// A demand that names itself to people. `realm`: printable ASCII.
    pub fn new(users: Arc<Users>, checks: PasswordChecks, realm: &str) -> Self {
        let quoted = realm.replace('\\', "\\\\").replace('"', "\\\"");
        let challenge = format!("Basic realm=\"{quoted}\", charset=\"UTF-8\"");
        Self { users, checks, challenge }
    }
}

/// A client that was checked.
#[derive(Debug)]
pub(crate) struct Granted {
    /// The name whose password was right.
    pub(crate) user: Arc<str>,
}
