//! The receiver of changes.

/// Gets the changes. Its functions are called without a lock of the watcher held, mostly by the watcher's
/// thread, which reads no further event until the call returns, and sometimes by the thread in `ensure`.
///
/// Paths are root-relative, begin with `/`, end without one (but for the root, `/`), and are free
/// of links: of physical places.
pub trait ChangeSink: Send + Sync {
    /// The file at `path`, or its attributes, has changed, or it was created or removed.
    fn changed(&self, path: &[u8]);
    /// `path`, perhaps a directory or a link, now names something else: it and all below it changed.
    fn changed_tree(&self, path: &[u8]);
    /// The file at `path` was written and closed, or moved here: it may be worth loading. Always
    /// comes after [`changed`](Self::changed) for the same path.
    fn written(&self, path: &[u8]);
    /// Changes were lost: anything may have changed, in every tree. Each sink is called, with the same number: those
    /// that stand for one cache may act on the first call alone.
    fn overflow(&self, loss: u64);
}
