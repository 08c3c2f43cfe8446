//! Judges the answer of a server as it arrives, and keeps it if it may be kept.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afpa_cache::{Moment, Object, Overtaken, Payload, Pinned};
use afpa_framework::Now;
use afpa_http::caching::cache_status::{self, Outcome};
use afpa_http::caching::parts::ContentRange;
use afpa_http::caching::store::NotStored;
use afpa_http::caching::{ResponseFacts, reuse};
use afpa_proxy::exchange::{Passing, Tap};
use afpa_proxy::response;
use smallvec::SmallVec;

use crate::fetch::Phase;
use crate::fetch::backlog::Held;
use crate::fetch::part::Part;
use crate::fetch::question::{Question, Tapped, is_about_request};
use crate::request::SiteCache;
use crate::store::list::{Content, room_for};
use crate::store::responses::Responses;
use crate::store::stored::{Draft, StoredResponse};

/// The tap of a question to a server.
#[derive(Debug)]
pub(crate) struct Storing<'a> {
    question: &'a Question<'a>,
    /// Whether the exchange goes on without its client.
    goes_on: &'a Cell<bool>,
    /// If the answer is purged after this moment, it is not kept.
    pub(crate) since: Moment,
    tapped: Tapped,
    keeping: Option<Keeping>,
    verdict: Result<(), NotStored>,
    /// Bytes of it that are counted among those on their way.
    counted: usize,
}

#[derive(Debug)]
struct Keeping {
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

/// How the content arrives, behind the head.
#[derive(Debug)]
enum Arrival {
    /// It is short, so that it may come all at once. Followers do not see it before.
    Expected(Draft),
    /// It came all at once, and lies in the arena.
    AtOnce(Draft, Pinned),
    /// In chunks, which followers see.
    Begun(Arc<Draft>),
}

impl Arrival {
    fn draft(&self) -> &Draft {
        match self {
            Arrival::Expected(draft) | Arrival::AtOnce(draft, _) => draft,
            Arrival::Begun(draft) => draft,
        }
    }
}

/// The longest content that may come at once; longer content has followers that want it as it comes.
const SHORT: u64 = 32 * 1024;

/// The memory for a piece of content beside its bytes: its counts, and its place in the list.
const CHUNK_COST: usize = 64;

/// No head has come.
const NOT_YET: Result<(), NotStored> = Err(NotStored::Status);

/// Lines of a head that take no memory of their own.
const LINES: usize = 24;

impl<'a> Storing<'a> {
    pub(crate) fn new(question: &'a Question<'a>, goes_on: &'a Cell<bool>) -> Self {
        let (since, tapped) = (question.fetching.since, Tapped::Nothing);
        Self { question, goes_on, since, tapped, keeping: None, verdict: NOT_YET, counted: 0 }
    }

    /// The outcome, when the exchange has ended.
    pub(crate) fn end(mut self) -> Tapped {
        std::mem::take(&mut self.tapped)
    }

    /// The meaning of a 304 that answers our own question.
    fn not_modified(&self, response: &response::Response<'_, '_>, now: Now) -> Option<Tapped> {
        let question = self.question;
        let stored = question
            .fetching
            .stored
            .as_ref()
            .filter(|_| question.validates)?
            .header()
            .response()?;
        if !stored.draft.is_meant_by(response.end_to_end()) {
            return Some(Tapped::Mismatch);
        }
        let about = question.circumstances(now);
        let Ok((draft, facts)) = stored.draft.freshened(response.end_to_end(), about) else {
            return Some(Tapped::Mismatch);
        };
        // The 304 may have made it an answer for one user, which only the whole of it can be for this one.
        match question.judge_draft(&draft, &facts) {
            Ok(()) => Some(Tapped::Current(Box::new(draft))),
            Err(why) => {
                question.drop_stored(why);
                Some(Tapped::Mismatch)
            }
        }
    }

    /// Whether the response may be kept, and as what; of a part, as which one.
    fn judge(
        &self,
        response: &response::Response<'_, '_>,
        now: Now,
    ) -> Result<(Draft, Option<ContentRange>), NotStored> {
        let question = self.question;
        if response.is_makeshift {
            return Err(NotStored::Uncoded);
        }
        match response.status {
            206 => question.judge_part(response, now).map(|(draft, part)| (draft, Some(part))),
            // Other answers to a request for a part may be about that part.
            status if question.fetching.ranged.is_some() && status != 200 => Err(NotStored::Status),
            _ => self.judge_whole(response, now).map(|draft| (draft, None)),
        }
    }

