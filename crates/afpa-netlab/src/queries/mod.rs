//! A closed-loop client of DNS that lives in TC ingress, as [`load`](crate::load) is one of HTTP/1.1.
//!
//! [`Queries::start`] asks for some names by a socket, reads the answers, and hands the rest over to an eBPF program on the
//! client's interface: each answer becomes the next query in softirq, in its own packet. The program compares the id, the
//! flags with the code, the length, and the address, which is another one for each name. User mode asks again
//! a query that got no answer within 200 ms.

mod message;

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::ops::Sub;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use libbpf_rs::MapCore;
use rustix::time::{ClockId, clock_gettime};

use crate::object::{Aligned, Attachment, Fields, Layout, Loaded, fetch, internet_sum, store};
use message::{DIGITS, DIGITS_AT};
pub use message::{Expected, Names, Question, address, label};

static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/queries.o")));

/// The client's ports, one for each query that is outstanding.
const FIRST_PORT: u16 = 20_000;
/// Queries that may be outstanding: a core's queue for packets of virtual interfaces holds 1,000.
const MOST_OUTSTANDING: u32 = 512;
/// Answers that are read before a load.
const READ: u32 = 160;
/// A query without an answer for so long is asked again.
const PATIENCE: Duration = Duration::from_millis(200);
const WATCH: Duration = Duration::from_millis(50);
/// By a socket a name is asked so often, and waited for so long.
const TRIES: u32 = 5;

/// A load.
#[derive(Debug, Clone)]
pub struct QueryOptions {
    /// The server.
    pub to: SocketAddrV4,
    /// The client's interface and address.
    pub interface: String,
    /// See there.
    pub from: Ipv4Addr,
    /// Queries at a time.
    pub outstanding: u32,
    /// Their content.
    pub question: Question,
    /// The names are in the zone.
    pub found: bool,
}

/// A running load. It must be started and used inside the client's namespace.
pub struct Queries {
    // Before the object: detached first.
    _attachment: Attachment,
    object: Loaded,
    layouts: Layouts,
    sockets: Vec<UdpSocket>,
    question: Question,
    asked_again: u64,
}

struct Layouts {
    question: Layout,
    slot: Layout,
    tally: Layout,
}

/// Everything counted until now, or in an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Answers, right or wrong.
    pub answers: u64,
    /// Bytes of messages.
    pub bytes: u64,
    /// Answers to what was not outstanding any more.
    pub stale: u64,
    /// Answers with other flags or another code than expected, of another length, with another name's address, and
    /// packets that could not be made queries.
    pub errors: [u64; 4],
    /// Queries that got no answer in time.
    pub asked_again: u64,
}

impl QueryOptions {
    /// Asks for some of the names by a socket, one after the other: the answers, and what they have in common.
    ///
    /// # Errors
    ///
    /// When an answer is not right or does not come, or they differ in length or flags.
    pub fn read_some(&self) -> Result<(Vec<Vec<u8>>, Expected)> {
        let socket = UdpSocket::bind((self.from, 0)).context("cannot bind the client's address")?;
        socket.connect(self.to)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let mut answers = Vec::new();
        let mut common: Option<Expected> = None;
        for number in self.question.names.some(READ) {
            let query = self.question.query(number as u16, number)?;
            let answer = exchange(&socket, &query).with_context(|| label(number))?;
            let read = self.question.read(&query, &answer, self.found);
            let read = read.with_context(|| label(number))?;
            let first = *common.get_or_insert(read);
            ensure!(read == first, "{}: {read:?} differs from {first:?}", label(number));
            answers.push(answer);
        }
        Ok((answers, common.context("no names")?))
    }
}

/// The answer to one query.
fn exchange(socket: &UdpSocket, query: &[u8]) -> Result<Vec<u8>> {
    let mut bytes = vec![0; 4096];
    for _ in 0..TRIES {
        socket.send(query)?;
        while let Ok(length) = socket.recv(&mut bytes) {
            // An answer to an earlier try of another name may come late.
            if length >= 2 && bytes[..2] == query[..2] {
                bytes.truncate(length);
                return Ok(bytes);
            }
        }
    }
    bail!("no answer within {:?}", PATIENCE * TRIES)
}

