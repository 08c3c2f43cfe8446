//! Lines for the person who waits.

/// Prints a line on stderr; a terminal that is gone is no reason to stop measuring.
macro_rules! say {
    ($($words:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), $($words)*);
    }};
}
pub(crate) use say;
