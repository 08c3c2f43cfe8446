//! The sinks of one access log and of one export of spans, handed out once each.

use std::sync::{Mutex, PoisonError};

use afpa_module_http::{AccessRecord, AccessSink};

use super::Sink;

/// A [`Recorder`] for each worker, and another one for the kernel's answers.
#[derive(Debug, Default)]
pub struct Sinks(Mutex<Vec<Option<Recorder>>>);

/// Gives the records of a worker to both of its sinks.
#[derive(Debug)]
pub struct Recorder {
    log: Sink,
    spans: Sink,
}

impl Sinks {
    /// As many spans' sinks as there are workers; the kernel's answers have none.
    pub fn new(logs: Vec<Sink>, spans: Vec<Sink>) -> Self {
        let spans = spans.into_iter().chain(std::iter::repeat_with(Sink::off));
        let both = logs.into_iter().zip(spans).map(|(log, spans)| Some(Recorder { log, spans }));
        Self(Mutex::new(both.collect()))
    }

    /// The recorder with this number. A recorder that was taken before is replaced by one that wants no records.
    pub fn take(&self, number: usize) -> Recorder {
        let mut sinks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let off = || Recorder { log: Sink::off(), spans: Sink::off() };
        sinks.get_mut(number).and_then(Option::take).unwrap_or_else(off)
    }
}

impl AccessSink for Recorder {
    fn enabled(&self) -> bool {
        self.log.enabled()
    }

    fn takes_spans(&self) -> bool {
        self.spans.takes_spans()
    }

    fn chosen(&self) -> &[Box<str>] {
        self.log.chosen()
    }

    fn record(&mut self, record: &AccessRecord<'_>) {
        self.log.record(record);
        self.spans.record(record);
    }

    fn flush(&mut self) {
        self.log.flush();
        self.spans.flush();
    }
}
