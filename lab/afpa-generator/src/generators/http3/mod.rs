//! HTTP/3 as a client: quinn-proto as the transport, a socket for each connection, GSO and GRO, on one thread.
//!
//! ```text
//! `engine`: the loop, the timers ─▶ `connection`: QUIC, requests, streams ─▶ `answer`: frames of an answer, checked
//!      └─▶ `socket`: datagrams by the batch                  `tls`: certificates, groups
//! ```

mod answer;
mod connection;
mod engine;
mod socket;
mod tls;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use self::engine::{Engine, Mode};
use super::generator::{Generator, warm_up};
use super::socket::allow_files;
use crate::measure::{ClientSetup, Load, Measured};
use crate::workload::Workload;

/// A client of HTTP/3, which takes one certificate and no other. A load that is not persistent has a connection, with a
/// full handshake, for each request.
#[derive(Debug, Clone)]
pub struct Http3 {
    /// The server's certificate, in DER.
    pub certificate: Vec<u8>,
    /// The name in it.
    pub name: String,
    /// Requests that a connection has open at once.
    pub streams: u32,
    /// Offers X25519MLKEM768 alone, and otherwise X25519 alone.
    pub post_quantum: bool,
}

/// Of so many answers one is compared byte by byte; the length and the head of each are looked at.
const COMPARED: u64 = 16;
/// A first answer may take so long.
const PATIENCE: Duration = Duration::from_secs(5);
/// Handshakes in progress while connections are made that are held.
const AT_ONCE: u32 = 32;

impl Generator for Http3 {
    fn name(&self) -> &str {
        "http3"
    }

    fn about(&self) -> &str {
        "HTTP/3 by quinn-proto on one thread, a socket for each connection: a closed loop; each length and head is \
         checked, one content of sixteen is compared"
    }

    fn lacks(&self) -> Option<String> {
        None
    }

    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").into()
    }

    fn can(&self, workload: &Workload, load: &Load) -> Result<(), String> {
        match (load.rate, workload.is_mix()) {
            (Some(_), _) => Err("it is used for closed loops only".into()),
            (_, false) => Err("its requests are the same on each connection".into()),
            (None, true) => Ok(()),
        }
    }

    fn run(
        &self,
        client: &ClientSetup,
        workload: &Workload,
        load: &Load,
        sample: &mut dyn FnMut(),
    ) -> Result<Measured> {
        allow_files(load.connections + engine::LINGERING as u32)?;
        self.check(client, workload)?;
        let mode = match load.persistent {
            true => Mode::Kept { streams: self.streams },
            false => Mode::Fresh,
        };
        let mut engine = self.engine(client, workload, (mode, COMPARED))?;
        engine.open(load.connections)?;
        warm_up(load, |time| {
            engine.run(time, |_| false)?;
            Ok(engine.has_answers())
        })?;
        sample();
        engine.reset()?;
        engine.run(load.duration, |_| false)?;
        sample();
        Ok(engine.finish())
    }
}

impl Http3 {
    /// The first certificate of a file in PEM.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub fn certificate_of(file: &Path) -> Result<Vec<u8>> {
        tls::certificate_of(file)
    }

    fn engine<'w>(
        &self,
        client: &'w ClientSetup,
        workload: &'w Workload,
        (mode, compared): (Mode, u64),
    ) -> Result<Engine<'w>> {
        let config = tls::config(&self.certificate, self.post_quantum)?;
        Engine::new((config, &self.name), client, workload, (mode, compared))
    }

    /// Asks for each file once, and compares every byte.
    ///
    /// # Errors
    ///
    /// When an answer is wrong, or there is none.
    pub fn check(&self, client: &ClientSetup, workload: &Workload) -> Result<()> {
        for object in workload.objects() {
            let alone = Workload::given(vec![(1, object.clone())]);
            let mut engine = self.engine(client, &alone, (Mode::Held, 1))?;
            engine.open(1)?;
            engine.run(PATIENCE, Engine::has_answers)?;
            let answered = engine.has_answers();
            let measured = engine.finish();
            let complaint = measured.complaints.first().map_or("", String::as_str);
            ensure!(answered, "no answer by HTTP/3 for {} in {PATIENCE:?}", object.path);
            ensure!(measured.errors == 0, "GET {} by HTTP/3: {complaint}", object.path);
        }
        Ok(())
    }

    /// Makes connections, each with one request, and holds them: `sample` is called before the first one, and when all have
    /// been idle for `settled`.
    ///
    /// # Errors
    ///
    /// When not all are there within `within`, or an answer was wrong.
    pub fn hold(
        &self,
        client: &ClientSetup,
        workload: &Workload,
        (count, settled, within): (u32, Duration, Duration),
        sample: &mut dyn FnMut(),
    ) -> Result<()> {
        allow_files(count)?;
        sample();
        let mut engine = self.engine(client, workload, (Mode::Held, COMPARED))?;
        let began = Instant::now();
        while engine.opened() < count && began.elapsed() < within {
            let more = (count - engine.opened()).min(AT_ONCE);
            engine.open(more)?;
            let wanted = u64::from(engine.opened());
            engine.run(within.saturating_sub(began.elapsed()), |engine| {
                engine.answered() + u64::from(AT_ONCE / 2) >= wanted
            })?;
        }
        engine.run(within, |engine| engine.answered() >= u64::from(count))?;
        engine.run(settled, |_| false)?;
        sample();
        let measured = engine.finish();
        let complaint = measured.complaints.first().map_or("", String::as_str);
        ensure!(measured.errors == 0, "{} errors: {complaint}", measured.errors);
        ensure!(measured.requests >= u64::from(count), "{} of {count}", measured.requests);
        Ok(())
    }
}
