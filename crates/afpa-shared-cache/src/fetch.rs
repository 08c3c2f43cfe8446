//! A question to a server, and the requests on all cores that wait for its answer.
//!
//! One request *leads*: it has the exchange with the server, and puts the bytes that arrive here. The others *follow*:
//! they take the bytes from here, each as fast as its client reads.

pub(crate) mod backlog;
pub(crate) mod client;
pub(crate) mod follow;
pub(crate) mod head;
pub(crate) mod invalidate;
pub(crate) mod part;
pub(crate) mod peer;
pub(crate) mod post;
pub(crate) mod question;
pub(crate) mod send;
pub(crate) mod tap;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};

use afpa_cache::{Moment, Object};
use afpa_proxy::exchange::Failure;
use smallvec::SmallVec;

use crate::store::stored::{Draft, StoredResponse};

/// A question to a server that is under way.
#[derive(Debug)]
pub(crate) struct Fetch {
    /// The primary key that is asked for: here, because most answers are not kept, and most keys are short.
    primary: SmallVec<[u8; 96]>,
    /// The primary key as a key of the cache, once an answer is kept.
    key: OnceLock<Arc<[u8]>>,
    /// Hash of the primary key.
    pub(crate) hash: u64,
    /// A moment before the server was asked.
    pub(crate) since: Moment,
    /// Requests can find it.
    is_listed: AtomicBool,
    /// The head has come, and the answer is to be kept.
    is_decided: AtomicBool,
    /// Another machine keeps the answer, and this one does not.
    is_elsewhere: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    phase: Phase,
    /// The content of an answer that arrives. It is here, and no follower holds more of it than it is just sending.
    chunks: Vec<Arc<[u8]>>,
    /// The count of that content, when all of it has come and followers still read it.
    held: Option<Count>,
    /// The wakers of followers, by their place.
    wakers: Vec<Option<Waker>>,
    /// Free places: clients may come and go for as long as an answer is on its way.
    free: Vec<usize>,
}

/// How far it is.
#[derive(Clone, Debug, Default)]
pub(crate) enum Phase {
    /// The head of the answer has not arrived.
    #[default]
    Waiting,
    /// It has, and the answer is to be kept.
    Arriving(Arriving),
    /// All of the answer has arrived: this object.
    Whole(Arc<Object<StoredResponse>>),
    /// A stored response is the answer: because the server says that it is current, or instead of an error.
    Stored(Arc<Object<StoredResponse>>),
    /// The answer is not for others.
    Passed,
    /// No server answered.
    Failed(Failure),
    /// The leading request has gone, or the answer broke off.
    Gone,
}

/// An answer that arrives.
#[derive(Clone, Debug)]
pub(crate) struct Arriving {
    pub(crate) draft: Arc<Draft>,
    /// With the values of the fields that it varies by.
    pub(crate) variant: Arc<[u8]>,
    /// The length that the head announces.
    pub(crate) announced: Option<u64>,
    /// Steady milliseconds at which the head came.
    begun_ms: u64,
    pub(crate) is_whole: bool,
    /// The object that it has become.
    pub(crate) object: Option<Arc<Object<StoredResponse>>>,
}

impl Arriving {
    /// Until when followers wait for all of it, in steady milliseconds; `None`: as long as it takes. An answer without
    /// a length may never end.
    pub(crate) fn waits_until(&self) -> Option<u64> {
        let is_open = self.announced.is_none() && !self.is_whole;
        is_open.then(|| self.begun_ms.saturating_add(SOON_MS))
    }
}

/// How long an answer without a length may take behind its head, in milliseconds, until its followers go to a server
/// themselves.
pub(crate) const SOON_MS: u64 = 250;

/// The next content of an answer for a follower.
#[derive(Debug)]
pub(crate) enum Next {
    /// Content.
    Chunk(Arc<[u8]>),
    /// There is no more.
    End,
    /// The content broke off.
    Broken,
}

/// A count of bytes, which ends when this is dropped.
pub(crate) type Count = Box<dyn std::fmt::Debug + Send + Sync>;

/// The place of a follower in the list of wakers.
#[derive(Debug, Default)]
pub(crate) struct Seat(Option<usize>);