    /// Whether a response that is no part may be kept, and as what.
    pub(crate) fn judge_whole(
        &self,
        response: &response::Response<'_, '_>,
        now: Now,
    ) -> Result<Draft, NotStored> {
        let question = self.question;
        let policy = &*question.cache.policy;
        // Which lines concern only the connection is found out once.
        let lines: SmallVec<[_; LINES]> = response.end_to_end().collect();
        let lines = lines.iter().copied();
        // Most answers that are not kept are known by little, so that no head is written for them.
        let facts = ResponseFacts::of(response.status, lines.clone(), &policy.targets);
        question.judge(&facts, policy.life(&facts, now.unix()))?;
        if response.announced().is_some_and(|length| length > policy.largest as u64) {
            return Err(NotStored::TooLong);
        }
        let line = match (response.status, response.reason()) {
            (200, "OK") => Cow::Borrowed("HTTP/1.1 200 OK"),
            (status, reason) => Cow::Owned(format!("HTTP/1.1 {status} {reason}")),
        };
        let about = question.circumstances(now);
        let draft = Draft::of(facts, line.as_bytes(), lines, about)?;
        question.judge_vary(&draft).map(|()| draft)
    }

    /// Keeps what arrives. `announced`: the length that the head announces.
    pub(crate) fn keep(
        &mut self,
        draft: Draft,
        announced: Option<u64>,
        part: Option<ContentRange>,
        now: Now,
    ) {
        let announced = part.as_ref().map_or(announced, |part| Some(part.complete));
        let question = self.question;
        let variant = question.key(&draft);
        self.goes_on.set(true);
        let is_short = announced.is_some_and(|length| (1..=SHORT).contains(&length));
        let (bytes, begun, arrival) = (0, now, Arrival::Expected(draft));
        let waits = part.is_none() && is_short && question.lists;
        let keeping = Keeping { variant, announced, bytes, part, begun, arrival };
        self.keeping = Some(match waits {
            true => keeping,
            false => keeping.begin(question),
        });
        if waits {
            question.fetch.decide(true);
        }
        self.verdict = Ok(());
    }

    fn pass(&mut self, why: NotStored, status: u16, now: Now) {
        let question = self.question;
        self.verdict = Err(why);
        self.goes_on.set(false);
        question.fetch.end(Phase::Passed);
        // A reason that lies in this request alone says nothing about the next one.
        let is_own = is_about_request(why) || question.fetching.ranged.is_some();
        if !is_own && why != NotStored::Status {
            let until = (now.steady_ms() / 1000).saturating_add(question.cache.policy.pass_for);
            question.cache.responses.passes().note(question.fetch.hash, until);
        }
        if let Some(count) = question.cache.responses.counts.passed.get(why as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let is_about_all = match question.fetching.ranged {
            None => status < 500,
            Some(_) => matches!(status, 200 | 404 | 410) || status == 206 && why != NotStored::Part,
        };
        if is_about_all {
            // The server has given its present answer, and the stored response is another one.
            question.drop_stored(why);
        }
        self.tapped = Tapped::Passed;
    }

    fn give_up(&mut self) {
        self.keeping = None;
        self.question.fetch.decide(false);
        self.goes_on.set(false);
        self.question.fetch.end(Phase::Gone);
        self.tapped = Tapped::Passed;
        self.uncount();
    }

    /// All of the answer has come, and was stored or not.
    fn ended(&mut self, is_stored: bool) {
        let responses = &self.question.cache.responses;
        responses.passes().forget(self.question.fetch.hash);
        self.tapped = if is_stored { Tapped::Stored } else { Tapped::Passed };
        responses.leave(self.question.fetch);
    }

    fn uncount(&mut self) {
        let counted = std::mem::take(&mut self.counted);
        self.question.cache.responses.unbuffer(counted);
    }
}

impl Tap for Storing<'_> {
    fn head(&mut self, response: &response::Response<'_, '_>, now: Now) -> Passing {
        if self.keeping.take().is_some() {
            self.question.fetch.decide(false);
        }
        self.uncount();
        let question = self.question;
        if response.status == 304
            && let Some(tapped) = self.not_modified(response, now)
        {
            self.tapped = tapped;
            return Passing::Withheld;
        }
        if reuse::is_error(response.status) && question.may_replace_error(now) {
            self.tapped = Tapped::Error(response.status);
            return Passing::Withheld;
        }
        self.tapped = Tapped::Nothing;
        match self.judge(response, now) {
            Ok((draft, part)) => self.keep(draft, response.announced(), part, now),
            Err(why) => self.pass(why, response.status, now),
        }
        Passing::On
    }

    fn would_keep(&self, response: &response::Response<'_, '_>, now: Now) -> bool {
        self.judge(response, now).is_ok()
    }

    fn put_fields(&self, out: &mut Vec<u8>) {
        // Where another machine stores the answer, its Cache-Status is there already.
        if self.question.cache.policy.status_field && self.question.lists {
            let (why, stored) = (self.question.fetching.why, self.verdict);
            let outcome = Outcome::Forwarded { why, status: None, stored, collapsed: false };
            out.extend_from_slice(b"Cache-Status: ");
            cache_status::put(&outcome, out);
            out.extend_from_slice(b"\r\n");
        }
    }

    fn content(&mut self, data: &[u8]) {
        let Some(mut keeping) = self.keeping.take() else { return };
        let question = self.question;
        keeping.bytes = keeping.bytes.saturating_add(data.len());
        if matches!(keeping.arrival, Arrival::Expected(_)) && !data.is_empty() {
            keeping = keeping.at_once_or_begin(question, data);
            if matches!(keeping.arrival, Arrival::AtOnce(..)) {
                self.keeping = Some(keeping);
                return;
            }
        }
        let is_too_long = keeping.bytes > question.cache.policy.largest;
        let weight = data.len() + CHUNK_COST;
        if is_too_long || !question.cache.responses.buffer(weight) {
            self.give_up();
        } else {
            self.counted += weight;
            question.fetch.add(data);
            self.keeping = Some(keeping);
        }
    }

