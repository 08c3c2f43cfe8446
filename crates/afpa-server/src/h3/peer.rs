//! One connection of QUIC: HTTP/3's own streams, and the streams of requests.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::task::Waker;
use std::time::{Duration, Instant};

use afpa_framework::{Peer as Client, Secured};
use afpa_h2::Urgency;
use afpa_h3::{Control, ErrorCode, Fatal};
use afpa_tls::Facts;
use bytes::Bytes;
use foldhash::fast::RandomState;
use quinn_proto::{ConnectionHandle, Dir, StreamId, VarInt};

use super::touched::Touched;
use crate::limits::{Admission, Held};

/// A connection, shared by the endpoint's task and those of its streams.
pub(super) struct Peer {
    pub(super) quic: quinn_proto::Connection,
    pub(super) h3: afpa_h3::Connection,
    pub(super) handle: ConnectionHandle,
    pub(super) touched: Rc<Touched>,
    pub(super) client: Client,
    /// The results of the handshake, once it is complete.
    pub(super) secured: Option<Rc<Secured>>,
    /// These results as far as they are known, once requests have come as early data.
    pub(super) early: Option<(Facts, Rc<Secured>)>,
    /// Our control stream, and what it could not take yet.
    control: Option<(StreamId, Vec<u8>)>,
    /// Streams of requests whose tasks run.
    pub(super) streams: HashMap<StreamId, Waiting, RandomState>,
    /// Priorities of requests that have not come yet.
    early_priorities: HashMap<StreamId, Urgency, RandomState>,
    /// One more than the number of the latest request.
    next_request: u64,
    /// GOAWAY was sent: later requests are refused.
    leaving: bool,
    /// The client has a GOAWAY that refuses nothing yet.
    is_announced: bool,
    /// When the handshake has to be complete, the connection ends because no request came, or the client is asked for a
    /// sign of life.
    timer: Option<(Instant, Due)>,
    /// When the endpoint looks at its timers next.
    pub(super) alarm: Option<Instant>,
    /// A place among the handshakes in progress.
    handshake_place: Option<Admission>,
    /// Of one whose client has not proved its address.
    pub(super) unproven: Option<Admission>,
    /// Its place among the connections.
    pub(super) admission: Admission,
    /// Its entry in the worker's table: a core that drains waits for it.
    pub(super) entry: Option<usize>,
    pub(super) is_lost: bool,
    /// Streams whose answer is whole, and which the client has not acknowledged.
    unacknowledged: HashSet<StreamId, RandomState>,
    /// When the client had all of the last answer, or its handshake was complete.
    answered: Option<Instant>,
    /// Frames of content that had been sent when its timer was looked at last.
    sent: u64,
}

/// Frames of content that a client takes at least in the time of an idle connection, while answers wait for it.
const LEAST_FRAMES: u64 = 16;

/// The reason why a connection is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// The handshake takes too long.
    Handshake,
    /// No request has come for too long.
    Idle,
    /// A client that waits for its answer may be gone, and routers may forget it.
    Sign,
}

/// How long a client may read an answer that it has, before a connection without further requests ends.
const READING: Duration = Duration::from_secs(1);

/// How long the end of a listener waits for handshakes.
const LAST_HANDSHAKES: Duration = Duration::from_secs(2);

/// How often clients that wait for an answer are asked for a sign of life.
const SIGN: Duration = Duration::from_secs(10);

/// The tasks of a stream that wait.
#[derive(Default)]
pub(super) struct Waiting {
    /// The client wants no answer any more.
    pub(super) is_stopped: bool,
    pub(super) receiver: Option<Waker>,
    pub(super) sender: Option<Waker>,
    /// For the end of the handshake.
    pub(super) handshake: Option<Waker>,
    /// Its priority came by a frame, which holds whatever the request says.
    has_priority: bool,
}

impl Waiting {
    fn wake(&mut self) {
        let all = [self.receiver.take(), self.sender.take(), self.handshake.take()];
        all.into_iter().flatten().for_each(Waker::wake);
    }
}

/// The highest number of a request's stream.
const LAST_REQUEST: u64 = (1 << 62) - 4;

/// The priority of our control stream: above those of all requests.
const OWN: i32 = 8;

