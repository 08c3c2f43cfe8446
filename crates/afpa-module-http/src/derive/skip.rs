//! Content of a request that has its answer already: it is skipped.

use afpa_http::body::BodySkipper;

pub(super) enum Skipped {
    /// Wait for more data.
    More,
    /// So many bytes were skipped, and more content follows.
    Some(usize),
    /// So many bytes were skipped, and the content ends with them.
    Last(usize),
}

/// The content is malformed, or longer than the limit.
pub(super) struct BrokenBody;

pub(super) fn skip(skipper: &mut BodySkipper, input: &[u8]) -> Result<Skipped, BrokenBody> {
    let progress = skipper.feed(input).map_err(|_| BrokenBody)?;
    Ok(match (progress.done, progress.consumed) {
        (true, consumed) => Skipped::Last(consumed),
        (false, 0) => Skipped::More,
        (false, consumed) => Skipped::Some(consumed),
    })
}
