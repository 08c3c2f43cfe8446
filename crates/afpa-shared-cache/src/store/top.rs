//! Which kept answers save most.

use crate::key;
use crate::store::responses::Responses;
use crate::store::stored::StoredResponse;
use afpa_cache::Object;

/// A kept answer, and the work that it has saved since it was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saver {
    /// The URL: host, the path that the server gets, query.
    pub url: String,
    /// Requests that it has answered.
    pub hits: u64,
    /// Microseconds that the server would have taken to begin so many answers.
    pub saved_us: u64,
    /// Bytes of its content.
    pub bytes: u64,
}

impl Responses {
    /// The answers that have saved most time, at most so many.
    pub fn top(&self, most: usize) -> Vec<Saver> {
        let savers = self.cache().heaviest(most, saved_us);
        let savers = savers.into_iter().filter_map(|used| {
            let response = used.object.header().response()?;
            let (primary, _) = response.split(used.object.key())?;
            let (hits, saved_us) = (used.hits, used.weight);
            Some(Saver { url: key::url(primary)?, hits, saved_us, bytes: response.len })
        });
        savers.collect()
    }
}

fn saved_us(object: &Object<StoredResponse>, hits: u64) -> u64 {
    let took = object.header().response().map_or(0, |response| response.draft.took_us);
    // A server that answers within a clock's tick has still been spared.
    hits.saturating_mul(took.max(1).into())
}
