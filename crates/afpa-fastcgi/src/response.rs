//! The records of an answer, as a response of HTTP/1.1.

use std::io::Write;

use crate::fault::Fault;
use crate::head::{self, Content};
use crate::record::{HEADER, Header, ID, kind};
use crate::stderr::Messages;

/// Reads the answer to one request.
#[derive(Debug)]
pub struct ResponseReader {
    asks_head: bool,
    keeps: bool,
    head_limit: usize,
    /// The header that is being read, and how many of its bytes have come.
    header: ([u8; HEADER], usize),
    record: Header,
    stage: Stage,
    /// The output has ended; the request may go on.
    output_ended: bool,
    messages: Messages,
    /// The content of the record that ends the request, and how many of its bytes have come.
    end: ([u8; HEADER], usize),
    ended: bool,
    /// The program wrote more than its head announces.
    surplus: bool,
    /// Records without content since the last with some.
    idle: u32,
}

#[derive(Debug)]
enum Stage {
    Head(Vec<u8>),
    Content(Content),
}

/// Where the content of the record that ends a request has the protocol's status (FastCGI 1.0 section 5.5).
const STATUS: usize = 4;

/// Bytes by which a head grows.
const BESIDE: usize = 128;

/// Records without content that may follow one another.
const MOST_IDLE: u32 = 256;

impl ResponseReader {
    /// For the answer to a request. Without `keeps`, the server closes the connection behind it. `head_limit`: bytes of
    /// the answer's head.
    pub fn new(asks_head: bool, keeps: bool, head_limit: usize) -> Self {
        let record = Header { kind: 0, id: 0, content: 0, padding: 0 };
        let (stage, messages) = (Stage::Head(Vec::new()), Messages::default());
        Self {
            asks_head,
            keeps,
            head_limit,
            header: ([0; HEADER], 0),
            record,
            stage,
            output_ended: false,
            messages,
            end: ([0; HEADER], 0),
            ended: false,
            surplus: false,
            idle: 0,
        }
    }

    /// Reads from the front of `input`, and appends what comes of it to `out`: about as many bytes at most. Returns how
    /// many bytes it took: all, unless the request has ended.
    ///
    /// # Errors
    /// The first fault of the server; nothing can be read behind it.
    pub fn read(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, Fault> {
        let mut at = 0;
        while !self.ended && at < input.len() {
            let rest = input.get(at..).unwrap_or_default();
            at += match self.record {
                Header { content: 0, padding: 0, .. } => self.read_header(rest, out)?,
                Header { content: 0, padding, .. } => {
                    let taken = rest.len().min(padding.into());
                    self.record.padding -= taken as u8;
                    self.end_record(out)?;
                    taken
                }
                Header { content, .. } => {
                    let taken = rest.len().min(content.into());
                    self.content(rest.get(..taken).unwrap_or_default(), out)?;
                    self.record.content -= taken as u16;
                    self.end_record(out)?;
                    taken
                }
            };
        }
        Ok(at)
    }

    /// Whether the server has ended the request, with success.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether the connection can carry another request, when this one has ended.
    pub fn keeps(&self) -> bool {
        self.ended && self.keeps && !self.surplus
    }

    /// Lines that the program has written for the log; each is one line, escaped and of limited length.
    pub fn messages(&mut self) -> Vec<String> {
        if self.ended { self.messages.finish() } else { self.messages.take() }
    }

    fn read_header(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, Fault> {
        let taken = fill(&mut self.header, input);
        if self.header.1 == HEADER {
            self.header.1 = 0;
            let record = Header::of(self.header.0)?;
            self.begin_record(record)?;
            self.end_record(out)?;
        }
        Ok(taken)
    }

    fn begin_record(&mut self, record: Header) -> Result<(), Fault> {
        match (record.id, record.kind) {
            // A record about the connection; none was asked for, and none does harm.
            (0, _) => {}
            (ID, kind::STDOUT) if self.output_ended => return Err(Fault::AfterEnd),
            (ID, kind::STDOUT) => self.output_ended = record.content == 0,
            (ID, kind::STDERR) => {}
            (ID, kind::END_REQUEST) if usize::from(record.content) != HEADER => {
                return Err(Fault::EndLength(record.content));
            }
            (ID, kind::END_REQUEST) => {}
            (ID, kind) => return Err(Fault::Kind(kind)),
            (id, _) => return Err(Fault::Request(id)),
        }
        self.idle = match (record.id, record.content) {
            (ID, 1..) => 0,
            _ => self.idle + 1,
        };
        if self.idle > MOST_IDLE {
            return Err(Fault::Idle);
        }
        self.record = record;
        Ok(())
    }

    /// If content and padding of a record have come, and it ends the request, so does the answer.
    fn end_record(&mut self, out: &mut Vec<u8>) -> Result<(), Fault> {
        let Header { content: 0, padding: 0, kind: kind::END_REQUEST, id: ID } = self.record else {
            return Ok(());
        };
        match (self.end.0[STATUS], &self.stage) {
            (0, Stage::Head(_)) => return Err(Fault::NoHead),
            (0, Stage::Content(Content::Length(1..))) => return Err(Fault::Short),
            (0, Stage::Content(Content::Chunked)) => out.extend_from_slice(b"0\r\n\r\n"),
            (0, Stage::Content(_)) => {}
            (2, Stage::Head(head)) if head.is_empty() => return Err(Fault::Overloaded),
            (status, _) => return Err(Fault::Refused(status)),
        }
        self.ended = true;
        Ok(())
    }

    fn content(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        match (self.record.id, self.record.kind) {
            (ID, kind::STDOUT) => self.output(bytes, out),
            (ID, kind::STDERR) => {
                self.messages.write(bytes);
                Ok(())
            }
            (ID, kind::END_REQUEST) => {
                fill(&mut self.end, bytes);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn output(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        let Stage::Head(head) = &mut self.stage else {
            self.put_content(bytes, out);
            return Ok(());
        };
        let all = head::joined(std::mem::take(head), bytes);
        match head::end(&all) {
            Some(end) if end <= self.head_limit => {
                let (head, content) = all.split_at(end);
                // It grows by the fields of framing, and what comes behind a chunk.
                out.reserve(all.len() + BESIDE);
                let how = head::translate(head, (self.asks_head, self.keeps), out)?;
                self.stage = Stage::Content(how);
                self.put_content(content, out);
                Ok(())
            }
            None if all.len() < self.head_limit => {
                self.stage = Stage::Head(all.into_owned());
                Ok(())
            }
            _ => Err(Fault::HeadTooLong),
        }
    }

    fn put_content(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let Stage::Content(how) = &mut self.stage else { return };
        match how {
            _ if bytes.is_empty() => {}
            Content::None => {}
            Content::Length(left) => {
                let taken = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= taken as u64;
                self.surplus |= taken < bytes.len();
                out.extend_from_slice(bytes.get(..taken).unwrap_or_default());
            }
            Content::Chunked => {
                // A write into memory cannot fail.
                let _ = write!(out, "{:x}\r\n", bytes.len());
                out.extend_from_slice(bytes);
                out.extend_from_slice(b"\r\n");
            }
        }
    }
}

/// Takes what fits from the front of `input`, and returns how many bytes that were.
fn fill<const N: usize>((bytes, have): &mut ([u8; N], usize), input: &[u8]) -> usize {
    let room = bytes.get_mut(*have..).unwrap_or_default();
    let taken = room.len().min(input.len());
    for (byte, arrived) in room.iter_mut().zip(input) {
        *byte = *arrived;
    }
    *have += taken;
    taken
}
