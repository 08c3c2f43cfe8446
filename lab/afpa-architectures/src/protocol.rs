//! The protocol handler: from the bytes that arrived to the answer that is to be sent. It knows
//! nothing of sockets, and the strategies nothing of HTTP.

use std::sync::Arc;

use afpa_cache::root::FileBody;
use afpa_cache::{Lookup, Object, View};
use afpa_http::request::parse;
use afpa_http::{
    BodyLength, Connection, FieldSlots, Method, Precondition, Request, RequestLimits, ResponseHead,
    Status, Validators, Version, conditional, page, target,
};
use bytes::Bytes;

use crate::clock::{self, Date};
use crate::content::{Content, Header, Loaded, file_of};
use crate::{Options, Without};

/// One for each thread of control.
#[derive(Debug)]
pub struct Handler {
    content: Arc<Content>,
    view: View<Header>,
    date: Date,
    cached_headers: bool,
    closes: bool,
    /// For paths that are not in their normal form.
    scratch: Vec<u8>,
}

/// The next thing to do on a connection.
#[derive(Debug)]
pub enum Step {
    /// Read: the request is not complete.
    More,
    /// Load this path ([`Content::load`]), and call again with the result.
    Miss(Vec<u8>),
    /// Send the head that was written, then the body.
    Answer(Answer),
}

/// An answer, but for its head.
#[derive(Debug)]
pub struct Answer {
    /// Bytes of the input that the request took.
    pub consumed: usize,
    /// The content that follows the head.
    pub body: Body,
    /// Whether another request may follow.
    pub keep: bool,
}

/// The content of an answer.
#[derive(Clone, Debug)]
pub enum Body {
    /// Nothing.
    None,
    /// Bytes in memory.
    Memory(Bytes),
    /// An open file and its length.
    File(Arc<FileBody>, u64),
}

impl Handler {
    /// A handler of `content` with the optimisations of `options`.
    pub fn new(content: &Arc<Content>, options: &Options, closes: bool) -> Self {
        Self {
            view: content.view(),
            content: Arc::clone(content),
            date: Date::new(options.has(Without::LazyDate)),
            cached_headers: options.has(Without::CachedHeaders),
            closes,
            scratch: Vec::new(),
        }
    }

    /// Where misses are loaded.
    pub fn content(&self) -> &Arc<Content> {
        &self.content
    }

    /// The answer to the first request of `input`; its head is written into `head`. `loaded` is the result of a
    /// [`Step::Miss`] for the same input.
    pub fn answer(&mut self, input: &[u8], loaded: Option<Loaded>, head: &mut Vec<u8>) -> Step {
        head.clear();
        let mut slots = FieldSlots::default();
        let request = match parse(input, &mut slots, &RequestLimits::default()) {
            Ok(Some(request)) => request,
            Ok(None) => return Step::More,
            // After a syntax error the next request's start is not known: drop the input, and the connection.
            Err(refusal) => return self.refuse(refusal.status(), input.len(), head),
        };
        if request.body != BodyLength::None {
            return self.refuse(Status::CONTENT_TOO_LARGE, input.len(), head);
        }
        if !matches!(request.method, Method::Get | Method::Head) {
            return self.fail(&request, Status::METHOD_NOT_ALLOWED, head);
        }
        match loaded {
            Some(Ok(object)) => self.respond(&request, &object, head),
            Some(Err(status)) => self.fail(&request, status, head),
            None => self.look_up(&request, head),
        }
    }

    fn look_up(&mut self, request: &Request<'_, '_>, head: &mut Vec<u8>) -> Step {
        let path = request.target.path().unwrap_or_default();
        let mut scratch = std::mem::take(&mut self.scratch);
        let step = match target::normalise(path, &mut scratch) {
            Err(error) => self.fail(request, error.status(), head),
            Ok(path) => match self.find(path) {
                None => Step::Miss(path.to_vec()),
                Some(object) => self.respond(request, &object, head),
            },
        };
        self.scratch = scratch;
        step
    }

    fn find(&mut self, path: &[u8]) -> Option<Arc<Object<Header>>> {
        let _whole = self.content.lock();
        match self.view.get(0, path, clock::now()) {
            Lookup::Hit(object) => Some(Arc::clone(object)),
            Lookup::Miss | Lookup::Recheck(_) => None,
        }
    }

    fn respond(
        &mut self,
        request: &Request<'_, '_>,
        object: &Object<Header>,
        head: &mut Vec<u8>,
    ) -> Step {
        let header = object.header();
        let validators = Validators { etag: &header.etag, last_modified: header.last_modified };
        match conditional::evaluate(request, &validators) {
            Precondition::Failed => self.fail(request, Status::PRECONDITION_FAILED, head),
            Precondition::NotModified => {
                let made = (!self.cached_headers).then(|| header.make_not_modified());
                self.write(made.as_ref().unwrap_or(&header.not_modified), request, head);
                self.sent(request, Body::None)
            }
            Precondition::Proceed => {
                let made = (!self.cached_headers).then(|| header.make_ok());
                self.write(made.as_ref().unwrap_or(&header.ok), request, head);
                self.sent(request, body_of(request, object))
            }
        }
    }

    fn sent(&self, request: &Request<'_, '_>, body: Body) -> Step {
        Step::Answer(Answer { consumed: request.head_len, body, keep: self.keeps(request) })
    }

    /// Answers a request that was understood with an error; the connection goes on.
    fn fail(&mut self, request: &Request<'_, '_>, status: Status, head: &mut Vec<u8>) -> Step {
        let (error, page) = error(status);
        self.write(&error, request, head);
        let body = if request.method == Method::Head { Body::None } else { Body::Memory(page) };
        self.sent(request, body)
    }

    /// Answers input that is no request; the connection ends.
    fn refuse(&mut self, status: Status, consumed: usize, head: &mut Vec<u8>) -> Step {
        let (error, page) = error(status);
        error.write(head, self.date.at(clock::today()), Connection::Close);
        Step::Answer(Answer { consumed, body: Body::Memory(page), keep: false })
    }

    fn write(&mut self, from: &ResponseHead, request: &Request<'_, '_>, head: &mut Vec<u8>) {
        let connection = match (self.keeps(request), request.version) {
            (false, _) => Connection::Close,
            (true, Version::Http10) => Connection::KeepAlive,
            (true, Version::Http11 | Version::Http2 | Version::Http3) => Connection::Implied,
        };
        from.write(head, self.date.at(clock::today()), connection);
    }

    fn keeps(&self, request: &Request<'_, '_>) -> bool {
        request.keep_alive && !self.closes
    }
}

fn body_of(request: &Request<'_, '_>, object: &Object<Header>) -> Body {
    if request.method == Method::Head || object.header().length == 0 {
        return Body::None;
    }
    match &object.header().pinned {
        Some(bytes) => Body::Memory(bytes.clone()),
        None => file_of(object).map_or(Body::None, |(file, length)| Body::File(file, length)),
    }
}

fn error(status: Status) -> (ResponseHead, Bytes) {
    let page = page::error_page(status);
    let allow = (status == Status::METHOD_NOT_ALLOWED).then_some("GET, HEAD");
    let head = ResponseHead::build(status)
        .field("Content-Type", page::CONTENT_TYPE)
        .content_length(page.len() as u64)
        .field_if("Allow", allow);
    (head.finish(), Bytes::from(page))
}

#[cfg(test)]
mod tests;
