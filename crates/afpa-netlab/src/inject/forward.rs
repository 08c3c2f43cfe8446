//! The forwarder's thread: packet sockets in and out, lanes between them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{io, thread};

use afpa_testkit::packet::PacketSocket;
use anyhow::{Context, Result, anyhow};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Counts, Lane, Rules};
use crate::Namespace;
use crate::interface::{Offloads, connect};

/// Ethernet header, VLAN tag and an MTU of 1,500 bytes.
const LARGEST_FRAME: usize = 1518;
/// Packets taken from one side before the other has its turn.
const BATCH: usize = 64;
/// How soon the thread notices that it shall end.
const PATIENCE: Duration = Duration::from_millis(20);
const LEFT: &str = "left";
const RIGHT: &str = "right";

/// A forwarder in a namespace of its own between a client's and a server's.
#[derive(Debug)]
pub struct Injector {
    // Before the namespace: the thread ends first.
    forwarder: Forwarder,
    _middle: Namespace,
}

impl Injector {
    /// Joins two namespaces by way of a third; `device` is the interface's name in both. All
    /// offloads are switched off.
    ///
    /// # Errors
    ///
    /// When a step of the set-up fails.
    pub fn between(
        client: &Namespace,
        server: &Namespace,
        device: &str,
        rules: &Rules,
    ) -> Result<Self> {
        let middle = Namespace::create("middle")?;
        connect((client, device), (&middle, LEFT))?;
        connect((server, device), (&middle, RIGHT))?;
        for (namespace, name) in
            [(client, device), (server, device), (&middle, LEFT), (&middle, RIGHT)]
        {
            namespace.interface(name).set_offloads(Offloads::NONE)?;
        }
        let forwarder = middle.run(|| Forwarder::start(LEFT, RIGHT, rules))??;
        Ok(Self { forwarder, _middle: middle })
    }

    /// See [`Forwarder::counts`].
    pub fn counts(&self) -> (Counts, Counts) {
        self.forwarder.counts()
    }

    /// See [`Forwarder::set_rules`].
    pub fn set_rules(&self, rules: &Rules) {
        self.forwarder.set_rules(rules);
    }
}

/// A running forwarder between two interfaces; it ends when dropped.
#[derive(Debug)]
pub struct Forwarder {
    shared: Arc<ForwarderControl>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

#[derive(Debug, Default)]
struct ForwarderControl {
    stop: AtomicBool,
    /// To the server, to the client.
    counts: Mutex<(Counts, Counts)>,
    new_rules: Mutex<Option<Rules>>,
}

impl Forwarder {
    /// Starts to forward between two interfaces of the calling thread's namespace; `left` is the
    /// client's side. Both need to be up, without addresses, and offloads off all around.
    ///
    /// # Errors
    ///
    /// When a packet socket cannot be opened.
    pub fn start(left: &str, right: &str, rules: &Rules) -> Result<Self> {
        let mut loop_ = Loop {
            sides: [PacketSocket::open(left)?, PacketSocket::open(right)?],
            lanes: lanes(rules),
            begin: Instant::now(),
            before: (Counts::default(), Counts::default()),
        };
        let shared = Arc::new(ForwarderControl::default());
        let seen = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("injector".into())
            .spawn(move || loop_.run(&seen))
            .context("cannot start the forwarder's thread")?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// The counts of both lanes (to the server, to the client) since the start.
    pub fn counts(&self) -> (Counts, Counts) {
        *self.shared.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Other rules, in force when it returns; packets on their way are delivered at once. Counts go on.
    pub fn set_rules(&self, rules: &Rules) {
        let next = || self.shared.new_rules.lock().unwrap_or_else(PoisonError::into_inner);
        *next() = Some(rules.clone());
        while next().is_some() && !self.has_ended() {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// It has ended by itself; [`wait`](Self::wait) tells why.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until the forwarder ends by itself, as it does when an interface goes away.
    ///
    /// # Errors
    ///
    /// The error that ended it.
    pub fn wait(mut self) -> Result<()> {
        self.join()
    }

    fn join(&mut self) -> Result<()> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().map_err(|_| anyhow!("the forwarder panicked"))?.context("the forwarder")
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        // An interface that is gone already is no news at this point.
        let _ = self.join();
    }
}

fn lanes(rules: &Rules) -> [Lane; 2] {
    [
        Lane::new(rules.to_server.clone(), rules.seed),
        Lane::new(rules.to_client.clone(), rules.seed ^ 0x5555_5555_5555_5555),
    ]
}

struct Loop {
    sides: [PacketSocket; 2],
    lanes: [Lane; 2],
    begin: Instant,
    /// Counts of lanes that were replaced.
    before: (Counts, Counts),
}

impl Loop {
    fn run(&mut self, shared: &ForwarderControl) -> io::Result<()> {
        while !shared.stop.load(Ordering::Relaxed) {
            self.take_rules(shared);
            for direction in 0..2 {
                self.receive(direction)?;
                self.send(direction)?;
            }
            self.publish(shared);
            self.sleep()?;
        }
        Ok(())
    }

    fn receive(&mut self, direction: usize) -> io::Result<()> {
        let mut buffer = [0; LARGEST_FRAME + 1];
        for _ in 0..BATCH {
            let Some(length) = self.sides[direction].receive(&mut buffer)? else { break };
            let lane = &mut self.lanes[direction];
            if length > LARGEST_FRAME {
                lane.counts_mut().oversize += 1;
            } else {
                lane.admit(self.begin.elapsed(), buffer[..length].to_vec());
            }
        }
        Ok(())
    }

    fn send(&mut self, direction: usize) -> io::Result<()> {
        let now = self.begin.elapsed();
        while let Some(frame) = self.lanes[direction].release(now) {
            if !self.sides[1 - direction].send(&frame)? {
                let counts = self.lanes[direction].counts_mut();
                counts.sent -= 1;
                counts.refused += 1;
            }
        }
        Ok(())
    }

    fn sleep(&self) -> io::Result<()> {
        let now = self.begin.elapsed();
        let due = self.lanes.iter().filter_map(Lane::next_due).min();
        let wait = due.map_or(PATIENCE, |due| due.saturating_sub(now).min(PATIENCE));
        let timeout = Timespec { tv_sec: 0, tv_nsec: wait.subsec_nanos().into() };
        let mut sides = self.sides.each_ref().map(|side| PollFd::new(side, PollFlags::IN));
        match poll(&mut sides, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn take_rules(&mut self, shared: &ForwarderControl) {
        let next = shared.new_rules.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(rules) = next else { return };
        let fresh = lanes(&rules);
        let old = std::mem::replace(&mut self.lanes, fresh);
        for (direction, mut lane) in old.into_iter().enumerate() {
            while let Some(frame) = lane.release(Duration::MAX) {
                // A device without room loses it, as a wire would.
                let _ = self.sides[1 - direction].send(&frame);
            }
            let before = if direction == 0 { &mut self.before.0 } else { &mut self.before.1 };
            *before = *before + lane.counts();
        }
    }

    fn publish(&self, shared: &ForwarderControl) {
        let counts =
            (self.before.0 + self.lanes[0].counts(), self.before.1 + self.lanes[1].counts());
        *shared.counts.lock().unwrap_or_else(PoisonError::into_inner) = counts;
    }
}
