//! The faults of a server.

/// Why the bytes of a server are no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A record of a version that does not exist.
    #[error("a record of version {0} of FastCGI")]
    Version(u8),
    /// A record of another request than the one that was sent.
    #[error("a record of request {0}, which was not sent")]
    Request(u16),
    /// A record that a server does not send.
    #[error("a record of type {0}, which is none of an answer")]
    Kind(u8),
    /// Too many records without content.
    #[error("too many records without content")]
    Idle,
    /// The record that ends the request is too short or too long.
    #[error("a record that ends the request and has {0} bytes")]
    EndLength(u16),
    /// Output behind its end.
    #[error("output behind the end of the output")]
    AfterEnd,
    /// The request ended before the head of the answer.
    #[error("the request ended without the head of an answer")]
    NoHead,
    /// The head is longer than the limit.
    #[error("the head of the answer is longer than the limit")]
    HeadTooLong,
    /// The head is malformed.
    #[error("the head of the answer is malformed: {0}")]
    Head(httparse::Error),
    /// A field is there twice that can be there once.
    #[error("Status, Location or Content-Length is there twice")]
    Twice,
    /// The status is none of a final response.
    #[error("the status of the answer is none")]
    Status,
    /// The length of the content is no number.
    #[error("the length of the content is no number")]
    Length,
    /// The content is shorter than the head says.
    #[error("the content is shorter than the head says")]
    Short,
    /// FCGI_OVERLOADED: the server did not look at the request.
    #[error("the server is overloaded")]
    Overloaded,
    /// FCGI_CANT_MPX_CONN, FCGI_UNKNOWN_ROLE, or a status that does not exist.
    #[error("the server refuses the request (protocol status {0})")]
    Refused(u8),
}
