//! Names and passwords of Basic authentication (RFC 7617), sans-IO.
//!
//! ```text
//! Credentials   what a client says: the value of Authorization
//! Users         what a file of htpasswd says, and which credentials were found right before
//! Hash          one password in such a file, and its check, which is made to be slow
//! ```
//!
//! A check belongs to a thread that may take its time. [`Users::knows`] is for the others: it finds credentials that
//! were right before, without a lock.

mod credentials;
mod file;
mod hash;
mod md5_crypt;
mod users;

pub use credentials::Credentials;
pub use file::{LineFault, LineProblem};
pub use hash::Hash;
pub use users::Users;
