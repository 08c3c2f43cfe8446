//! The interface to a second cache that serves copies of the objects: the kernel's fast path.

use crate::key::Key;
use crate::object::Object;

/// A second cache that serves copies of cache objects, such as the kernel's fast path.
///
/// All calls come under the cache's lock, in the order in which the cache itself changes; they must not call back into
/// the cache, and should take microseconds.
pub trait Residency<H>: Send + Sync {
    /// `object` may be served for `key` from now on. It is never suspect. A residency that cannot re-check
    /// objects must ignore [`Unwatched`](crate::Coverage::Unwatched) ones.
    fn published(&self, key: &Key, object: &Object<H>);

    /// `object` was used several times, or has replaced an object that was, and may be served as long as its module
    /// says. It is offered each time that uses are reported: a residency that takes only objects in use, or objects
    /// that end by themselves, takes it now.
    fn used(&self, key: &Key, object: &Object<H>) {
        let _not_taken = (key, object);
    }

    /// When this returns, nothing may be served for `key`. It is called before anything else happens to the
    /// object, so that no copy outlives the object. It is also called when the object only became suspect;
    /// `published` follows when the object is confirmed. A key that was never taken is not an error.
    fn dropped(&self, key: &Key);

    /// When this returns, no copy that was taken because its object was [used](Self::used) is served, whatever its key,
    /// until [`release`](Self::release). The time of this call does not depend on their number: many objects that go at
    /// once are dropped afterwards, one by one. False: the residency cannot do that, so they are dropped at once.
    fn hold(&self) -> bool {
        false
    }

    /// Copies that were not dropped may be served again.
    fn release(&self) {}
}