impl Queries {
    /// Asks from now on; `expected` is from [`QueryOptions::read_some`].
    ///
    /// # Errors
    ///
    /// When a query is too long, or the program cannot be loaded and attached.
    pub fn start(options: &QueryOptions, expected: Expected) -> Result<Self> {
        let slots = options.outstanding;
        ensure!((1..=MOST_OUTSTANDING).contains(&slots), "1 to {MOST_OUTSTANDING} at a time");
        let object = Loaded::load("queries", &OBJECT.0, &[("slots", slots)])?;
        let layouts = Layouts {
            question: object.layout("question")?,
            slot: object.layout("slot")?,
            tally: object.layout("tally")?,
        };
        store(&object.map("questions")?, 0, &layouts.write(options, expected)?)?;
        let attachment = object.attach("ask", &options.interface)?;
        let bind = |slot| {
            let socket = UdpSocket::bind((options.from, FIRST_PORT + slot as u16))
                .context("a port of the load is in use")?;
            socket.connect(options.to)?;
            anyhow::Ok(socket)
        };
        let sockets = (0..slots).map(bind).collect::<Result<_>>()?;
        let question = options.question.clone();
        let mut queries =
            Self { _attachment: attachment, object, layouts, sockets, question, asked_again: 0 };
        let first = options.question.names.some(slots);
        // Others in each run: a name that was new once must not come again.
        let salt = clock_gettime(ClockId::Monotonic).tv_nsec as u32;
        for slot in 0..slots {
            let number = first[slot as usize % first.len()];
            queries.ask(slot, 0, number, (slot.wrapping_mul(0x9e37_79b9) ^ salt) | 1)?;
        }
        Ok(queries)
    }

    /// Lets it run for `duration`; `sample` is called at both ends.
    ///
    /// # Errors
    ///
    /// When the interface is gone, or those of `sample`.
    pub fn measure<S>(
        &mut self,
        duration: Duration,
        mut sample: impl FnMut() -> Result<S>,
    ) -> Result<(Tally, Duration, [S; 2])> {
        let begun = Instant::now();
        let (before, begin) = (self.tally()?, sample()?);
        while let Some(left) = duration.checked_sub(begun.elapsed()) {
            std::thread::sleep(left.min(WATCH));
            self.look_after()?;
        }
        let lasted = begun.elapsed();
        let (after, end) = (self.tally()?, sample()?);
        Ok((after - before, lasted, [begin, end]))
    }

    /// Everything until now.
    fn tally(&self) -> Result<Tally> {
        let map = self.object.map("tallies")?;
        let cores = map.lookup_percpu(&0u32.to_ne_bytes(), libbpf_rs::MapFlags::ANY)?;
        let cores = cores.context("the tally")?;
        let sum = |name: &str| -> Result<u64> {
            let at = self.layouts.tally.field(name)?;
            Ok(cores.iter().map(|core| core.u64_at(at)).sum())
        };
        Ok(Tally {
            answers: sum("answers")?,
            bytes: sum("bytes")?,
            stale: sum("stale")?,
            errors: [
                sum("wrong_flags")?,
                sum("wrong_length")?,
                sum("wrong_address")?,
                sum("no_packet")?,
            ],
            asked_again: self.asked_again,
        })
    }

    /// Asks again what was not answered.
    fn look_after(&mut self) -> Result<()> {
        let now = clock_gettime(ClockId::Monotonic);
        let now = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        let late = now - PATIENCE.as_nanos() as u64;
        for place in 0..self.sockets.len() as u32 {
            let slot = fetch(&self.object.map("slots")?, place)?;
            if slot.u64_at(self.layouts.slot.field("sent_ns")?) > late {
                continue;
            }
            let field = |name| Ok::<_, anyhow::Error>(slot.u32_at(self.layouts.slot.field(name)?));
            let (id, number, seed) = (field("id")?, field("number")?, field("seed")?);
            self.asked_again += 1;
            self.ask(place, id.wrapping_add(1) as u16, number, seed)?;
        }
        Ok(())
    }

