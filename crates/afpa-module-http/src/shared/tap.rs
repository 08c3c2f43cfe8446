//! Judges the answer of a server as it arrives, and keeps it if it may be kept.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afpa_cache::{Object, Payload, Pinned};
use afpa_framework::Now;
use afpa_http::caching::cache_status::{self, Outcome};
use afpa_http::caching::parts::ContentRange;
use afpa_http::caching::store::NotStored;
use afpa_http::caching::{ResponseFacts, reuse};
use afpa_proxy::exchange::{Passing, Tap};
use afpa_proxy::response;
use smallvec::SmallVec;

use super::asking::{Asking, Came, is_about_request};
use super::fetch::Phase;
use super::list::{Content, room_for};
use super::parts::Part;
use super::responses::Responses;
use super::stored::{Draft, StoredResponse};

/// The tap of a question to a server.
#[derive(Debug)]
pub(super) struct Storing {
    asking: Rc<Asking>,
    keeping: Option<Keeping>,
    verdict: Result<(), NotStored>,
    /// Bytes of it that are counted among those on their way.
    counted: usize,
}

#[derive(Debug)]
struct Keeping {
    draft: Arc<Draft>,
    variant: Arc<[u8]>,
    /// The length that the head announces; of a part, that of the whole.
    announced: Option<u64>,
    bytes: usize,
    /// Which part of the whole it is, if it is not all of it.
    part: Option<ContentRange>,
    /// When its head came.
    begun: Now,
    arrival: Arrival,
}

/// How the content arrives.
#[derive(Debug)]
enum Arrival {
    /// It is short, so that it may come all at once. Those who follow are not told before.
    Expected,
    /// It came all at once, and lies in the arena.
    AtOnce(Pinned),
    /// In chunks, which those who follow see.
    Begun,
}

/// The longest content that may come at once; longer content has followers that want it as it comes.
const SHORT: u64 = 32 * 1024;

/// Lines of a head that take no memory of their own.
const LINES: usize = 24;

impl Storing {
    pub(super) fn new(asking: Rc<Asking>) -> Self {
        Self { asking, keeping: None, verdict: Err(NotStored::Status), counted: 0 }
    }

    /// What a 304 means that answers our own question.
    fn not_modified(&self, response: &response::Response<'_, '_>, now: Now) -> Option<Came> {
        let asking = &self.asking;
        let stored = asking.stored.as_ref().filter(|_| asking.validates)?.header().response()?;
        if !stored.draft.is_meant_by(response.end_to_end()) {
            return Some(Came::Mismatch);
        }
        let about = asking.circumstances(now);
        let Ok((draft, facts)) = stored.draft.freshened(response.end_to_end(), about) else {
            return Some(Came::Mismatch);
        };
        // The 304 may have made it an answer for one user, which only the whole of it can be for this one.
        match asking.judge_draft(&draft, &facts) {
            Ok(()) => Some(Came::Current(Arc::new(draft))),
            Err(why) => {
                asking.drop_stored(why);
                Some(Came::Mismatch)
            }
        }
    }

    /// Whether the response may be kept, and as what; of a part, as which one.
    fn judge(
        &self,
        response: &response::Response<'_, '_>,
        now: Now,
    ) -> Result<(Draft, Option<ContentRange>), NotStored> {
        let asking = &*self.asking;
        match response.status {
            206 => asking.judge_part(response, now).map(|(draft, part)| (draft, Some(part))),
            // Other answers to a request for a part may be about that part.
            status if asking.ranged.is_some() && status != 200 => Err(NotStored::Status),
            _ => self.judge_whole(response, now).map(|draft| (draft, None)),
        }
    }

    /// Whether a response that is no part may be kept, and as what.
    pub(super) fn judge_whole(
        &self,
        response: &response::Response<'_, '_>,
        now: Now,
    ) -> Result<Draft, NotStored> {
        let asking = &*self.asking;
        let policy = &*asking.policy;
        // Which lines concern only the connection is found out once.
        let lines: SmallVec<[_; LINES]> = response.end_to_end().collect();
        let lines = lines.iter().copied();
        // Most answers that are not kept are known by little, so that no head is written for them.
        let facts = ResponseFacts::of(response.status, lines.clone(), &policy.targets);
        asking.judge(&facts, policy.life(&facts, now.unix()))?;
        if response.announced().is_some_and(|length| length > policy.largest as u64) {
            return Err(NotStored::TooLong);
        }
        let line = match (response.status, response.reason()) {
            (200, "OK") => Cow::Borrowed("HTTP/1.1 200 OK"),
            (status, reason) => Cow::Owned(format!("HTTP/1.1 {status} {reason}")),
        };
        let about = asking.circumstances(now);
        let draft = Draft::of(facts, line.as_bytes(), lines, about)?;
        asking.judge_vary(&draft).map(|()| draft)
    }

