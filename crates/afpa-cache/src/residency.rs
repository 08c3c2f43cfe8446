//! The interface to a second cache that serves copies of the objects: the kernel's fast path.

use crate::key::Key;
use crate::object::Object;

/// A second cache that serves copies of cache objects, such as the kernel's fast path.
///
/// Both calls come under the cache's lock, in the order in which the cache itself changes; they must
/// not call back into the cache, and should take microseconds.
pub trait Residency<H>: Send + Sync {
    /// `object` may be served for `key` from now on. It is never suspect. A residency that cannot re-check
    /// objects must ignore [`Unwatched`](crate::Coverage::Unwatched) ones.
    fn published(&self, key: &Key, object: &Object<H>);

    /// `object` was used several times, or has taken the place of one that was, and may be served as long as its module says. It is
    /// offered each time that uses are reported: a residency that takes only what is used, or what ends by itself, takes it now.
    fn used(&self, key: &Key, object: &Object<H>) {
        let _not_taken = (key, object);
    }

    /// When this returns, nothing may be served for `key`. It is called before anything else happens to the
    /// object, so that no copy outlives the object. It is also called when the object only became suspect;
    /// `published` follows when the object is confirmed. A key that was never taken is not an error.
    fn dropped(&self, key: &Key);

    /// When this returns, nothing that was taken because it was [used](Self::used) is served, whatever its key, until
    /// [`release`](Self::release). It takes the same time however much that is: many objects that go at once are dropped
    /// behind it, one by one. False: it cannot do that, so they are dropped at once.
    fn hold(&self) -> bool {
        false
    }

    /// Copies that were not dropped may be served again.
    fn release(&self) {}
}