/// Priorities that are kept for requests that have not come.
const MOST_EARLY: usize = 32;

impl Peer {
    pub(super) fn new(
        (handle, quic): (ConnectionHandle, quinn_proto::Connection),
        limits: afpa_h3::Limits,
        touched: &Rc<Touched>,
        client: Client,
        Held { handshake, connection, unproven }: Held,
        handshake_deadline: Instant,
    ) -> Self {
        Self {
            quic,
            h3: afpa_h3::Connection::new(limits),
            handle,
            touched: Rc::clone(touched),
            client,
            secured: None,
            early: None,
            control: None,
            streams: HashMap::default(),
            early_priorities: HashMap::default(),
            next_request: 0,
            leaving: false,
            is_announced: false,
            timer: Some((handshake_deadline, Due::Handshake)),
            alarm: None,
            handshake_place: Some(handshake),
            unproven,
            admission: connection,
            entry: None,
            is_lost: false,
            unacknowledged: HashSet::default(),
            answered: None,
            sent: 0,
        }
    }

    /// The handshake is complete: opens our control stream.
    pub(super) fn begin(&mut self, secured: Rc<Secured>) {
        self.secured = Some(secured);
        self.timer = None;
        self.handshake_place = None;
        // Its first requests are on their way: an end comes no sooner than the client has heard that they are refused.
        self.answered = Some(Instant::now());
        self.open_control();
        if self.early.take().is_some() {
            self.streams.values_mut().for_each(|waiting| {
                waiting.handshake.take().into_iter().for_each(Waker::wake);
                // One that waits for more of its request has another time for that now.
                waiting.receiver.take().into_iter().for_each(Waker::wake);
            });
        }
    }

    /// Opens our control stream, if the client lets us.
    pub(super) fn open_control(&mut self) {
        if self.secured.is_none() && self.early.is_none() || self.control.is_some() {
            return;
        }
        if let Some(id) = self.quic.streams().open(Dir::Uni) {
            let mut settings = Vec::new();
            let _ = self.quic.send_stream(id).set_priority(OWN);
            self.h3.open(&mut settings);
            self.control = Some((id, settings));
            self.send_control();
        }
    }

    /// Sends what our control stream has to say, as far as the client takes it.
    pub(super) fn send_control(&mut self) {
        if let Some((id, waiting)) = &mut self.control
            && !waiting.is_empty()
        {
            let written = self.quic.send_stream(*id).write(waiting).unwrap_or_default();
            waiting.drain(..written);
        }
    }

    /// Tells the client that the connection will end: it sends no further requests when it knows, and those that are under
    /// way are answered (RFC 9114 section 5.2).
    pub(super) fn announce(&mut self) {
        if let Some((_, waiting)) = &mut self.control
            && !std::mem::replace(&mut self.is_announced, true)
        {
            afpa_h3::Connection::put_goaway(waiting, LAST_REQUEST);
            self.send_control();
        }
    }

    /// Asks the client for no further requests (RFC 9114 section 5.2). One whose handshake is nearly complete may have sent
    /// some already. If the connection were closed, it could not know that nobody has looked at them.
    pub(super) fn leave(&mut self) {
        if self.secured.is_none() {
            let latest = Instant::now() + LAST_HANDSHAKES;
            self.timer = self.timer.map(|(end, due)| (end.min(latest), due));
            return;
        }
        if std::mem::replace(&mut self.leaving, true) {
            return;
        }
        if let Some((_, waiting)) = &mut self.control {
            // Requests in flight may still come: those that have not been seen are refused. A client that had its last answer long
            // ago has this time, too: a close would overtake the GOAWAY, and it could not know that its request may be sent again.
            afpa_h3::Connection::put_goaway(waiting, self.next_request);
            self.answered = Some(Instant::now());
            self.send_control();
        }
    }

    /// When it may end: it has said so, no request is being answered, and the client has all answers. A client may lose with
    /// the connection the bytes that it has not read yet, so the end comes some time after the last answer.
    pub(super) fn done_at(&self, now: Instant) -> Option<Instant> {
        let is_done = self.leaving
            && !self.is_lost
            && self.streams.is_empty()
            && self.unacknowledged.is_empty();
        is_done.then(|| self.answered.map_or(now, |answered| answered + READING))
    }

