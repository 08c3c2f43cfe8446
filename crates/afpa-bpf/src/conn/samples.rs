//! Sampled answers, whole, on their way to the self-check.

use std::sync::atomic::Ordering;

use afpa_abi::{ANSWER_MAX, HEAD_MAX, Sample};

use crate::conn::reports::Reports;
use crate::ring::Ring;

/// The reader of sampled answers.
pub type Samples<'f> = Ring<'f, Sample>;

impl Reports {
    /// Samples one in about this many answers of one segment from now on, rounded up to a power of two;
    /// 0: none.
    pub fn set_sample_every(&self, answers: u32) {
        let every = if answers == 0 { 0 } else { answers.clamp(1, 1 << 24).next_power_of_two() };
        self.region.sample_every().store(every, Ordering::Relaxed);
    }

    /// Opens the stream of sampled answers. Programs do not wake the reader: it must poll. An answer that finds
    /// the buffer full is not sampled.
    pub fn samples(&self) -> libbpf_rs::Result<Samples<'_>> {
        Ring::of(&self.samples, Sample::from_bytes)
    }
}

/// The head of the request that a sample answers.
pub fn sampled_request(sample: &Sample) -> &[u8] {
    &sample.request[..usize::from(sample.request_length).min(HEAD_MAX)]
}

/// The answer as it left, without headers of packets.
pub fn sampled_answer(sample: &Sample) -> &[u8] {
    &sample.answer[..usize::from(sample.answer_length).min(ANSWER_MAX)]
}