impl Fetch {
    pub(crate) fn new((primary, hash): (&[u8], u64), since: Moment) -> Arc<Self> {
        let (primary, key) = (SmallVec::from_slice(primary), OnceLock::new());
        let (is_listed, is_decided) = (AtomicBool::new(false), AtomicBool::new(false));
        let (is_elsewhere, state) = (AtomicBool::new(false), Mutex::default());
        Arc::new(Self { primary, key, hash, since, is_listed, is_decided, is_elsewhere, state })
    }

    /// The primary key that is asked for.
    pub(crate) fn primary(&self) -> &[u8] {
        &self.primary
    }

    /// The primary key as a key of the cache.
    pub(crate) fn key(&self) -> &Arc<[u8]> {
        self.key.get_or_init(|| self.primary.as_slice().into())
    }

    /// Notes whether requests can find it. Returns whether they could.
    pub(crate) fn set_listed(&self, is_listed: bool) -> bool {
        self.is_listed.swap(is_listed, Ordering::Relaxed)
    }

    /// Notes whether another machine keeps the answer, and this one does not.
    pub(crate) fn set_elsewhere(&self, is_elsewhere: bool) {
        self.is_elsewhere.store(is_elsewhere, Ordering::Relaxed);
    }

    pub(crate) fn is_elsewhere(&self) -> bool {
        self.is_elsewhere.load(Ordering::Relaxed)
    }

    /// Whether a request may still follow.
    pub(crate) fn is_open(&self) -> bool {
        match &self.state().phase {
            Phase::Waiting | Phase::Arriving(_) | Phase::Whole(_) => true,
            Phase::Stored(_) | Phase::Passed | Phase::Failed(_) | Phase::Gone => false,
        }
    }

    /// Whether the head of an answer has come that is to be kept.
    pub(crate) fn has_begun(&self) -> bool {
        self.is_decided.load(Ordering::Relaxed)
            || matches!(self.state().phase, Phase::Arriving(_) | Phase::Whole(_))
    }

    /// Whether the answer is of use to another request than the leading one: to a follower, or to a later request. An
    /// answer that arrives for too long without an announced length may never end; then only followers count.
    pub(crate) fn is_wanted(&self, now_ms: u64) -> bool {
        let state = self.state();
        match &state.phase {
            Phase::Arriving(arriving)
                if arriving.waits_until().is_some_and(|end| end <= now_ms) =>
            {
                state.wakers.iter().any(Option::is_some)
            }
            Phase::Waiting if self.is_decided.load(Ordering::Relaxed) => true,
            Phase::Waiting => state.wakers.iter().any(Option::is_some),
            Phase::Arriving(_) | Phase::Whole(_) => true,
            Phase::Stored(_) | Phase::Passed | Phase::Failed(_) | Phase::Gone => false,
        }
    }

    /// Notes whether an answer is to be kept whose content is expected at once. It arrives together with its content.
    pub(crate) fn decide(&self, is_decided: bool) {
        self.is_decided.store(is_decided, Ordering::Relaxed);
    }

    /// An answer arrives that is to be kept. It replaces an earlier one.
    pub(crate) fn arrive(
        &self,
        (draft, variant): (Arc<Draft>, Arc<[u8]>),
        announced: Option<u64>,
        begun_ms: u64,
    ) {
        let (is_whole, object) = (false, None);
        self.set(Phase::Arriving(Arriving {
            draft,
            variant,
            announced,
            begun_ms,
            is_whole,
            object,
        }));
    }

    /// All of an answer has arrived, as long as its head has announced, and is an object.
    pub(crate) fn arrive_whole(&self, object: Arc<Object<StoredResponse>>) {
        self.set(Phase::Whole(object));
    }

    /// The next content. Each chunk has some: one without any would end content in chunks.
    pub(crate) fn add(&self, data: &[u8]) {
        if data.is_empty() {
            return;
        }
        let mut state = self.state();
        if matches!(state.phase, Phase::Arriving(_)) {
            state.chunks.push(data.into());
        }
        wake(state);
    }

    /// The content so far.
    pub(crate) fn chunks(&self) -> Vec<Arc<[u8]>> {
        self.state().chunks.clone()
    }

    /// All of it has come, and those that follow may go on reading it for long: it counts for as long as this fetch is there.
    pub(crate) fn hold(&self, count: Count) {
        self.state().held = Some(count);
    }

