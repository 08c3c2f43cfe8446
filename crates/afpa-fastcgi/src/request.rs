//! The records of a request: its beginning, its parameters, its content.

use afpa_http::syntax::number;
use memchr::memmem;
use smallvec::SmallVec;

use crate::head;
use crate::params::{put_field, put_param};
use crate::record::{kind, put, put_filled, put_stream};

/// The role of a responder, in the record that begins a request (FastCGI 1.0 section 5.1).
const RESPONDER: u8 = 1;

/// The server keeps the connection when it has answered.
const KEEP_CONNECTION: u8 = 1;

/// Fields of a head that take no memory of their own.
const FEW_FIELDS: usize = 32;

/// Bytes of the records beside parameters and head: more than those of most requests.
const BESIDE: usize = 256;

/// Fields that are no parameters `HTTP_...`: others tell of them, or the connection alone is concerned.
const OTHERWISE_TOLD: [&[u8]; 4] = [b"content-length", b"content-type", b"expect", b"connection"];

/// The bytes are not a request that FastCGI can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotARequest {
    /// There is no request line, or a line is no field.
    #[error("the request is malformed")]
    Malformed,
    /// The content has no length: a program of CGI reads as much as CONTENT_LENGTH says (RFC 3875 section 4.2).
    #[error("the content of the request has no length")]
    Length,
}

/// Turns a request of HTTP/1.1 into records.
#[derive(Debug)]
pub struct RequestWriter {
    keeps: bool,
    /// The head so far, while it is incomplete.
    head: Vec<u8>,
    /// Bytes of content that are to come; `None` before the head has ended.
    left: Option<u64>,
    asks_head: bool,
    expects: bool,
}

impl RequestWriter {
    /// For a request after which the server keeps the connection, or not.
    pub fn new(keeps: bool) -> Self {
        Self { keeps, head: Vec::new(), left: None, asks_head: false, expects: false }
    }

    /// Appends the records for `bytes` of the request to `out`. `params` are parameters that the head does not tell, as
    /// [`put_param`] gives them; they go before those of the head.
    ///
    /// # Errors
    /// See [`NotARequest`].
    pub fn write(
        &mut self,
        bytes: &[u8],
        params: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), NotARequest> {
        let Some(left) = &mut self.left else {
            let all = head::joined(std::mem::take(&mut self.head), bytes);
            let Some(end) = memmem::find(&all, b"\r\n\r\n") else {
                self.head = all.into_owned();
                return Ok(());
            };
            let (head, content) = all.split_at(end + 4);
            self.begin(head, params, out)?;
            return self.write(content, params, out);
        };
        let taken = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
        let content = bytes.get(..taken).unwrap_or_default();
        *left -= content.len() as u64;
        put_stream(out, kind::STDIN, content);
        if *left == 0 && !content.is_empty() {
            put(out, kind::STDIN, b"");
        }
        Ok(())
    }

    /// Whether all of the request was written.
    pub fn is_done(&self) -> bool {
        self.left == Some(0)
    }

    /// Whether its method is HEAD.
    pub fn asks_head(&self) -> bool {
        self.asks_head
    }

    /// Whether the client waits for a 100 (Continue), which no program of CGI sends. Only the first call says so.
    pub fn takes_expectation(&mut self) -> bool {
        std::mem::take(&mut self.expects)
    }

    fn begin(&mut self, head: &[u8], told: &[u8], out: &mut Vec<u8>) -> Result<(), NotARequest> {
        let mut lines = head.split(|&byte| byte == b'\n').map(|line| line.trim_ascii_end());
        let method = lines.next().and_then(|line| line.split(|&byte| byte == b' ').next());
        let method = method.filter(|method| !method.is_empty()).ok_or(NotARequest::Malformed)?;
        let mut fields: SmallVec<[_; FEW_FIELDS]> = SmallVec::new();
        for line in lines.filter(|line| !line.is_empty()) {
            let at = memchr::memchr(b':', line).ok_or(NotARequest::Malformed)?;
            let (name, value) = line.split_at(at);
            fields.push((name, value.get(1..).unwrap_or_default().trim_ascii()));
        }
        let (mut length, mut kind_of_content) = (None, &b""[..]);
        for (name, value) in &fields {
            match name {
                _ if name.eq_ignore_ascii_case(b"content-length") => {
                    length = Some(number(value).ok_or(NotARequest::Malformed)?);
                }
                _ if name.eq_ignore_ascii_case(b"content-type") => kind_of_content = value,
                _ if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                    return Err(NotARequest::Length);
                }
                _ if name.eq_ignore_ascii_case(b"expect") => self.expects = true,
                _ => {}
            }
        }
        out.reserve(told.len() + head.len() + BESIDE);
        put(out, kind::BEGIN_REQUEST, &[0, RESPONDER, self.flags(), 0, 0, 0, 0, 0]);
        put_filled(out, kind::PARAMS, |out| {
            out.extend_from_slice(told);
            put_param(out, b"REQUEST_METHOD", &[method]);
            for (at, (name, _)) in fields.iter().enumerate() {
                if !OTHERWISE_TOLD.iter().any(|told| name.eq_ignore_ascii_case(told)) {
                    put_field(out, &fields, at);
                }
            }
            put_param(out, b"CONTENT_TYPE", &[kind_of_content]);
            let mut digits = itoa::Buffer::new();
            let text = length.map_or("", |length| digits.format(length));
            put_param(out, b"CONTENT_LENGTH", &[text.as_bytes()]);
        });
        put(out, kind::PARAMS, b"");
        let length = length.unwrap_or_default();
        if length == 0 {
            put(out, kind::STDIN, b"");
        }
        (self.left, self.asks_head) = (Some(length), method == b"HEAD");
        Ok(())
    }

    fn flags(&self) -> u8 {
        if self.keeps { KEEP_CONNECTION } else { 0 }
    }
}