    /// The end of an answer was given to the connection.
    pub(super) fn finish(&mut self, id: StreamId) {
        if self.quic.send_stream(id).finish().is_ok() {
            self.unacknowledged.insert(id);
        }
        self.touched.touch(self.handle);
    }

    /// The rest of an answer does not come.
    pub(super) fn break_off(&mut self, id: StreamId, code: ErrorCode) {
        let _ = self.quic.send_stream(id).reset(code_of(code));
        self.touched.touch(self.handle);
    }

    /// The client has all of an answer.
    pub(super) fn finished(&mut self, id: StreamId, now: Instant) {
        if self.unacknowledged.remove(&id) {
            self.answered = Some(now);
        }
    }

    /// The client wants no answer any more.
    ///
    /// # Errors
    /// [`Fatal`]: that was too often, or the connection needs this stream.
    pub(super) fn stopped(&mut self, id: StreamId, code: VarInt, now_ms: u64) -> Result<(), Fatal> {
        // QUIC keeps the stream until we have reset it, and the client may not open another one for it.
        let _ = self.quic.send_stream(id).reset(code);
        self.unacknowledged.remove(&id);
        if self.control.as_ref().is_some_and(|(control, _)| *control == id) {
            return Err(Fatal {
                code: ErrorCode::ClosedCriticalStream,
                why: "the control stream was stopped",
            });
        }
        match self.streams.get_mut(&id) {
            Some(waiting) => {
                waiting.is_stopped = true;
                waiting.wake();
                self.h3.charge_reset(now_ms)
            }
            None => Ok(()),
        }
    }

