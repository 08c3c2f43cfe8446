//! Faults at random: of one server of NATS and of one machine at a time, each by a thread of its own.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use afpa_testkit::random::Random;
use rustix::process::Signal;

use super::ledger::Ledger;
use super::place::{COUNT, Machine, NatsServer, Node, Place};

/// The longest fault but one. A process that stops for longer than `stale_after` could answer once before it looks at the clock.
const LONGEST: u64 = 7000;

/// Longer than orders are kept.
const LONG: Duration = Duration::from_secs(20);

pub(super) struct Faults<'f> {
    pub(super) place: &'f Place,
    pub(super) ledger: &'f Ledger,
    pub(super) ends: &'f AtomicBool,
    /// How often there was each.
    pub(super) counts: Mutex<BTreeMap<&'static str, usize>>,
    /// Machines whose disk is full, or was a moment ago.
    full: [AtomicBool; COUNT],
}

impl<'f> Faults<'f> {
    pub(super) fn new(place: &'f Place, ledger: &'f Ledger, ends: &'f AtomicBool) -> Self {
        let (counts, full) = Default::default();
        Self { place, ledger, ends, counts, full }
    }

    /// Until the end. Then all is well again.
    pub(super) fn of_servers(&self, seed: u64) {
        let mut random = Random::new(seed);
        while self.pause(&mut random) {
            let at = random.below(COUNT);
            let (server, node) = (&self.place.servers[at], Node::Server(at));
            match random.below(13) {
                0..=2 => self.kill_servers(&[server], ("server killed", node), &mut random),
                3 => {
                    let all: Vec<_> = self.place.servers.iter().collect();
                    self.kill_servers(&all, ("all servers killed", node), &mut random);
                }
                4..=5 => {
                    self.begin("server stopped", node);
                    server.signal(Signal::STOP);
                    self.hold(&mut random);
                    server.signal(Signal::CONT);
                }
                6..=7 => {
                    self.begin("server slowed", node);
                    self.stutter(server, &mut random);
                }
                8..=9 => self.cut(node, "server cut off", &mut random),
                10..=11 => {
                    self.begin("server cut off from the others", node);
                    self.place.set_apart(at, true);
                    self.hold(&mut random);
                    self.place.set_apart(at, false);
                }
                _ => {
                    self.begin("server's disk full", node);
                    self.place.fill(node);
                    self.hold(&mut random);
                    self.place.empty(node);
                    // It takes part in no stream any more until it is started again.
                    server.kill();
                    server.start();
                }
            }
            self.place.story.add(format_args!("{node}: well"));
        }
    }

    /// Likewise.
    pub(super) fn of_machines(&self, seed: u64) {
        let mut random = Random::new(seed);
        while self.pause(&mut random) {
            let at = random.below(COUNT);
            let (machine, node) = (&self.place.machines[at], Node::Machine(at));
            match random.below(14) {
                0..=3 => self.kill(at, machine, &mut random),
                4..=6 => {
                    self.begin("machine stopped", node);
                    machine.change(true, |server| server.signal(Signal::STOP));
                    self.hold(&mut random);
                    machine.change(false, |server| server.signal(Signal::CONT));
                }
                7..=10 => self.cut(node, "machine cut off", &mut random),
                11 => {
                    self.begin("machine reloaded", node);
                    machine.server.lock().expect("no panic").signal(Signal::HUP);
                }
                12 if random.one_in(3) => {
                    self.begin("machine cut off for long", node);
                    self.place.cut(node, true);
                    self.wait(LONG);
                    self.place.cut(node, false);
                }
                _ => {
                    self.begin("machine's disk full", node);
                    self.full[at].store(true, Ordering::SeqCst);
                    self.place.fill(node);
                    self.hold(&mut random);
                    if random.one_in(2) {
                        self.kill(at, machine, &mut random);
                    }
                    self.place.empty(node);
                    self.full[at].store(false, Ordering::SeqCst);
                }
            }
            self.place.story.add(format_args!("{node}: well"));
        }
    }

    fn kill_servers(
        &self,
        servers: &[&NatsServer],
        (what, node): (&'static str, Node),
        random: &mut Random,
    ) {
        self.begin(what, node);
        servers.iter().for_each(|server| server.kill());
        self.hold(random);
        servers.iter().for_each(|server| server.start());
    }

    /// As one on a machine that has no time for it.
    fn stutter(&self, server: &NatsServer, random: &mut Random) {
        let (begun, length) = (Instant::now(), length(random));
        while begun.elapsed() < length && !self.ends.load(Ordering::Relaxed) {
            server.signal(Signal::STOP);
            std::thread::sleep(Duration::from_millis(180));
            server.signal(Signal::CONT);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn cut(&self, node: Node, what: &'static str, random: &mut Random) {
        self.begin(what, node);
        self.place.cut(node, true);
        self.hold(random);
        self.place.cut(node, false);
    }

    fn kill(&self, at: usize, machine: &Machine, random: &mut Random) {
        self.begin("machine killed", Node::Machine(at));
        let is_disk_well = !self.full[at].load(Ordering::SeqCst);
        machine.change(true, |server| server.kill());
        self.ledger.killed(at, is_disk_well);
        self.hold(random);
        machine.change(false, |server| server.kill_and_restart());
    }

    fn begin(&self, what: &'static str, node: Node) {
        self.place.story.add(format_args!("{node}: {what}"));
        *self.counts.lock().expect("no panic").entry(what).or_default() += 1;
    }

    /// Some time without a fault of this kind. Whether there is to be another one.
    fn pause(&self, random: &mut Random) -> bool {
        self.wait(Duration::from_millis(300 + random.below(3500) as u64));
        !self.ends.load(Ordering::Relaxed)
    }

    fn hold(&self, random: &mut Random) {
        self.wait(length(random));
    }

    /// Shorter where the end comes.
    fn wait(&self, length: Duration) {
        let begun = Instant::now();
        while begun.elapsed() < length && !self.ends.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn length(random: &mut Random) -> Duration {
    Duration::from_millis(200 + random.below(LONGEST as usize) as u64)
}
