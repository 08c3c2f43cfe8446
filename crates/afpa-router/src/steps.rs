//! A count of the work of one routing decision, so that a test can show its bound.

/// Is called for every node visited, every table looked up and every condition tried.
pub(crate) trait Steps {
    fn step(&mut self);
}

/// Counts nothing.
impl Steps for () {
    #[inline(always)]
    fn step(&mut self) {}
}

/// A counter.
#[cfg(test)]
impl Steps for u32 {
    fn step(&mut self) {
        *self += 1;
    }
}
