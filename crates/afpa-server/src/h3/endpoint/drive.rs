//! One connection: its events, its requests, its packets, its timer.

use std::cell::RefCell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Context;
use std::time::Instant;

use afpa_framework::Module;
use afpa_h3::ErrorCode;
use afpa_tls::{EarlyData, Facts, Reason};
use quinn_proto::{ConnectionError, ConnectionHandle, Dir, Event, StreamEvent, StreamId};

use super::Served;
use crate::connection::{Connection, millis, pinned};
use crate::h3::congestion;
use crate::h3::peer::Peer;
use crate::h3::stream::Stream;
use crate::worker::early::Early;
use crate::worker::early::secured;

impl<M: Module> Served<M> {
    /// Moves a connection on: its events, its packets, its timer.
    pub(super) fn drive(&mut self, handle: ConnectionHandle, now: Instant, cx: &mut Context<'_>) {
        let Some(shared) = self.peers.get(&handle).map(Rc::clone) else { return };
        let mut peer = shared.borrow_mut();
        loop {
            self.tell_endpoint(&mut peer);
            if let Some(event) = peer.quic.poll() {
                self.on_event(&mut peer, event, now);
            } else if self.opened.is_empty() {
                break;
            } else {
                drop(peer);
                self.begin_requests(&shared, cx);
                // The packets that are sent below have their answers.
                self.touched.forget(handle);
                peer = shared.borrow_mut();
            }
        }
        self.tell(&mut peer);
        if peer.done_at(now).is_some_and(|end| end <= now) {
            peer.close(ErrorCode::NoError, now);
        }
        peer.note_idle(now, self.times.0);
        self.send(&mut peer, now);
        // Packets that were sent may have freed an identifier.
        self.tell_endpoint(&mut peer);
        let is_drained = peer.quic.is_drained();
        // Only QUIC knows a connection longer, for packets that come late: nothing waits for that.
        if peer.is_lost || is_drained {
            let entry = peer.entry.take();
            entry.into_iter().for_each(|entry| self.worker.table.leave(entry));
        }
        if !is_drained {
            return self.set_alarm(&mut peer);
        }
        self.stop_alarm(&mut peer);
        drop(peer);
        self.peers.remove(&handle);
        if self.peers.is_empty() {
            self.worker.h3_buffers.shrink();
            self.worker.h3_answers.shrink();
        }
    }

