//! One client connection. Its loop, `serve`, reads like the state diagram.
//!
//! `receive` waits for data. In the *deferred-interrupt context*, `interrupt` derives every request in the
//! data and answers it from the cache. `send` sends the gathered answers. A request that the cache cannot
//! answer goes through the *thread context* (`thread`) first.

mod at_once;
mod data;
mod early;
mod file;
mod hand_over;
mod interrupt;
mod receive;
mod remote;
mod send;
mod thread;

use std::future::{poll_fn, ready};
use std::pin::Pin;
use std::rc::Rc;

use afpa_framework::steps::after;
use afpa_framework::{Module, Persistence, Secured, State, Timeout};
use afpa_h2::Beginning;

use crate::h2::H2;
use crate::transport::Transport;
use data::Next;
pub(crate) use data::{Connection, End, millis};
use receive::Received;

pub(crate) use remote::SHORT;
pub(crate) use send::say_last_words;

impl<M: Module, T: Transport> Connection<M, T> {
    /// Serves the connection until either side ends it.
    pub(crate) async fn run(mut self)
    where
        T: 'static,
    {
        let end = match self.serve().await {
            End::IsH2 => return self.go_on_as_h2().await,
            end => end,
        };
        self.end(end).await;
    }

    /// In a box, as all that few connections need: the task of a connection has the size of its longest branch. A task keeps the
    /// code of every branch, so this one is chosen outside of it, and is no part of programs where it cannot be taken.
    fn go_on_as_h2(self) -> Pin<Box<dyn Future<Output = ()>>>
    where
        T: 'static,
    {
        if M::TAKES_STREAMS && T::MAY_BE_H2 {
            Box::pin(H2::new(self).run())
        } else {
            Box::pin(ready(()))
        }
    }

    /// Serves the connection as one of HTTP/2, whose preface is still to come.
    pub(crate) async fn run_h2(self) {
        H2::new(self).run().await;
    }

    /// Closes the connection as its end demands.
    pub(crate) async fn end(mut self, end: End) {
        match end {
            End::Finished => send::linger(&mut self).await,
            End::Aborted => self.worker.counters.aborted.add(1),
            End::AsAsked | End::Idle => poll_fn(|cx| self.transport.poll_goodbye(cx)).await,
            End::Gone | End::IsH2 => {}
        }
    }

    /// The transport has agreed on this with the client.
    pub(crate) fn secured(&mut self, secured: Rc<Secured>) {
        self.worker.module.borrow_mut().secured(&mut self.data, secured);
    }

    async fn serve(&mut self) -> End {
        loop {
            let next = match self.begun.take() {
                Some(begun) => begun.0,
                None => {
                    let arrived = match self.receive().await {
                        Received::Data(arrived) => arrived,
                        Received::TimedOut(why) => return self.time_out(why).await,
                        Received::Draining => return End::Idle,
                        // The client may still want to know that nothing more comes.
                        Received::Ended if self.early.is_none() => return End::Idle,
                        Received::Ended | Received::Gone => return End::Gone,
                    };
                    if self.may_be_h2 && self.is_h2(arrived) {
                        return End::IsH2;
                    }
                    self.interrupt_context(arrived)
                }
            };
            let waited = matches!(next, Next::Thread(_));
            let persistence = match next {
                Next::Receive => Persistence::Keep,
                Next::Close => Persistence::Close,
                Next::CloseAsAsked => Persistence::CloseAsAsked,
                Next::Thread(step) => match pinned(|| self.thread_context(step)).await {
                    Ok(persistence) => persistence,
                    Err(end) => return end,
                },
            };
            if let Err(end) = self.send_response().await {
                return end;
            }
            if self.broken {
                return End::Aborted;
            }
            if after::<M::Table>(persistence) == State::DeriveRequest {
                continue;
            }
            if let Err(end) = self.finish_handshake_to_close().await {
                return end;
            }
            return match persistence {
                Persistence::CloseAsAsked if self.can_close(waited) => End::AsAsked,
                _ => End::Finished,
            };
        }
    }

    /// Whether the first bytes are for HTTP/2. They are kept then.
    fn is_h2(&mut self, arrived: usize) -> bool {
        let worker = Rc::clone(&self.worker);
        let scratch = worker.scratch.borrow();
        let input = scratch.get(..arrived).unwrap_or_default();
        let beginning = Beginning::of(input);
        if beginning == Beginning::Http2 {
            self.keep(input);
        }
        self.may_be_h2 = beginning == Beginning::Open;
        beginning == Beginning::Http2
    }

    /// Whether the connection can be closed at once without destroying a response on its way: nothing that the client
    /// has sent is unread, and no more than an initial window is in flight. A client may send more against its word, or
    /// bytes may have come while a server or thread was `waited` for; with them unread, the close resets the connection
    /// (RFC 9112, section 9.6).
    fn can_close(&self, waited: bool) -> bool {
        self.input.is_empty()
            && self.in_flight <= INITIAL_WINDOW
            && self.transport.is_drained()
            && !(waited && self.transport.has_arrived())
    }

    /// Sends the module's last answer to a client that was too slow.
    async fn time_out(&mut self, why: Timeout) -> End {
        self.worker.counters.timed_out.add(1);
        if let Some(early) = &mut self.early {
            early.time_out();
        }
        {
            let mut module = self.worker.module.borrow_mut();
            let mut out = self.worker.outbox.borrow_mut();
            let now = self.worker.clock.now();
            module.timed_out(&mut self.data, why, &self.input, now, &mut out);
        }
        let silent = self.worker.outbox.borrow().is_empty();
        match self.send_response().await {
            Ok(()) if silent => End::Idle,
            Ok(()) => End::Finished,
            Err(end) => end,
        }
    }
}

/// Bytes that are sent at once, without waiting for an acknowledgement: ten segments (RFC 6928).
const INITIAL_WINDOW: u64 = 10 * 1460;

/// A future in a box, made where it stays. `Box::pin` makes it on the stack and moves it then, and one of these has the
/// size of all that it may become.
pub(crate) fn pinned<F>(make: impl FnOnce() -> F) -> Pin<Box<F>> {
    Box::into_pin(Box::write(Box::new_uninit(), make()))
}