    /// Keeps what arrives. `announced`: the length that the head announces.
    pub(super) fn keep(
        &mut self,
        draft: Draft,
        announced: Option<u64>,
        part: Option<ContentRange>,
        now: Now,
    ) {
        let announced = part.as_ref().map_or(announced, |part| Some(part.complete));
        let asking = &self.asking;
        let draft = Arc::new(draft);
        let variant = asking.key(&draft);
        asking.keeps.set(true);
        let is_short = announced.is_some_and(|length| (1..=SHORT).contains(&length));
        let arrival = if part.is_none() && is_short { Arrival::Expected } else { Arrival::Begun };
        match arrival {
            Arrival::Begun => {
                asking.fetch.arrive(Arc::clone(&draft), Arc::clone(&variant), announced)
            }
            _ => asking.fetch.decide(true),
        }
        let (bytes, begun) = (0, now);
        self.keeping = Some(Keeping { draft, variant, announced, bytes, part, begun, arrival });
        self.verdict = Ok(());
    }

    fn pass(&mut self, why: NotStored, status: u16, now: Now) {
        let asking = &self.asking;
        self.verdict = Err(why);
        asking.keeps.set(false);
        asking.fetch.end(Phase::Passed);
        // What only this request brought about says nothing about the next one.
        let is_own = is_about_request(why) || asking.ranged.is_some();
        if !is_own && why != NotStored::Status {
            let until = (now.steady_ms() / 1000).saturating_add(asking.policy.pass_for);
            asking.responses.passes().note(asking.hash, until);
        }
        if let Some(count) = asking.responses.counts.passed.get(why as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let is_about_all = match asking.ranged {
            None => status < 500,
            Some(_) => matches!(status, 200 | 404 | 410) || status == 206 && why != NotStored::Part,
        };
        if is_about_all {
            // The server has said what goes now, and it is not what is stored.
            asking.drop_stored(why);
        }
        asking.came.replace(Came::Passed);
    }

    fn give_up(&mut self) {
        self.keeping = None;
        self.asking.fetch.decide(false);
        self.asking.keeps.set(false);
        self.asking.fetch.end(Phase::Gone);
        self.asking.came.replace(Came::Passed);
        self.uncount();
    }

    fn uncount(&mut self) {
        let counted = std::mem::take(&mut self.counted);
        self.asking.responses.unbuffer(counted);
    }
}

impl Tap for Storing {
    fn head(&mut self, response: &response::Response<'_, '_>, now: Now) -> Passing {
        if self.keeping.take().is_some() {
            self.asking.fetch.decide(false);
        }
        self.uncount();
        let asking = Rc::clone(&self.asking);
        if response.status == 304
            && let Some(came) = self.not_modified(response, now)
        {
            asking.came.replace(came);
            return Passing::Withheld;
        }
        if reuse::is_error(response.status) && asking.may_replace_error(now) {
            asking.came.replace(Came::Error(response.status));
            return Passing::Withheld;
        }
        asking.came.replace(Came::Nothing);
        match self.judge(response, now) {
            Ok((draft, part)) => self.keep(draft, response.announced(), part, now),
            Err(why) => self.pass(why, response.status, now),
        }
        Passing::On
    }

    fn put_fields(&self, out: &mut Vec<u8>) {
        if self.asking.policy.status_field {
            let (why, stored) = (self.asking.why, self.verdict);
            let outcome = Outcome::Forwarded { why, status: None, stored, collapsed: false };
            out.extend_from_slice(b"Cache-Status: ");
            cache_status::put(&outcome, out);
            out.extend_from_slice(b"\r\n");
        }
    }