    /// There is no room for what followers still read.
    pub(crate) fn break_off(&self) {
        self.set(Phase::Gone);
    }

    /// The kept object of an answer whose length was announced.
    pub(crate) fn kept(&self) -> Option<Arc<Object<StoredResponse>>> {
        match &self.state().phase {
            Phase::Arriving(Arriving { announced, object: Some(object), .. }) => {
                announced.map(|_| Arc::clone(object))
            }
            Phase::Whole(object) => Some(Arc::clone(object)),
            _ => None,
        }
    }

    /// All of the content is there.
    pub(crate) fn complete(&self, object: Option<Arc<Object<StoredResponse>>>) {
        let mut state = self.state();
        if let Phase::Arriving(arriving) = &mut state.phase {
            (arriving.is_whole, arriving.object) = (true, object);
        }
        wake(state);
    }

    /// How it ended. An answer that has arrived as a whole stays.
    pub(crate) fn end(&self, phase: Phase) {
        let is_whole = match &self.state().phase {
            Phase::Arriving(arriving) => arriving.is_whole,
            Phase::Whole(_) => true,
            _ => false,
        };
        if !is_whole {
            self.set(phase);
        }
    }

    /// The leading request has gone. An outcome that was decided stays.
    pub(crate) fn abandon(&self) {
        if self.is_open() {
            self.end(Phase::Gone);
        }
    }

    /// The phase, once it is another one than [`Phase::Waiting`].
    pub(crate) fn poll_answer(&self, cx: &Context<'_>, seat: &mut Seat) -> Poll<Phase> {
        let mut state = self.state();
        match &state.phase {
            Phase::Waiting => {
                state.sit(cx, seat);
                Poll::Pending
            }
            phase => Poll::Ready(phase.clone()),
        }
    }

    /// Waits until an answer that arrives is whole, or has failed.
    pub(crate) fn poll_whole(&self, cx: &Context<'_>, seat: &mut Seat) -> Poll<()> {
        let mut state = self.state();
        match &state.phase {
            Phase::Arriving(arriving) if !arriving.is_whole => {
                state.sit(cx, seat);
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }

    /// The chunk of a number, of the answer with this draft.
    pub(crate) fn poll_chunk(
        &self,
        cx: &Context<'_>,
        seat: &mut Seat,
        draft: &Arc<Draft>,
        number: usize,
    ) -> Poll<Next> {
        let mut state = self.state();
        let Phase::Arriving(arriving) = &state.phase else { return Poll::Ready(Next::Broken) };
        if !Arc::ptr_eq(&arriving.draft, draft) {
            return Poll::Ready(Next::Broken);
        }
        match (state.chunks.get(number), arriving.is_whole) {
            (Some(chunk), _) => Poll::Ready(Next::Chunk(Arc::clone(chunk))),
            (None, true) => Poll::Ready(Next::End),
            (None, false) => {
                state.sit(cx, seat);
                Poll::Pending
            }
        }
    }

    /// A follower goes.
    pub(crate) fn stand_up(&self, seat: &mut Seat) {
        let Some(place) = seat.0.take() else { return };
        let mut state = self.state();
        if let Some(waker) = state.wakers.get_mut(place) {
            *waker = None;
            state.free.push(place);
        }
    }

    fn set(&self, phase: Phase) {
        let mut state = self.state();
        state.phase = phase;
        let of_before = (std::mem::take(&mut state.chunks), state.held.take());
        wake(state);
        drop(of_before);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn sit(&mut self, cx: &Context<'_>, seat: &mut Seat) {
        let waker = Some(cx.waker().clone());
        match seat.0.and_then(|place| self.wakers.get_mut(place)) {
            Some(place) => *place = waker,
            None => {
                let free = self.free.pop();
                seat.0 = Some(free.unwrap_or(self.wakers.len()));
                match free.and_then(|place| self.wakers.get_mut(place)) {
                    Some(place) => *place = waker,
                    None => self.wakers.push(waker),
                }
            }
        }
    }
}

/// Wakes all, without the lock.
fn wake(mut state: MutexGuard<'_, State>) {
    if state.wakers.is_empty() {
        return;
    }
    let wakers: Vec<Waker> = state.wakers.iter_mut().filter_map(Option::take).collect();
    drop(state);
    wakers.into_iter().for_each(Waker::wake);
}

#[cfg(test)]
mod tests;
