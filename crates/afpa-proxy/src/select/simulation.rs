//! Groups under load in virtual time: seeded, so that every run is the same.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::future::Future as _;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::*;

/// How a server behaves at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mood {
    /// It answers after so many milliseconds, and some more when it has many requests.
    Answers(u64),
    /// It refuses connections.
    Refuses,
    /// It takes connections, and that is all.
    Frozen,
}

/// Milliseconds until the client of a frozen server gives up.
const FIRST_BYTE: u64 = 1000;

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrival,
    /// The request's attempt with this number ends.
    End(u64),
    Beat,
}

struct Attempt {
    lease: Lease,
    outcome: AttemptOutcome,
    request: Request,
}

#[derive(Clone)]
struct Request {
    arrived: u64,
    client: u8,
    tried: Vec<ServerIndex>,
}

/// The results of all requests.
#[derive(Debug, Default)]
struct Result {
    answered: u64,
    refused: Vec<(u64, WhyNone)>,
    failed: u64,
    longest_wait: u64,
    /// Arrivals of requests that had to wait, in the order in which they were given a server.
    served_from_queue: Vec<u64>,
    /// Time and server of each answer.
    answers: Vec<(u64, usize)>,
}

struct World {
    group: Arc<Group>,
    moods: Box<dyn Fn(u64, usize) -> Mood>,
    now: u64,
    seed: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    order: u64,
    attempts: std::collections::HashMap<u64, Attempt>,
    waiting: VecDeque<(Waiter, Request)>,
    result: Result,
}

impl World {
    fn new(settings: GroupSettings, moods: impl Fn(u64, usize) -> Mood + 'static) -> Self {
        Self {
            group: Group::new(settings, None, 0),
            moods: Box::new(moods),
            now: 0,
            seed: 0x9e37_79b9_7f4a_7c15,
            events: BinaryHeap::new(),
            order: 0,
            attempts: Default::default(),
            waiting: VecDeque::new(),
            result: Result::default(),
        }
    }

    /// `per_second` requests at random times until `until`, and then until all have ended.
    fn run(mut self, per_second: u64, until: u64) -> (Result, Arc<Group>) {
        let count = per_second * until / 1000;
        for _ in 0..count {
            let at = self.random() % until;
            self.at(at, Event::Arrival);
        }
        for beat in 0..=(until + 60_000) / 50 {
            self.at(beat * 50, Event::Beat);
        }
        while let Some(Reverse((at, _, event))) = self.events.pop() {
            assert!(at >= self.now);
            self.now = at;
            match event {
                Event::Arrival => {
                    let client = (self.random() % 200) as u8;
                    self.ask(Request { arrived: at, client, tried: Vec::new() });
                }
                Event::End(number) => self.end(number),
                Event::Beat => self.beat(),
            }
            self.poll_waiting();
        }
        assert!(self.attempts.is_empty() && self.waiting.is_empty());
        let total = self.result.answered + self.result.failed + self.result.refused.len() as u64;
        assert_eq!(total, count, "every request came to an end");
        assert!(self.group.report(self.now).servers.iter().all(|server| server.in_flight == 0));
        (self.result, self.group)
    }

    fn ask(&mut self, request: Request) {
        let client = Some(IpAddr::from([192, 0, 2, request.client]));
        let chosen = Chosen { client, ..Chosen::default() };
        match self.group.pick(self.now, &chosen, &request.tried) {
            Pick::Server(lease) => self.begin(lease, request),
            Pick::Queue(waiter) => self.waiting.push_back((waiter, request)),
            Pick::None(why) => self.result.refused.push((self.now, why)),
        }
    }

    fn begin(&mut self, lease: Lease, request: Request) {
        let server = lease.server().0 as usize;
        self.result.longest_wait = self.result.longest_wait.max(self.now - request.arrived);
        let (after, outcome) = match (self.moods)(self.now, server) {
            Mood::Refuses => (0, AttemptOutcome::ConnectRefused),
            Mood::Frozen => (FIRST_BYTE, AttemptOutcome::FirstByteTimeout),
            Mood::Answers(ms) => {
                let ms = ms / 2 + self.random() % ms;
                let us = ms as u32 * 1000;
                (ms, AttemptOutcome::Ok { status: 200, first_byte_us: us, total_us: us })
            }
        };
        self.order += 1;
        let number = self.order;
        self.at(self.now + after, Event::End(number));
        self.attempts.insert(number, Attempt { lease, outcome, request });
    }

