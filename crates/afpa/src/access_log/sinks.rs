//! The sinks of one access log, handed out once each.

use std::sync::{Mutex, PoisonError};

use super::Sink;

/// One [`Sink`] for each worker, and one more for what the kernel answers.
#[derive(Debug, Default)]
pub(crate) struct Sinks(Mutex<Vec<Option<Sink>>>);

impl Sinks {
    pub(crate) fn new(sinks: Vec<Sink>) -> Self {
        Self(Mutex::new(sinks.into_iter().map(Some).collect()))
    }

    /// The sink with this number. One that was taken before wants no records.
    pub(crate) fn take(&self, number: usize) -> Sink {
        let mut sinks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sinks.get_mut(number).and_then(Option::take).unwrap_or_else(Sink::off)
    }
}
