//! The decision which objects of a cache are pinned, and how.

use std::sync::Arc;
use std::time::Instant;

use afpa_bpf::{AcceptedCodings, FastPath, Variant};
use afpa_cache::{Key, Object};

/// Decides which objects of a cache are pinned, and how.
pub(crate) trait Pinnable<H>: Send + Sync {
    /// Whether objects are pinned only once they were used.
    fn is_offered_by_use(&self) -> bool {
        false
    }

    /// The objects that the kernel may no longer answer with when the object of this key is gone.
    fn depend_on(&self, _key: &Key) -> Vec<Key> {
        Vec::new()
    }

    /// When this returns, the kernel answers with none of its objects until [`release`](Self::release). False: that cannot
    /// be had at once.
    ///
    /// # Errors
    /// When the kernel refuses.
    fn hold(&self) -> anyhow::Result<bool> {
        Ok(false)
    }

    /// The kernel may answer with its objects again.
    ///
    /// # Errors
    /// When the kernel refuses. User mode answers then.
    fn release(&self) -> anyhow::Result<()> {
        Ok(())
    }

    /// Whether objects that were pinned before are to be pinned once more: there is more to pin of them now.
    fn is_wanted_anew(&self, _fast_path: &FastPath) -> bool {
        false
    }

    /// Whether the kernel may have it at all.
    fn is_for_kernel(&self, key: &Key, object: &Object<H>) -> bool;

    /// Every site that the kernel answers for and target there that lead to the key's object.
    fn targets(&self, key: &Key, object: &Object<H>) -> Vec<PinTarget>;

    /// Calls `pin` with the part of the object that is to be pinned now, if there is one.
    fn with_copy(
        &self,
        fast_path: &FastPath,
        offered: (&Key, &Object<H>),
        pin: &mut dyn FnMut(&PinCopy<'_>),
    );
}

/// One URL under which an object is pinned, as requests spell it, for requests that accept these codings if it
/// names some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PinTarget {
    pub(crate) site: u32,
    pub(crate) path: Arc<[u8]>,
    pub(crate) codings: Option<AcceptedCodings>,
    /// Classes of request fields that matter to it.
    pub(crate) matter: u32,
}

/// The part of an object that is pinned.
pub(crate) struct PinCopy<'o> {
    pub(crate) variants: &'o [Variant<'o>],
    /// The answers to HTTP/1.0 that keeps its connection, as far as there are any.
    pub(crate) old_kept: &'o [Variant<'o>],
    /// When the kernel stops answering with it by itself.
    pub(crate) until: Option<Instant>,
}