    /// A failed request is repeated elsewhere, three times at most.
    fn end(&mut self, number: u64) {
        let Attempt { lease, outcome, mut request } = self.attempts.remove(&number).unwrap();
        let server = lease.server();
        lease.finish(self.now, outcome);
        if matches!(outcome, AttemptOutcome::Ok { .. }) {
            self.result.answered += 1;
            self.result.answers.push((self.now, server.0 as usize));
        } else if request.tried.len() < 3 {
            request.tried.push(server);
            self.ask(request);
        } else {
            self.result.failed += 1;
        }
    }

    fn beat(&mut self) {
        for task in self.group.due_probes(self.now) {
            let server = self.group.report(0).servers.iter().position(|s| s.name == task.name);
            let mood = (self.moods)(self.now, server.unwrap());
            let good = match task.kind {
                crate::health::ProbeKind::Connect => mood != Mood::Refuses,
                _ => matches!(mood, Mood::Answers(_)),
            };
            self.group.probed(self.now, &task, good);
        }
    }

    fn poll_waiting(&mut self) {
        let timeout = u64::try_from(self.group.queue_timeout().as_millis()).unwrap();
        for (mut waiter, request) in std::mem::take(&mut self.waiting) {
            match Pin::new(&mut waiter).poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Pick::Server(lease)) => {
                    self.result.served_from_queue.push(request.arrived);
                    self.begin(lease, request);
                }
                Poll::Ready(Pick::None(why)) => self.result.refused.push((self.now, why)),
                Poll::Ready(Pick::Queue(_)) => panic!("who waited is told to wait"),
                Poll::Pending if self.now - request.arrived > timeout => self.result.failed += 1,
                Poll::Pending => self.waiting.push_back((waiter, request)),
            }
        }
    }

    fn at(&mut self, time: u64, event: Event) {
        self.order += 1;
        self.events.push(Reverse((time, self.order, event)));
    }

    /// xorshift64* (Vigna 2016).
    fn random(&mut self) -> u64 {
        self.seed ^= self.seed >> 12;
        self.seed ^= self.seed << 25;
        self.seed ^= self.seed >> 27;
        self.seed.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }
}

fn settings(count: u8, most: u32) -> GroupSettings {
    let server = |n| ServerSettings {
        max_connections: most,
        ..ServerSettings::at(format!("10.0.0.{n}:80").parse().unwrap())
    };
    GroupSettings { servers: (1..=count).map(server).collect(), ..GroupSettings::default() }
}

#[test]
fn a_killed_server_costs_no_request_and_is_back_at_the_first_probe_after_its_restart() {
    let moods = |now, server| match (now, server) {
        (5_000..38_000, 1) => Mood::Refuses,
        _ => Mood::Answers(20),
    };
    let (result, group) = World::new(settings(3, 100), moods).run(300, 60_000);
    assert_eq!((result.failed, result.refused.len()), (0, 0), "{:?}", result.refused);
    let counts = &group.report(60_000).servers[1].counts;
    assert_eq!((counts.downs, counts.ups, counts.errors[0]), (1, 1, 1), "one request met it");
    let gap = |from: u64, to: u64| {
        result.answers.iter().filter(|(at, server)| *server == 1 && (from..to).contains(at)).count()
    };
    assert_eq!(gap(5_100, 38_000), 0);
    assert_eq!(counts.probes, [3, 1], "at 15, 25 and 35 s, and at 45 s");
    assert!(gap(38_000, 45_000) == 0 && gap(45_000, 46_000) > 80);
    let all = result.answers.iter().filter(|(at, _)| *at < 5_000).count();
    assert!(gap(0, 5_000).abs_diff(all / 3) <= 5, "a third of {all}: {}", gap(0, 5_000));
}

