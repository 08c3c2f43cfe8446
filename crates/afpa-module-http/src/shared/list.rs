//! Lists what is kept of a response, among the others of its URL.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use afpa_cache::{Family, Hint, Key, Labelled, Moment, Object, Payload, Payloads, Pinned, Seconds};
use afpa_framework::Now;
use afpa_http::caching::parts::Parts;

use super::policy::CachePolicy;
use super::responses::Responses;
use super::stored::{Draft, Kind, Response, StoredResponse};

impl Responses {
    /// Lists a response whose content is complete. `None`: it was purged meanwhile, or there is no room.
    pub(super) fn list(
        &self,
        policy: &CachePolicy,
        place: &ListPlace<'_>,
        draft: Arc<Draft>,
        content: Content,
        now: Now,
    ) -> Option<Arc<Object<StoredResponse>>> {
        let labels = match draft.tags.is_empty() {
            true => Cow::Borrowed(place.labels),
            false => Cow::Owned([place.labels, &*draft.tags].concat()),
        };
        let seconds = Seconds(now.steady_ms() / 1000);
        let life = policy.keep_for(&draft.facts, &draft.life, &draft.arrival);
        let family = Family::of(draft.content_type.as_deref().unwrap_or_default());
        let hint = Hint { expiry: Some(Duration::from_secs(life)), ..Hint::default() };
        let path = if draft.vary.is_empty() { place.primary } else { place.variant };
        let key = Key::new(0, path);
        let header_bytes = draft.bytes();
        let response = |len| Response::new(Arc::clone(&draft), len, place.primary.len());
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
        let since = place.since;
        let new = Labelled {
            key: key.clone(),
            labels: &labels,
            header,
            header_bytes,
            payloads,
            family,
            hint,
            since,
        };
        let object = self.cache().list(new, seconds).ok()?;
        if !draft.vary.is_empty() {
            self.note_variant(policy, place, (key, &draft), seconds);
        }
        self.counts.stored.fetch_add(1, Ordering::Relaxed);
        Some(object)
    }

    /// Notes at the primary key that there is a response for some fields.
    fn note_variant(
        &self,
        policy: &CachePolicy,
        place: &ListPlace<'_>,
        (key, draft): (Key, &Draft),
        now: Seconds,
    ) {
        let (primary, names) = (Key::new(0, place.primary), Arc::clone(&draft.vary));
        let held = self.cache().get(&primary);
        let same = held
            .filter(|held| matches!(&held.header().0, Kind::Index(index) if index.names == names));
        let index = same.or_else(|| {
            let header = StoredResponse::index(names);
            let (family, hint) = (Family::default(), Hint::default());
            let (labels, since) = (place.labels, place.since);
            let new = Labelled {
                key: primary,
                labels,
                header,
                header_bytes: policy.variants.saturating_mul(size_of::<Key>()),
                payloads: Payloads::new(),
                family,
                hint,
                since,
            };
            self.cache().list(new, now).ok()
        });
        if let Some(index) = index
            && let Kind::Index(index) = &index.header().0
            && let Some(oldest) = index.note(key, draft, policy.variants.max(1))
        {
            self.cache().purge(&oldest);
        }
    }
}

/// What is listed of a response.
#[derive(Debug)]
pub(super) enum Content {
    /// Its head; it has no content.
    Nothing,
    /// All of its bytes, and how many they are.
    Whole(Payload, u64),
    /// Some of them.
    Parts(Parts<Pinned>),
}

/// What it is shown as one, in the arena; `None`: there is no room.
pub(super) fn room_for(responses: &Responses, all: &[&[u8]], largest: usize) -> Option<Pinned> {
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
pub(super) struct ListPlace<'a> {
    pub(super) primary: &'a [u8],
    /// With the values of the fields that it varies by.
    pub(super) variant: &'a [u8],
    pub(super) labels: &'a [Vec<u8>],
    pub(super) since: Moment,
}
