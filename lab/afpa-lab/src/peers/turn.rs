//! One measurement of one server.

use afpa_generator::{ClientSetup, Generator, Load, Measured, Workload, generators};
use anyhow::{Context, Result, bail};

use super::Peer;
use crate::bench::{Case, Sample};
use crate::run::wrong;
use crate::usage::{self, Counted, Used, doubts};

/// How a case is measured.
pub(crate) struct Turn<'t> {
    /// Makes the load, on the calling thread, which is the client's.
    pub(crate) generator: &'t dyn Generator,
    pub(crate) client: ClientSetup,
    pub(crate) load: Load,
    /// The server's core and the client's.
    pub(crate) cores: (usize, usize),
    pub(crate) counted: Counted,
}

impl Turn<'_> {
    /// Loads a server, and returns the measurement. [`Sample::errors`] counts wrong answers.
    ///
    /// # Errors
    ///
    /// When it cannot be loaded.
    pub(crate) fn take(&self, case: &Case, peer: &Peer<'_>) -> Result<Sample> {
        let processes = peer.running.processes();
        let workload = Workload::given(case.objects.clone());
        let mut samples = Vec::with_capacity(2);
        let measured = self.generator.run(&self.client, &workload, &self.load, &mut || {
            samples.push(usage::Sample::take(self.cores, &processes));
        })?;
        let samples = samples.into_iter().collect::<Result<Vec<_>>>()?;
        let [before, .., after] = &samples[..] else { bail!("the client took no samples") };
        Ok(self.sample(case, peer, &measured, &after.since(before)))
    }

    fn sample(&self, case: &Case, peer: &Peer<'_>, measured: &Measured, used: &Used) -> Sample {
        let (_, mut busy) = used.told(measured.requests, measured.seconds);
        let mut doubts = doubts(&busy, false);
        if self.load.rate.is_some() {
            // The generator polls for the next due request: its core is always full, which says nothing; and the
            // server's is not meant to be full.
            busy.client_core = 0.0;
            doubts.retain(|doubt| !doubt.is_of_load());
        }
        let not_asked = measured.counts.get("not_asked").copied().unwrap_or(0);
        let not_asked = (not_asked > 0).then(|| format!("{not_asked} not asked"));
        Sample {
            case: case.name.clone(),
            server: peer.name.clone(),
            round: 0,
            requests: measured.requests,
            seconds: measured.seconds,
            body_bytes: peer.content(case, measured.bytes, measured.requests),
            core_seconds: used.busy(self.counted).0.as_secs_f64(),
            latency: measured.latency,
            busy,
            doubts,
            errors: wrong(measured).or(not_asked),
        }
    }
}

/// The generator of that name.
///
/// # Errors
///
/// When it cannot be used on this machine.
pub(crate) fn generator(name: &str) -> Result<Box<dyn Generator>> {
    let mut all = generators().into_iter();
    let found =
        all.find(|one| one.name() == name).with_context(|| format!("no generator {name}"))?;
    match found.lacks() {
        Some(reason) => bail!("{name}, the load generator: {reason}"),
        None => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use afpa_generator::Latency;

    use super::*;
    use crate::servers::Running;

    fn sample(rate: Option<f64>, measured: &Measured) -> Sample {
        let socket = generator("socket").unwrap();
        let turn = Turn {
            generator: socket.as_ref(),
            client: ClientSetup {
                to: ([127, 0, 0, 1], 1).into(),
                interface: "lo".into(),
                first_source: [127, 0, 0, 1].into(),
                sources: 1,
                core: 0,
                answers_at_once: false,
                ages: false,
            },
            load: Load {
                connections: 1,
                warm_up: Duration::ZERO,
                duration: Duration::from_secs(2),
                persistent: true,
                rate,
            },
            cores: (0, 1),
            counted: Counted::ByIdle,
        };
        let peer = Peer {
            name: "x".into(),
            address: ([127, 0, 0, 1], 1).into(),
            version: String::new(),
            running: Running::none(),
            heads: Default::default(),
        };
        let case = Case::new("tiny", "tiny", &["x"], Vec::new());
        turn.sample(&case, &peer, measured, &Used::of_idle(2.0, 1.0, 1.0))
    }

    #[test]
    fn an_open_loop_s_answer_is_read() {
        let measured = Measured {
            requests: 10,
            seconds: 2.0,
            bytes: 99,
            latency: Latency { p50: 100.0, p99: 200.0, p999: 300.0, ..Latency::default() },
            counts: [("not_asked".to_owned(), 3)].into(),
            ..Measured::default()
        };
        let read = sample(Some(5.0), &measured);
        assert_eq!((read.requests, read.latency.p99, read.latency.p999), (10, 200.0, 300.0));
        assert!(read.errors.as_deref().is_some_and(|words| words.contains("3 not asked")));
        assert_eq!((read.core_seconds, read.busy.client_core), (1.0, 0.0));
        assert!(read.doubts.is_empty());
    }

    #[test]
    fn errors_are_named_and_silence_is_one() {
        let answered = Measured { requests: 93_400, seconds: 1.0, ..Measured::default() };
        assert_eq!(sample(None, &answered).errors, None);
        let complaints = vec!["wrk: 3 read errors".to_owned(), "wrk: 7 status errors".to_owned()];
        let wrong = Measured { errors: 10, complaints, ..answered.clone() };
        let words = sample(None, &wrong).errors.unwrap();
        assert!(words.contains("3 read errors") && words.contains("7 status errors"), "{words}");
        let silent = Measured { requests: 0, ..answered };
        assert_eq!(sample(None, &silent).errors.as_deref(), Some("no request was answered"));
    }
}