    fn content(&mut self, data: &[u8]) {
        let Some(keeping) = &mut self.keeping else { return };
        keeping.bytes = keeping.bytes.saturating_add(data.len());
        if matches!(keeping.arrival, Arrival::Expected) && !data.is_empty() {
            let asking = &self.asking;
            if keeping.announced == Some(data.len() as u64)
                && let Some(bytes) = room_for(&asking.responses, &[data], asking.policy.largest)
            {
                keeping.arrival = Arrival::AtOnce(bytes);
                return;
            }
            keeping.begin(asking);
        }
        if keeping.bytes > self.asking.policy.largest || !self.asking.responses.buffer(data.len()) {
            self.give_up();
        } else {
            self.counted += data.len();
            self.asking.fetch.add(data);
        }
    }

    fn whole(&mut self, now: Now) {
        let Some(keeping) = self.keeping.take() else { return };
        let asking = &self.asking;
        let responses = &asking.responses;
        let list = |content| {
            let place = asking.place(&keeping.variant);
            responses.list(&asking.policy, &place, Arc::clone(&keeping.draft), content, now)
        };
        let object = match (&keeping.arrival, &keeping.part) {
            (Arrival::AtOnce(bytes), _) => {
                let content = Payload::Pinned(bytes.clone());
                list(Content::Whole(content, keeping.bytes as u64))
            }
            (_, None) => {
                let chunks = asking.fetch.chunks();
                content_of(responses, &chunks, asking.policy.largest).and_then(list)
            }
            (_, Some(part)) if part.length() == keeping.bytes as u64 => {
                let data = asking.fetch.chunks().concat();
                asking.keep_part(keeping.as_part(&data), now)
            }
            (_, Some(_)) => None,
        };
        responses.passes().forget(asking.hash);
        asking.came.replace(if object.is_some() { Came::Stored } else { Came::Passed });
        responses.leave(&asking.fetch);
        keeping.tell(asking, object);
        self.uncount();
    }
}

impl Keeping {
    /// Those who follow see what arrives from now on.
    fn begin(&mut self, asking: &Asking) {
        asking.fetch.arrive(Arc::clone(&self.draft), Arc::clone(&self.variant), self.announced);
        self.arrival = Arrival::Begun;
    }

    /// Tells those who follow that all has arrived, and what has become of it.
    fn tell(mut self, asking: &Asking, object: Option<Arc<Object<StoredResponse>>>) {
        // What has become of a part is not what the client gets.
        let object = object.filter(|_| self.part.is_none());
        match (std::mem::replace(&mut self.arrival, Arrival::Begun), object) {
            (Arrival::AtOnce(_), Some(object)) => {
                asking.fetch.arrive_whole(self.draft, self.variant, self.announced, object);
            }
            (Arrival::AtOnce(bytes), None) => {
                self.begin(asking);
                asking.fetch.add(&bytes);
                asking.fetch.complete(None);
            }
            (Arrival::Expected, object) => {
                self.begin(asking);
                asking.fetch.complete(object);
            }
            (Arrival::Begun, object) => asking.fetch.complete(object),
        }
    }

    /// What has arrived of it, as a part of the whole.
    fn as_part<'a>(&'a self, data: &'a [u8]) -> Part<'a> {
        let (start, complete) = match &self.part {
            Some(part) => (part.range.start, part.complete),
            None => (0, self.announced.unwrap_or_default()),
        };
        Part { draft: Arc::clone(&self.draft), variant: &self.variant, start, complete, data }
    }
}

impl Drop for Storing {
    /// What is being kept then has broken off.
    fn drop(&mut self) {
        if let Some(keeping) = self.keeping.take() {
            let data = self.asking.fetch.chunks().concat();
            if data.len() == keeping.bytes {
                self.asking.keep_start(keeping.as_part(&data), keeping.begun);
            }
        }
        self.uncount();
    }
}

/// The chunks as content; `None`: there is no room. No bytes need no room.
fn content_of(responses: &Responses, chunks: &[Arc<[u8]>], largest: usize) -> Option<Content> {
    let chunks: Vec<&[u8]> = chunks.iter().map(|chunk| &**chunk).collect();
    let len: usize = chunks.iter().map(|chunk| chunk.len()).sum();
    if len == 0 {
        return Some(Content::Nothing);
    }
    let bytes = room_for(responses, &chunks, largest)?;
    Some(Content::Whole(Payload::Pinned(bytes), len as u64))
}
