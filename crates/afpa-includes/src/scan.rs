//! The searches of this crate, all in one place, so that tests can count the bytes that they look at.
//!
//! A parser that looks ahead from each byte to the end costs the square of the length of its text. So a search that may
//! find nothing is bounded, or its result is remembered.

/// Where `byte` is in `text`.
pub(crate) fn find(byte: u8, text: &[u8]) -> Option<usize> {
    noted(memchr::memchr(byte, text), text)
}

/// Where the first of two bytes is in `text`.
pub(crate) fn find_either(bytes: (u8, u8), text: &[u8]) -> Option<usize> {
    noted(memchr::memchr2(bytes.0, bytes.1, text), text)
}

/// Where `wanted` begins in `text`.
pub(crate) fn find_text(wanted: &[u8], text: &[u8]) -> Option<usize> {
    noted(memchr::memmem::find(text, wanted), text)
}

/// How many lines end in `text`.
pub(crate) fn line_ends(text: &[u8]) -> usize {
    noted(None, text);
    memchr::memchr_iter(b'\n', text).count()
}

fn noted(found: Option<usize>, text: &[u8]) -> Option<usize> {
    #[cfg(test)]
    LOOKED.set(LOOKED.get() + found.map_or(text.len(), |at| at + 1));
    let _ = text;
    found
}

#[cfg(test)]
thread_local! {
    static LOOKED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// How many bytes the searches look at while `work` runs.
#[cfg(test)]
pub(crate) fn looked_at(work: impl FnOnce()) -> usize {
    LOOKED.set(0);
    work();
    LOOKED.get()
}
