//! From a request to its answer: the steps of its walk, on a stream.

use std::future::poll_fn;
use std::rc::Rc;

use afpa_framework::{Module, Now, Outbox, Step, Walk};
use afpa_h2::request::Framing;
use afpa_h2::{ErrorCode, RequestHead, ResponseEvent, ResponseReader, StreamId};

use super::H2;
use super::client::StreamClient;
use super::mux::{Held, Mux, StreamState};
use super::outcome::{Asked, Outcome};
use super::upload::Upload;
use crate::connection::millis;
use crate::transport::Transport;

impl<M: Module, T: Transport> H2<M, T> {
    /// Derives a request and its answer, as far as the cache has it.
    pub(super) fn on_request(&mut self, id: StreamId, end: bool, head: &RequestHead, now: Now) {
        let worker = Rc::clone(&self.inner.worker);
        let mut out = worker.outbox.borrow_mut();
        let (early, framing) = (head.waits_for_answer(), head.framing());
        let asked = Asked { id, head: head.asks_head(), early, framing };
        let step = {
            let (mut module, connection) = (worker.module.borrow_mut(), &mut self.inner.data);
            let walk = Walk { module: &mut *module, connection, now, out: &mut out };
            walk.arrived(&mut head.text())
        };
        match step {
            // The content of a refused request is of no use, and the answer does not wait for it.
            Step::Refuse => self.answer(Asked { early: true, ..asked }, &mut out),
            Step::Send(_) | Step::SendRest(_) => {
                worker.counters.answered.add(1);
                self.answer(asked, &mut out);
            }
            Step::Uncached(request) => {
                if self.may_begin(id) {
                    if M::may_need_server(&request) {
                        self.keep_content(asked, end);
                    }
                    self.load(asked, request, now);
                }
            }
            Step::Remote(request) => {
                if self.may_begin(id) {
                    self.keep_content(asked, end);
                    self.exchange(asked, request);
                }
            }
            Step::Receive(_) | Step::Skip => {
                debug_assert!(false, "a head that is complete, or too long, is neither");
                self.mux.borrow_mut().reset(id, ErrorCode::EnhanceYourCalm);
            }
        }
        out.clear();
    }

    /// Whether another stream may get a task. A client that resets its streams may have ended more of them than their
    /// tasks have: it has to wait.
    fn may_begin(&mut self, id: StreamId) -> bool {
        let worker = &self.inner.worker;
        let most = worker.settings.borrow().http2.streams as usize * 2;
        if self.tasks.len() >= most {
            self.mux.borrow_mut().reset(id, ErrorCode::Refused);
            return false;
        }
        worker.counters.left_for_thread.add(1);
        true
    }

    /// Keeps the content of a request for a server.
    fn keep_content(&mut self, asked: Asked, end: bool) {
        let upload = Some(Upload::new(asked.framing, end));
        let stream = StreamState { upload, ..StreamState::default() };
        self.mux.borrow_mut().streams.insert(asked.id, stream);
    }

    /// Throws away the content that was kept for a server: none is asked.
    fn drop_content(&mut self, id: StreamId) {
        let mut mux = self.mux.borrow_mut();
        if let Some(StreamState { upload: Some(upload), .. }) = mux.remove(id) {
            mux.connection.read(id, upload.arrived());
        }
    }

    fn exchange(&mut self, asked: Asked, request: M::Remote) {
        let Asked { id, head, framing, .. } = asked;
        let reader = ResponseReader::new(head, framing == Framing::Tunnel);
        let worker = Rc::clone(&self.inner.worker);
        let mux = Rc::clone(&self.mux);
        let listener = self.inner.worker.table.listener(self.inner.entry);
        let waits = self.inner.early.is_some() && !M::may_go_early(&request);
        self.spawn(id, async move {
            if waits && !poll_fn(|cx| mux.borrow_mut().poll_handshake(cx, id)).await {
                return Outcome::Gone;
            }
            let mut client = StreamClient::new(Rc::clone(&worker), mux, id, reader, listener);
            let work = worker.module.borrow_mut().derive_remote_response(request, &mut client);
            let exchanged = work.await;
            Outcome::Exchanged(asked, exchanged, client)
        });
    }

    /// A stream's task has ended. `None`: it has panicked, which was reported, and has ended its stream.
    pub(super) fn on_outcome(&mut self, outcome: Option<Outcome<M>>) {
        let worker = Rc::clone(&self.inner.worker);
        let mut module = worker.module.borrow_mut();
        let mut out = worker.outbox.borrow_mut();
        let connection = &mut self.inner.data;
        match outcome {
            Some(Outcome::Loaded(asked, loaded)) => {
                let now = worker.clock.now();
                let walk = Walk { module: &mut *module, connection, now, out: &mut out };
                let step = walk.loaded(loaded);
                drop(module);
                self.go_on(asked, step, &mut out);
            }
            Some(Outcome::Exchanged(asked, exchanged, client)) => {
                let now = worker.clock.cached_now();
                let walk = Walk { module: &mut *module, connection, now, out: &mut out };
                let step = walk.exchanged(exchanged);
                if let Step::SendRest(_) = step {
                    if let Some(receipt) = client.finish(&mut out) {
                        module.sent(&receipt, now, 0);
                    }
                } else {
                    drop((module, client));
                    self.go_on(asked, step, &mut out);
                }
            }
            Some(Outcome::Resident(id)) => self.mux.borrow_mut().announce(id),
            Some(Outcome::Gone) | None => {}
        }
        out.clear();
    }