    /// Exchanges what a connection and the endpoint have to tell each other: identifiers, and that it has ended.
    fn tell_endpoint(&mut self, peer: &mut Peer) {
        while let Some(event) = peer.quic.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(peer.handle, event) {
                peer.quic.handle_event(event);
            }
        }
    }

    fn send(&mut self, peer: &mut Peer, now: Instant) {
        let length = peer.quic.current_mtu();
        let most = self.socket.most_segments(usize::from(length));
        while !self.socket.is_blocked() {
            self.packets.clear();
            let burst = congestion::burst(peer.quic.congestion_state());
            let burst = burst.map_or(most, |bytes| (bytes / u64::from(length)) as usize);
            let segments = burst.clamp(1, most);
            let Some(packet) = peer.quic.poll_transmit(now, segments, &mut self.packets) else {
                return;
            };
            self.worker.counters.sent_bytes.add(packet.size as u64);
            self.socket.send(packet, &self.packets);
        }
        self.blocked.insert(peer.handle);
    }

    fn on_event(&mut self, peer: &mut Peer, event: Event, now: Instant) {
        match event {
            // Its client has answered a packet that only its address gets.
            Event::Connected if peer.unproven.take().is_some() && !self.counts(peer) => {
                self.worker.counters.refused.add(1);
                self.worker.counters.tls.failed(Reason::Limit).add(1);
                peer.close(ErrorCode::ExcessiveLoad, now);
            }
            Event::Connected => {
                let has_early = peer.quic.has_0rtt();
                match self.facts(peer) {
                    Some(facts) => {
                        if has_early && peer.early.is_none() {
                            self.worker.counters.tls.early_data(EarlyData::Accepted);
                        }
                        self.worker.counters.tls.complete(&facts);
                        self.worker.counters.h3_connections.add(1);
                        peer.begin(Rc::new(secured(facts, false)));
                        self.tell(peer);
                        peer.accept(&mut self.opened);
                    }
                    None => {
                        let refused = Reason::PeerCertificate;
                        self.worker.counters.tls.failed(refused).add(1);
                        peer.close(ErrorCode::NoError, now);
                    }
                }
            }
            Event::ConnectionLost { reason } => {
                tracing::debug!(%reason, "a connection of HTTP/3 is lost");
                if peer.secured.is_none() {
                    self.worker.counters.tls.failed(why_failed(&reason)).add(1);
                }
                peer.lose();
            }
            Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                if peer.secured.is_some() || self.begins_early(peer) {
                    peer.accept(&mut self.opened);
                }
            }
            Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
                while let Some(id) = peer.quic.streams().accept(Dir::Uni) {
                    self.read_control(peer, id, now);
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => match id.dir() {
                Dir::Uni => self.read_control(peer, id, now),
                Dir::Bi => peer.wake_receiver(id),
            },
            Event::Stream(StreamEvent::Writable { id }) => peer.wake_sender(id),
            Event::Stream(StreamEvent::Finished { id }) => peer.finished(id, now),
            Event::Stream(StreamEvent::Stopped { id, error_code }) => {
                let now_ms = self.worker.clock.cached_now().steady_ms();
                if let Err(fatal) = peer.stopped(id, error_code, now_ms) {
                    self.worker.counters.h3_faults.add(1);
                    peer.fail(fatal, now);
                }
            }
            Event::Stream(StreamEvent::Available { dir: Dir::Uni }) => peer.open_control(),
            Event::Stream(StreamEvent::Available { dir: Dir::Bi })
            | Event::HandshakeDataReady
            | Event::DatagramReceived
            | Event::DatagramsUnblocked => {}
        }
    }

    /// Whether requests are answered before the handshake is complete: those of early data whose client has proved its address
    /// by a token. Others wait, because anybody may have sent them in the name of that address.
    fn begins_early(&self, peer: &mut Peer) -> bool {
        let may_begin = peer.quic.has_0rtt() && peer.unproven.is_none() && !peer.is_lost;
        if may_begin
            && peer.early.is_none()
            && let Some(facts) = self.facts(peer)
        {
            self.worker.counters.tls.early_data(EarlyData::Accepted);
            peer.early = Some((facts.clone(), Rc::new(secured(facts, true))));
            peer.open_control();
        }
        may_begin && peer.early.is_some()
    }

    fn facts(&self, peer: &Peer) -> Option<Facts> {
        let quic = self.tls.as_ref().and_then(|(_, quic)| quic.as_ref());
        quic.and_then(|quic| quic.facts(peer.quic.crypto_session(), peer.quic.has_0rtt()))
    }

    /// Whether a client whose address is proven now may have the connection.
    fn counts(&self, peer: &mut Peer) -> bool {
        self.worker.proves(&mut peer.admission, peer.client.client)
    }

    fn read_control(&self, peer: &mut Peer, id: StreamId, now: Instant) {
        let now_ms = self.worker.clock.cached_now().steady_ms();
        if let Err(fatal) = peer.read_control(id, now_ms) {
            self.worker.counters.h3_faults.add(1);
            peer.fail(fatal, now);
        }
    }

    /// Gives each new request a connection of its own, as HTTP/1.1 has one. Those whose answers are in memory end at once; the
    /// others go on as tasks.
    fn begin_requests(&mut self, shared: &Rc<RefCell<Peer>>, cx: &mut Context<'_>) {
        let (secured, early, client) = {
            let peer = shared.borrow();
            let early = peer.early.as_ref().filter(|_| peer.secured.is_none());
            let early = early.map(|(facts, so_far)| {
                let left = peer.deadline().map(|end| end.saturating_duration_since(Instant::now()));
                let now_ms = self.worker.clock.now().steady_ms();
                (now_ms + millis(left.unwrap_or_default()), facts.clone(), Rc::clone(so_far))
            });
            (peer.secured.clone(), early, peer.client)
        };
        let secured = secured.or_else(|| early.as_ref().map(|(_, _, so_far)| Rc::clone(so_far)));
        let number = self.settings.borrow().number;
        // All have come by now.
        let now = self.worker.clock.now();
        self.worker.h3_answers.together(self.opened.len());
        for id in self.opened.drain(..) {
            let Some(secured) = secured.clone() else { continue };
            let worker = Rc::clone(&self.worker);
            let stream = Stream::new(&worker, shared, id);
            let mut connection =
                Connection::begun_at(now, worker, stream, (client, number), Vec::new());
            connection.secured(secured);
            connection.early = early
                .as_ref()
                .map(|(deadline_ms, facts, _)| Early::of_stream(*deadline_ms, facts.clone()));
            begin(cx, |cx| {
                // One with early data may have to wait for the handshake.
                let goes_on = connection.early.is_some() || connection.answer_at_once(now, cx);
                goes_on.then(|| pinned(|| connection.run()))
            });
        }
        self.worker.h3_answers.apart();
    }
}

/// Begins a request, and polls what is left of it, which goes on as a task if it is not done. One that panics ends its own
/// stream alone, as a task's panic ends that task.
fn begin<F: Future<Output = ()> + 'static>(
    cx: &mut Context<'_>,
    request: impl FnOnce(&mut Context<'_>) -> Option<Pin<Box<F>>>,
) {
    let rest = catch_unwind(AssertUnwindSafe(|| {
        let mut rest = request(cx)?;
        rest.as_mut().poll(cx).is_pending().then_some(rest)
    }));
    if let Ok(Some(rest)) = rest {
        tokio::task::spawn_local(rest);
    }
}

fn why_failed(lost: &ConnectionError) -> Reason {
    match lost {
        ConnectionError::ConnectionClosed(_) | ConnectionError::ApplicationClosed(_) => {
            Reason::Alert
        }
        ConnectionError::TimedOut | ConnectionError::Reset => Reason::Gone,
        ConnectionError::TransportError(_) => Reason::Malformed,
        _ => Reason::Other,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::poll_fn;

    use super::*;

    /// Says that it was dropped.
    struct Guard(Rc<Cell<u32>>);
    use std::task::Poll;

    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }

    #[test]
    fn a_request_that_panics_at_once_ends_alone() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let dropped = Rc::new(Cell::new(0));
        let all = tokio::task::LocalSet::new();
        all.block_on(&runtime, async {
            for panics in [true, false] {
                let guard = Guard(Rc::clone(&dropped));
                let request = async move {
                    let _guard = guard;
                    assert!(!panics, "as a request might");
                    tokio::task::yield_now().await;
                };
                let mut request = Some(Box::pin(request));
                poll_fn(|cx| {
                    begin(cx, |_| request.take());
                    Poll::Ready(())
                })
                .await;
            }
            assert_eq!(dropped.get(), 1, "its stream is broken off, and the other one goes on");
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
        });
        assert_eq!(dropped.get(), 2);
    }
}
