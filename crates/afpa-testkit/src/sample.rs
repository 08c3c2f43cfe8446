//! Responses that only the kernel gives: their Server field shows that the kernel answered.

use crate::packet::Segment;
use crate::response::Response;
use crate::tcp::RawClient;

/// The validator of every [`Sample`].
pub const ETAG: &str = "\"afpa-1\"";
/// Its Last-Modified.
pub const LAST_MODIFIED: &[u8; 29] = b"Sun, 06 Nov 1994 08:49:37 GMT";
const SERVER: &str = "afpa-kernel";

/// The two responses of a pinned object that no server behind the fast path has. Their Date is to be filled in.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Head of the whole response.
    pub head: String,
    /// The response that says that a client's copy is still right.
    pub not_modified: String,
    /// Content.
    pub body: Vec<u8>,
}

impl Sample {
    /// With this content.
    pub fn new(body: impl AsRef<[u8]>) -> Self {
        let (body, date) = (body.as_ref().to_vec(), "x".repeat(29));
        let last_modified = String::from_utf8_lossy(LAST_MODIFIED);
        let head = format!(
            "HTTP/1.1 200 OK\r\nDate: {date}\r\nServer: {SERVER}\r\nContent-Length: {}\r\n\
             ETag: {ETAG}\r\nLast-Modified: {last_modified}\r\n\r\n",
            body.len()
        );
        let not_modified = format!(
            "HTTP/1.1 304 Not Modified\r\nDate: {date}\r\nServer: {SERVER}\r\nETag: {ETAG}\r\n\r\n"
        );
        Self { head, not_modified, body }
    }
}

/// Where the value of the Date begins in a head.
///
/// # Panics
/// When there is none.
pub fn date_offset(head: &[u8]) -> usize {
    const DATE: &[u8] = b"\r\nDate: ";
    head.windows(DATE.len()).position(|window| window == DATE).expect("a Date") + DATE.len()
}

impl Response {
    /// Did the kernel answer, with a [`Sample`]?
    pub fn is_from_kernel(&self) -> bool {
        self.field("Server") == Some(SERVER)
    }
}

impl Segment {
    /// Is it (the start of) an answer of the kernel, with a [`Sample`]?
    pub fn is_from_kernel(&self) -> bool {
        self.text().contains(&format!("Server: {SERVER}\r\n"))
    }
}

/// The two pages of the tests of the fast path: one that a server has, and one that the kernel answers as well.
impl RawClient {
    /// GET from user mode, acknowledged.
    #[track_caller]
    pub fn ask_user(&mut self) {
        let reply = self.ask(&self.get("/user.html")).text();
        assert!(reply.ends_with("from nginx"), "{reply}");
        self.acknowledge();
    }

    /// GET from the kernel, acknowledged.
    #[track_caller]
    pub fn ask_kernel(&mut self) {
        let reply = self.ask(&self.get("/kernel.html"));
        assert!(reply.is_from_kernel() && reply.text().ends_with("from the kernel"), "{reply:?}");
        self.acknowledge();
    }
}
