//! The arrival of connections and of their bytes.

/// Room for what arrives in one read: a request head, or a few.
pub(super) const RECEIVE: usize = 16 * 1024;

/// Whether an error of `accept` concerns only one connection, or will pass.
pub(crate) fn is_passing(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let errno = Errno::from_io_error(error);
    let exhausted = matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS));
    if exhausted {
        // No connection can be accepted until another one ends.
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    exhausted
        || matches!(errno, Some(Errno::CONNABORTED | Errno::INTR | Errno::AGAIN | Errno::PERM))
}
