//! The door to a second home of cache objects: the kernel.

use crate::key::Key;
use crate::object::Object;

/// Somewhere else that serves copies of cache objects, such as the in-kernel fast path.
///
/// Both calls come under the cache's lock, in the order in which the cache itself changes; they must
/// not call back into the cache, and should take microseconds.
pub trait Residency<H>: Send + Sync {
    /// `object` may be served for `key` from now on; never called for one that is suspect. An implementer that cannot re-check leaves
    /// [`Unwatched`](crate::Coverage::Unwatched) objects alone.
    fn published(&self, key: &Key, object: &Object<H>);

    /// Nothing may be served for `key` when this returns. Called before anything else happens to the
    /// object, so that no copy outlives it; also called when the object only became suspect, and then
    /// `published` follows once it is confirmed. A key that was never taken is no error.
    fn dropped(&self, key: &Key);
}