#[test]
fn a_frozen_server_is_out_after_three_time_outs_and_comes_back_only_when_it_answers() {
    let moods = |now, server| match (now, server) {
        (5_000..28_000, 0) => Mood::Frozen,
        _ => Mood::Answers(20),
    };
    let (result, group) = World::new(settings(3, 100), moods).run(300, 50_000);
    assert_eq!((result.failed, result.refused.len()), (0, 0));
    let counts = &group.report(50_000).servers[0].counts;
    assert_eq!((counts.downs, counts.ups), (1, 1));
    let late: Vec<_> = result.answers.iter().filter(|(_, server)| *server == 0).collect();
    assert!(late.iter().all(|(at, _)| *at < 5_050 || *at > 36_000), "10 s after it began to fail");
    assert!(counts.errors[3] < 120, "only what was sent in the first second: {counts:?}");
}

#[test]
fn overload_is_shed_and_does_not_cascade() {
    // 3 servers of 10 places and about 100 ms: 300 requests a second; twice as many come.
    let settings = |count| GroupSettings {
        queue: QueueSettings { length: 50, timeout: Duration::from_secs(2) },
        ..settings(count, 10)
    };
    let (result, group) = World::new(settings(3), |_, _| Mood::Answers(100)).run(600, 30_000);
    let report = group.report(30_000);
    assert!(report.servers.iter().all(|server| server.available && server.counts.downs == 0));
    assert!(result.answered > 290 * 30, "the servers stayed busy: {}", result.answered);
    assert!(result.longest_wait <= 2000, "nobody waited longer: {}", result.longest_wait);
    let refused = |why: &WhyNone| matches!(why, WhyNone::QueueFull | WhyNone::Shed);
    assert!(result.refused.iter().all(|(_, why)| refused(why)), "with 503, at once");
    // A server dies under that load: the others go on as before.
    let moods = |now, server| match (now, server) {
        (10_000.., 0) => Mood::Refuses,
        _ => Mood::Answers(100),
    };
    let (result, group) = World::new(settings(3), moods).run(600, 30_000);
    let downs: Vec<_> = group.report(0).servers.iter().map(|s| s.counts.downs).collect();
    assert_eq!(downs, [1, 0, 0]);
    assert!(result.answered > 290 * 10 + 190 * 20, "{}", result.answered);
}

#[test]
fn whoever_waits_is_served_in_the_order_of_arrival() {
    let settings = GroupSettings {
        queue: QueueSettings { length: 1000, timeout: Duration::from_secs(60) },
        ..settings(2, 2)
    };
    let (result, _) = World::new(settings, |_, _| Mood::Answers(50)).run(85, 20_000);
    assert_eq!((result.failed, result.refused.len()), (0, 0));
    assert!(result.served_from_queue.len() > 500);
    assert!(result.served_from_queue.is_sorted());
    assert!(result.longest_wait < 20_000);
}

#[test]
fn affinity_starves_nobody() {
    let settings = GroupSettings {
        affinity: Affinity::Client,
        queue: QueueSettings { length: 1000, timeout: Duration::from_secs(30) },
        ..settings(3, 5)
    };
    let moods = |now, server| match (now, server) {
        (6_000..9_000, 2) => Mood::Refuses,
        _ => Mood::Answers(30),
    };
    let (result, _) = World::new(settings, moods).run(250, 20_000);
    assert_eq!((result.failed, result.refused.len()), (0, 0));
    assert!(result.longest_wait < 10_000, "{}", result.longest_wait);
}

#[test]
fn with_all_servers_down_the_last_resort_finds_the_first_that_is_back() {
    let moods = |now, _| match now {
        5_000..8_000 => Mood::Refuses,
        _ => Mood::Answers(10),
    };
    let (result, _) = World::new(settings(2, 100), moods).run(100, 20_000);
    let refused: Vec<_> = result.refused.iter().map(|(at, _)| *at).collect();
    assert!(refused.iter().all(|at| (5_000..9_100).contains(at)), "at most a second longer");
    assert!(result.refused.iter().all(|(_, why)| why.status().code() == 502));
}
