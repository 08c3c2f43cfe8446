//! The sinks of one access log, handed out once each.

use std::sync::{Mutex, PoisonError};

use super::Sink;

/// A [`Sink`] for each worker, and another one for the kernel's answers.
#[derive(Debug, Default)]
pub(crate) struct Sinks(Mutex<Vec<Option<Sink>>>);

impl Sinks {
    pub(crate) fn new(sinks: Vec<Sink>) -> Self {
        Self(Mutex::new(sinks.into_iter().map(Some).collect()))
    }

    /// The sink with this number. A sink that was taken before is replaced by one that wants no records.
    pub(crate) fn take(&self, number: usize) -> Sink {
        let mut sinks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sinks.get_mut(number).and_then(Option::take).unwrap_or_else(Sink::off)
    }
}