    /// Sends the query of a slot, which the program does not touch meanwhile.
    fn ask(&mut self, place: u32, id: u16, number: u32, seed: u32) -> Result<()> {
        let layout = &self.layouts.slot;
        let now = clock_gettime(ClockId::Monotonic);
        let mut slot = layout.zeroed();
        let now = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        slot.put_u64(layout.field("sent_ns")?, now);
        slot.put_u32(layout.field("number")?, number);
        slot.put_u32(layout.field("seed")?, seed);
        slot.put_u32(layout.field("id")?, id.into());
        store(&self.object.map("slots")?, place, &slot)?;
        // An error of an earlier query, as from a port that was closed, is reported here: it is asked again.
        let _asked_again = self.sockets[place as usize].send(&self.question.query(id, number)?);
        Ok(())
    }
}

impl Layouts {
    fn write(&self, options: &QueryOptions, expected: Expected) -> Result<Vec<u8>> {
        let layout = &self.question;
        let (mut bytes, room) = (layout.zeroed(), layout.field("bytes")?);
        let mut template = options.question.query(0, 0)?;
        template[DIGITS_AT..DIGITS_AT + DIGITS].fill(0);
        let most = bytes.len() - room;
        ensure!(template.len() <= most, "a query has more than {most} bytes");
        let (first, names, random) = match options.question.names {
            Names::InTurn { first, count } => (first, count, 0),
            Names::Drawn(count) => (0, count, 1),
            Names::Fresh => (0, 0, 0),
        };
        for (field, value) in [
            ("length", template.len() as u32),
            ("sum", internet_sum(&template)),
            ("first", first),
            ("names", names),
            ("random", random),
            ("run", 1),
            ("server_port", options.to.port().into()),
            ("first_port", FIRST_PORT.into()),
            ("slots", options.outstanding),
            ("flags", u16::from_ne_bytes(expected.flags).into()),
            ("answer_length", expected.length as u32),
            ("address_at", expected.address_at.unwrap_or(0) as u32),
        ] {
            bytes.put_u32(layout.field(field)?, value);
        }
        bytes.put(room, &template);
        Ok(bytes)
    }
}

impl Drop for Queries {
    fn drop(&mut self) {
        // Nothing more is asked, and what is outstanding is answered before the ports are closed.
        let stop = || -> Result<()> {
            let map = self.object.map("questions")?;
            let mut question = fetch(&map, 0)?;
            question.put_u32(self.layouts.question.field("run")?, 0);
            store(&map, 0, &question)
        };
        if let Err(error) = stop() {
            eprintln!("afpa-netlab: cannot end the queries: {error:#}");
        }
        std::thread::sleep(WATCH);
    }
}

impl Tally {
    /// The errors in words; `None` when there are none.
    pub fn complaint(&self) -> Option<String> {
        const WORDS: [&str; 4] =
            ["other flags", "another length", "another name's address", "no packet for the next"];
        let told = self.errors.iter().zip(WORDS).filter(|(count, _)| **count > 0);
        let told: Vec<String> =
            told.map(|(count, words)| format!("{count} with {words}")).collect();
        (!told.is_empty()).then(|| told.join(", "))
    }
}

impl Sub for Tally {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        let errors = std::array::from_fn(|place| self.errors[place] - before.errors[place]);
        Self {
            answers: self.answers - before.answers,
            bytes: self.bytes - before.bytes,
            stale: self.stale - before.stale,
            errors,
            asked_again: self.asked_again - before.asked_again,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_answers_are_named() {
        let before = Tally { answers: 5, errors: [1, 0, 0, 0], ..Tally::default() };
        let after = Tally { answers: 9, errors: [1, 2, 3, 0], ..Tally::default() };
        let between = after - before;
        assert_eq!((between.answers, between.errors), (4, [0, 2, 3, 0]));
        let complaint = between.complaint().unwrap();
        assert_eq!(complaint, "2 with another length, 3 with another name's address");
        assert_eq!(Tally::default().complaint(), None);
    }

    #[test]
    fn the_program_s_digits_are_here() {
        let header = include_str!("../../../../bpf/generator/queries.h");
        assert!(header.contains(&format!("#define DIGITS {DIGITS}\n")));
        assert!(header.contains(&format!("#define DIGITS_AT {DIGITS_AT}\n")));
    }
}
