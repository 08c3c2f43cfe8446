//! FastCGI 1.0 as a web server speaks it to an application such as PHP-FPM, without I/O.
//!
//! [`RequestWriter`] takes a request in the words of HTTP/1.1 and gives the records of a FastCGI request with the role
//! of a responder. [`ResponseReader`] takes the records of its answer and gives a response in the words of HTTP/1.1, so
//! that one parser gives all verdicts on what servers send. A connection carries one request at a time, whose number is
//! always 1.

mod fault;
mod head;
mod params;
mod record;
mod request;
mod response;
mod stderr;

pub use fault::Fault;
pub use params::put_param;
pub use request::{NotARequest, RequestWriter};
pub use response::ResponseReader;

#[cfg(test)]
mod tests;
