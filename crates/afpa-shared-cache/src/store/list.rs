//! Lists a response that is kept, among the others of its URL.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afpa_cache::{
    Family, Hint, Key, Labelled, Millis, Moment, Object, Overtaken, Payload, Payloads, Pinned,
};
use afpa_framework::Now;
use afpa_http::caching::parts::Parts;

use crate::policy::CachePolicy;
use crate::store::index::Index;
use crate::store::responses::Responses;
use crate::store::stored::{Draft, Response, StoredResponse};

impl Responses {
    /// Lists a response whose content is complete.
    ///
    /// # Errors
    /// The response was purged meanwhile: then only the requests that asked before get it.
    pub(crate) fn list(
        &self,
        policy: &CachePolicy,
        place: &ListPlace<'_>,
        draft: Draft,
        content: Content,
        now: Now,
    ) -> Result<Arc<Object<StoredResponse>>, Overtaken<StoredResponse>> {
        let now = Millis(now.steady_ms());
        let object = self.cache().list(labelled(place, draft, content), now)?;
        if let Some(draft) = varying(&object) {
            self.note_variant(policy, place, (&object, draft), now);
        }
        self.counts.stored.fetch_add(1, Ordering::Relaxed);
        Ok(object)
    }

    /// As [`list`](Self::list), of a response that another process kept, and used so often. It replaces no other, and
    /// joins other responses of its URL only if those vary by the same fields. Returns whether it was listed.
    pub(crate) fn list_restored(
        &self,
        policy: &CachePolicy,
        place: &ListPlace<'_>,
        (draft, content): (Draft, Content),
        hits: u64,
        now: Now,
    ) -> bool {
        let now = Millis(now.steady_ms());
        let mut index = None;
        if !draft.vary().is_empty() {
            // If another index was listed first, the next line finds that one.
            drop(self.cache().list_restored(place.index(policy, &draft), hits, now));
            index = self.index(place, &draft);
            if index.is_none() {
                return false;
            }
        }
        let new = labelled(place, draft, content);
        let Ok(object) = self.cache().list_restored(new, hits, now) else { return false };
        if let Some(index) = index {
            self.note_in(&index, policy, &object);
        }
        true
    }

    /// Notes at the primary key that there is a response for some fields.
    fn note_variant(
        &self,
        policy: &CachePolicy,
        place: &ListPlace<'_>,
        (object, draft): (&Object<StoredResponse>, &Draft),
        now: Millis,
    ) {
        let same = self.index(place, draft);
        let index = same.or_else(|| self.cache().list(place.index(policy, draft), now).ok());
        if let Some(index) = index {
            self.note_in(&index, policy, object);
        }
    }

    /// The index under the primary key, if its responses vary as this one does.
    fn index(&self, place: &ListPlace<'_>, draft: &Draft) -> Option<Arc<Object<StoredResponse>>> {
        let held = self.cache().get(&key_of(place.primary));
        held.filter(|held| held.header().index().is_some_and(|index| *index.names == *draft.vary()))
    }

    fn note_in(
        &self,
        index: &Object<StoredResponse>,
        policy: &CachePolicy,
        object: &Object<StoredResponse>,
    ) {
        let hash = self.hash(&object.key().path);
        if let Some(index) = index.header().index()
            && let Some(oldest) = index.note(hash, object.id(), policy.variants.max(1))
        {
            self.cache().drop_object(oldest);
        }
    }
}

/// The response of an object, if it varies.
fn varying(object: &Object<StoredResponse>) -> Option<&Draft> {
    let draft = &object.header().any_response()?.draft;
    (!draft.vary().is_empty()).then_some(draft)
}

/// A response as an object.
fn labelled(place: &ListPlace<'_>, draft: Draft, content: Content) -> Labelled<StoredResponse> {
    // Ages are counted in whole seconds, so the last one of them may be longer.
    let life = draft.kept_for().saturating_add(1);
    let family = Family::of(draft.content_type().unwrap_or_default());
    let hint = Hint { expiry: Some(life), ..Hint::default() };
    let (key, header_bytes, since) = (place.key(&draft), draft.bytes(), place.since);
    let labels = draft.tags().to_vec();
    let response = |len| Response::new(draft, len, place.primary.len());
    let (header, payloads) = match content {
        Content::Nothing => (StoredResponse::of(response(0)), Payloads::new()),
        Content::Whole(payload, len) => {
            (StoredResponse::of(response(len)), [payload].into_iter().collect())
        }
        Content::Parts(parts) => {
            let pieces = parts.pieces().iter();
            let payloads = pieces.map(|piece| Payload::Pinned(piece.bytes.clone())).collect();
            (StoredResponse::parts(response(parts.complete()), parts), payloads)
        }
    };
    Labelled { key, labels, header, header_bytes, payloads, family, hint, since }
}

impl ListPlace<'_> {
    fn key(&self, draft: &Draft) -> Key {
        key_of(if draft.vary().is_empty() { self.primary } else { self.variant })
    }

    /// A new index for the primary key, of responses that vary as this one does.
    fn index(&self, policy: &CachePolicy, draft: &Draft) -> Labelled<StoredResponse> {
        Labelled {
            key: key_of(self.primary),
            labels: Vec::new(),
            header: StoredResponse::indexing(draft.names()),
            header_bytes: size_of::<Index>() + Index::bytes(draft.vary(), policy.variants),
            payloads: Payloads::new(),
            family: Family::default(),
            hint: Hint::default(),
            since: self.since,
        }
    }
}

/// The content of a response that is listed.
#[derive(Debug)]
pub(crate) enum Content {
    /// Its head; it has no content.
    Nothing,
    /// All of its bytes, and their number.
    Whole(Payload, u64),
    /// Some of them.
    Parts(Parts<Pinned>),
}

/// The key with these bytes, which nothing copies on their way from the request to the table.
pub(crate) fn key_of(path: &Arc<[u8]>) -> Key {
    Key { site: 0, path: Arc::clone(path) }
}

/// A copy of all these bytes as one, in the arena; `None`: there is no room.
pub(crate) fn room_for(responses: &Responses, all: &[&[u8]], largest: usize) -> Option<Pinned> {
    let len = all.iter().map(|bytes| bytes.len()).sum();
    let mut room = responses.cache().reserve_now(len, largest)?;
    let mut rest = &mut room[..];
    for bytes in all {
        let (here, there) = rest.split_at_mut_checked(bytes.len())?;
        here.copy_from_slice(bytes);
        rest = there;
    }
    Some(room.freeze())
}

/// Where a response is listed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListPlace<'a> {
    pub(crate) primary: &'a Arc<[u8]>,
    /// With the values of the fields that it varies by.
    pub(crate) variant: &'a Arc<[u8]>,
    pub(crate) since: Moment,
}