    fn whole(&mut self, now: Now) {
        let Some(keeping) = self.keeping.take() else { return };
        let question = self.question;
        match keeping.arrival {
            Arrival::AtOnce(draft, bytes) => {
                let content = Content::Whole(Payload::Pinned(bytes), keeping.bytes as u64);
                let listed = question.list((&keeping.variant, self.since), draft, content, now);
                self.ended(listed.is_ok());
                // If it was purged meanwhile, the followers get it all the same: they asked before.
                let (Ok(object) | Err(Overtaken(object))) = listed;
                question.fetch.arrive_whole(object);
            }
            arrival => {
                let keeping = Keeping { arrival, ..keeping }.begin(question);
                // Its bytes count where they are copied to, and here as well while others read them.
                let counted = std::mem::take(&mut self.counted);
                let held = Held::counted(&question.cache.responses, counted);
                let is_followed = || Arc::strong_count(question.fetch) > 1;
                let held = Some(held).filter(|_| is_followed());
                let object = match question.lists {
                    true => keeping.list(question, self.since, now),
                    false => None,
                };
                self.ended(object.is_some());
                // An object that a part was kept in is not the answer to the client.
                question.fetch.complete(object.filter(|_| keeping.part.is_none()));
                // Those that follow read on, each as fast as its client takes it; nobody else comes to this fetch.
                if is_followed() {
                    match held.or_else(|| Held::of(&question.cache.responses, counted)) {
                        Some(held) => question.fetch.hold(Box::new(held)),
                        None => question.fetch.break_off(),
                    }
                }
            }
        }
        self.uncount();
    }
}

impl Question<'_> {
    fn list(
        &self,
        (variant, since): (&Arc<[u8]>, Moment),
        draft: Draft,
        content: Content,
        now: Now,
    ) -> Result<Arc<Object<StoredResponse>>, Overtaken<StoredResponse>> {
        let SiteCache { responses, policy, .. } = self.cache;
        responses.list(policy, &self.place(variant, since), draft, content, now)
    }
}

impl Keeping {
    /// Takes the first of the content: as all of it, which was expected, if it is that and there is room.
    fn at_once_or_begin(self, question: &Question<'_>, data: &[u8]) -> Self {
        let is_all = self.announced == Some(data.len() as u64);
        let room = || room_for(&question.cache.responses, &[data], question.cache.policy.largest);
        match (self.arrival, if is_all { room() } else { None }) {
            (Arrival::Expected(draft), Some(bytes)) => {
                Self { arrival: Arrival::AtOnce(draft, bytes), ..self }
            }
            (arrival, _) => Self { arrival, ..self }.begin(question),
        }
    }

    /// Followers see the head now, and the bytes that arrive from now on.
    fn begin(self, question: &Question<'_>) -> Self {
        let draft = match self.arrival {
            Arrival::Expected(draft) | Arrival::AtOnce(draft, _) => Arc::new(draft),
            Arrival::Begun(_) => return self,
        };
        let answer = (Arc::clone(&draft), Arc::clone(&self.variant));
        question.fetch.arrive(answer, self.announced, self.begun.steady_ms());
        Self { arrival: Arrival::Begun(draft), ..self }
    }

    /// Lists the content that has come in chunks. `None`: there is no room, or it was purged meanwhile.
    fn list(
        &self,
        question: &Question<'_>,
        since: Moment,
        now: Now,
    ) -> Option<Arc<Object<StoredResponse>>> {
        let chunks = question.fetch.chunks();
        match &self.part {
            None => {
                let content =
                    content_of(&question.cache.responses, &chunks, question.cache.policy.largest)?;
                question
                    .list((&self.variant, since), self.arrival.draft().clone(), content, now)
                    .ok()
            }
            Some(part) if part.length() == self.bytes as u64 => {
                question.keep_part(self.as_part(&chunks.concat(), since), now)
            }
            Some(_) => None,
        }
    }

    /// The bytes of the response that have arrived, as a part of the whole.
    fn as_part<'p>(&'p self, data: &'p [u8], since: Moment) -> Part<'p> {
        let (start, complete) = match &self.part {
            Some(part) => (part.range.start, part.complete),
            None => (0, self.announced.unwrap_or_default()),
        };
        Part { draft: self.arrival.draft(), variant: &self.variant, since, start, complete, data }
    }
}

impl Drop for Storing<'_> {
    /// A response that is still being kept now has broken off: its start is kept as a part.
    fn drop(&mut self) {
        if let Some(keeping) = self.keeping.take().filter(|_| self.question.lists) {
            let data = self.question.fetch.chunks().concat();
            if data.len() == keeping.bytes {
                self.question.keep_start(keeping.as_part(&data, self.since), keeping.begun);
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