    /// Notes whether requests are being answered, which decides when the connection is looked at.
    pub(super) fn note_idle(&mut self, now: Instant, idle: Duration) {
        if self.secured.is_none() || self.is_lost {
            return;
        }
        if let Some(end) = self.done_at(now) {
            self.timer = Some((end, Due::Idle));
            return;
        }
        let (due, after) = match self.streams.is_empty() {
            true => (Due::Idle, idle),
            false => (Due::Sign, SIGN),
        };
        if self.timer.is_none_or(|(_, before)| before != due) {
            self.timer = now.checked_add(after).map(|when| (when, due));
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.timer.map(|(when, _)| when)
    }

    /// The first of all its timers.
    pub(super) fn first_timer(&mut self) -> Option<Instant> {
        [self.quic.poll_timeout(), self.deadline()].into_iter().flatten().min()
    }

    /// The timer, if it is due; it is set again by [`note_idle`](Self::note_idle).
    pub(super) fn due(&mut self, now: Instant) -> Option<Due> {
        let (_, due) = self.timer.take_if(|(when, _)| *when <= now)?;
        let sent = self.quic.stats().frame_tx.stream;
        let moved = sent - std::mem::replace(&mut self.sent, sent);
        // A slow client may still be getting the rest of its answers.
        let is_slow = !self.unacknowledged.is_empty() && moved >= LEAST_FRAMES;
        (due != Due::Idle || !is_slow).then_some(due)
    }

    /// Ends the connection for a fault of the client.
    pub(super) fn fail(&mut self, fatal: Fatal, now: Instant) {
        tracing::debug!(%fatal, "a connection of HTTP/3 ends");
        self.close(fatal.code, now);
    }

    pub(super) fn close(&mut self, code: ErrorCode, now: Instant) {
        self.quic.close(now, code_of(code), Bytes::new());
        self.lose();
    }

    /// The connection is gone: its streams' tasks end.
    pub(super) fn lose(&mut self) {
        self.is_lost = true;
        self.timer = None;
        self.handshake_place = None;
        self.unproven = None;
        self.unacknowledged.clear();
        self.streams.values_mut().for_each(Waiting::wake);
    }

    /// Appends the streams of requests that the client has opened since. Those behind a GOAWAY are refused.
    pub(super) fn accept(&mut self, opened: &mut Vec<StreamId>) {
        while let Some(id) = self.quic.streams().accept(Dir::Bi) {
            if self.leaving || self.is_lost {
                self.refuse(id, ErrorCode::RequestRejected);
                continue;
            }
            self.next_request = self.next_request.max(VarInt::from(id).into_inner() + 4);
            // A priority that no PRIORITY_UPDATE gave comes with the request, before anything is sent.
            let told = match self.early_priorities.is_empty() {
                true => None,
                false => self.early_priorities.remove(&id),
            };
            let has_priority = told.is_some();
            self.streams.insert(id, Waiting { has_priority, ..Waiting::default() });
            told.into_iter().for_each(|urgency| self.set_priority(id, urgency));
            opened.push(id);
        }
    }

    /// Ends a stream in both directions.
    pub(super) fn refuse(&mut self, id: StreamId, code: ErrorCode) {
        let _ = self.quic.recv_stream(id).stop(code_of(code));
        let _ = self.quic.send_stream(id).reset(code_of(code));
    }

    /// Reads what has come on a unidirectional stream.
    ///
    /// # Errors
    /// [`Fatal`]: the connection has to end.
    pub(super) fn read_control(&mut self, id: StreamId, now_ms: u64) -> Result<(), Fatal> {
        let number = VarInt::from(id).into_inner();
        loop {
            let mut stream = self.quic.recv_stream(id);
            let Ok(mut chunks) = stream.read(true) else { return Ok(()) };
            let chunk = chunks.next(16 * 1024);
            let _ = chunks.finalize();
            let bytes = match chunk {
                Ok(Some(chunk)) => chunk.bytes,
                Ok(None) | Err(quinn_proto::ReadError::Reset(_)) => {
                    self.h3.ended(number)?;
                    return self.h3.charge(now_ms);
                }
                Err(quinn_proto::ReadError::Blocked) => return Ok(()),
            };
            let mut said = Vec::new();
            self.h3.read(number, &bytes, now_ms, |control| said.push(control))?;
            for control in said {
                match control {
                    Control::Priority(id, urgency) => {
                        let Ok(id) = VarInt::from_u64(id) else { continue };
                        self.on_priority(StreamId::from(id), urgency);
                    }
                    Control::Stop(_) => {
                        let code = code_of(ErrorCode::StreamCreation);
                        let _ = self.quic.recv_stream(id).stop(code);
                        return Ok(());
                    }
                }
            }
        }
    }

    fn on_priority(&mut self, id: StreamId, urgency: Urgency) {
        if let Some(waiting) = self.streams.get_mut(&id) {
            waiting.has_priority = true;
            self.set_priority(id, urgency);
        } else if VarInt::from(id).into_inner() >= self.next_request
            && self.early_priorities.len() < MOST_EARLY
        {
            self.early_priorities.insert(id, urgency);
        }
    }

    /// The priority that a request has in its head (RFC 9218 section 5), unless a frame has said another one (section 7).
    pub(super) fn ask_priority(&mut self, id: StreamId, urgency: Urgency) {
        // Streams begin with the usual one.
        let is_usual = urgency.urgency == Urgency::default().urgency;
        if !is_usual && self.streams.get(&id).is_none_or(|waiting| !waiting.has_priority) {
            self.set_priority(id, urgency);
        }
    }

    /// RFC 9218 section 10: the more urgent first; those of one urgency take turns.
    fn set_priority(&mut self, id: StreamId, urgency: Urgency) {
        let usual = i32::from(Urgency::default().urgency);
        let _ = self.quic.send_stream(id).set_priority(usual - i32::from(urgency.urgency));
    }

    /// The client may be able to take bytes of a stream, or has sent some.
    pub(super) fn wake_sender(&mut self, id: StreamId) {
        match self.streams.get_mut(&id) {
            Some(waiting) => waiting.sender.take().into_iter().for_each(Waker::wake),
            None => self.send_control(),
        }
    }

    pub(super) fn wake_receiver(&mut self, id: StreamId) {
        if let Some(waiting) = self.streams.get_mut(&id) {
            waiting.receiver.take().into_iter().for_each(Waker::wake);
        }
    }
}

pub(super) fn code_of(code: ErrorCode) -> VarInt {
    VarInt::from_u64(code as u64).unwrap_or(VarInt::MAX)
}