    /// Answers a request whose content was kept, or gives it a task again, unless the client has given it up.
    fn go_on(&mut self, asked: Asked, step: Step<M>, out: &mut Outbox) {
        let now = self.inner.worker.clock.cached_now();
        let is_given_up = !self.mux.borrow().connection.has(asked.id);
        match step {
            Step::Uncached(_) | Step::Remote(_) if is_given_up => {}
            Step::Uncached(request) => self.load(asked, request, now),
            Step::Remote(request) => self.exchange(asked, request),
            _ => {
                self.drop_content(asked.id);
                self.answer(asked, out);
            }
        }
    }

    /// Has a helper thread load the answer.
    fn load(&mut self, asked: Asked, request: M::Uncached, now: Now) {
        let worker = Rc::clone(&self.inner.worker);
        let mut module = worker.module.borrow_mut();
        let work = module.derive_uncached_response(now, request, &worker.helpers.borrow());
        drop(module);
        self.spawn(asked.id, async move { Outcome::Loaded(asked, work.await) });
    }

    /// Gives a stream the answer in the outbox: one head, and content of the length in the head.
    fn answer(&mut self, asked: Asked, out: &mut Outbox) {
        let Asked { id, head, early, .. } = asked;
        let Self { reader, mux, .. } = self;
        let mut mux = mux.borrow_mut();
        if !mux.connection.has(id) {
            return;
        }
        let Some(Answer { block, content, end }) = Answer::read(reader, head, out) else {
            debug_assert!(false, "an answer begins with a head");
            mux.reset(id, ErrorCode::Internal);
            return;
        };
        let held = (mux.connection.expects_content(id) && !early).then(|| Held {
            block: block.to_vec(),
            end,
            arrived: 0,
        });
        if held.is_none() {
            mux.connection.send_head(id, end, |to| to.extend_from_slice(block));
            if end {
                return;
            }
        }
        let at_once = out.parts.is_empty()
            && held.is_none()
            && content.len() <= mux.connection.room(id)
            && (mux.streams.is_empty() || !mux.connection.has_pending());
        if at_once {
            mux.connection.send_data(id, content, true);
            return;
        }
        let worker = &self.inner.worker;
        if !out.parts.is_empty() {
            worker.counters.long_answers.add(1);
        }
        let now = worker.clock.cached_now();
        let deadline_ms = match held {
            Some(_) => now.steady_ms() + millis(worker.settings.borrow().body_timeout),
            None => self.times.write_deadline(now),
        };
        let bytes = content.to_vec().into();
        let stream = StreamState {
            bytes,
            parts: std::mem::take(&mut out.parts),
            whole: true,
            receipt: out.receipt.take(),
            priority: out.priority,
            held,
            deadline_ms,
            ..StreamState::default()
        };
        mux.streams.insert(id, stream);
        mux.announce(id);
    }

    /// Content of a request. Servers read it; an answer of our own waits for its end, because only then it is certain
    /// that the request was well-formed. It does not wait for more than a window of it.
    pub(super) fn on_data(&mut self, id: StreamId, bytes: &[u8], end: bool) {
        let worker = &self.inner.worker;
        let mut mux = self.mux.borrow_mut();
        let length = bytes.len();
        let Mux { connection, streams, .. } = &mut *mux;
        let Some(stream) = streams.get_mut(&id) else { return connection.read(id, length) };
        if let Some(upload) = &mut stream.upload {
            upload.push(bytes, end);
            if let Some(receiver) = stream.receiver.take() {
                receiver.wake();
            }
            return;
        }
        connection.read(id, length);
        let settings = worker.settings.borrow();
        if let Some(held) = &mut stream.held {
            held.arrived += length as u64;
            let is_enough = held.arrived > u64::from(settings.http2.stream_window);
            stream.deadline_ms =
                worker.clock.cached_now().steady_ms() + millis(settings.body_timeout);
            if end || is_enough {
                mux.release(id, self.times.write_deadline(worker.clock.cached_now()));
            }
        }
    }

    pub(super) fn on_trailers(&mut self, id: StreamId, fields: &[u8]) {
        let mut mux = self.mux.borrow_mut();
        if let Some(stream) = mux.streams.get_mut(&id)
            && let Some(upload) = &mut stream.upload
        {
            upload.end(fields);
            if let Some(receiver) = stream.receiver.take() {
                receiver.wake();
            }
        }
        mux.release(id, self.times.write_deadline(self.inner.worker.clock.cached_now()));
    }

    /// The stream is gone.
    pub(super) fn on_reset(&mut self, id: StreamId, now: Now) {
        let removed = self.mux.borrow_mut().remove(id);
        if let Some(StreamState { receipt: Some(receipt), sent, .. }) = removed {
            self.inner.worker.module.borrow_mut().sent(&receipt, now, sent);
        }
    }
}

/// An answer in the outbox.
struct Answer<'a> {
    block: &'a [u8],
    /// The content that stands behind the head in the outbox.
    content: &'a [u8],
    /// There is no content.
    end: bool,
}

impl<'a> Answer<'a> {
    /// One head, with the content behind it: as a field block if a cache object had one, else as HTTP/1.1 has it.
    fn read(reader: &'a mut ResponseReader, asks_head: bool, out: &'a Outbox) -> Option<Self> {
        if let Some((block, content)) =
            out.bytes.split_at_checked(out.block).filter(|_| out.block > 0)
        {
            return Some(Self { block, content, end: content.is_empty() && out.parts.is_empty() });
        }
        reader.renew(asks_head);
        let Ok((n, Some(ResponseEvent::Head { interim: false, end }))) = reader.read(&out.bytes)
        else {
            return None;
        };
        Some(Self { block: reader.block(), content: out.bytes.get(n..).unwrap_or_default(), end })
    }
}
