//! The state of each target: seen, asked for, kept, refused. No I/O, no clock.
//!
//! Invariants, as of the [ledger](crate::ledger):
//! 1. the end of an answer raises the epoch of its target first, so an answer that was asked for before is never
//!    pinned;
//! 2. the code that takes an answer out of this table takes it out of the kernel under the same lock;
//! 3. a kept answer has a lease: one that the server has not confirmed in time ends;
//! 4. there are never more targets than the limit. One without any history gives way to another;
//! 5. the server is asked for a target, the first time or again, only if a client has asked for it since.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::scope::Which;

/// A request target as clients spell it.
pub type Target = Arc<[u8]>;

/// A target that was asked for so often is worth the questions...
const WORTH: u32 = 8;
/// ... within this time.
const WINDOW: Duration = Duration::from_secs(10);
/// Between two new targets, so that a client that invents targets does not make the server work.
const PACE: Duration = Duration::from_millis(200);
/// Targets that give way to others in one round of reports.
const GIVE_WAY: u32 = 16;
/// Everything is asked for anew after this time.
const RENEW: Duration = Duration::from_secs(600);
/// The first time for which a refused target is left alone. It doubles with each refusal, up to the last one.
const FIRST_REST: Duration = Duration::from_secs(4);
const LAST_REST: Duration = Duration::from_secs(512);

/// All targets that are looked at.
#[derive(Debug)]
pub struct KeptTable {
    most: usize,
    /// So many clients must have asked for a target with a query.
    clients: usize,
    entries: HashMap<Target, Entry>,
    epoch: u64,
    /// How many targets may still give way to others in this round of reports: finding one means looking at all.
    may_give_way: u32,
    /// When the next new target may be asked for.
    next_ask: Option<Instant>,
    counts: KeptCounts,
}

/// Numbers of events since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptCounts {
    /// Answers that were dropped by an order.
    pub purged: u64,
    /// Because of an unsafe request.
    pub outdated: u64,
    /// Because the server said something else.
    pub changed: u64,
    /// Answers whose age began anew.
    pub confirmed: u64,
}

#[derive(Debug)]
struct Entry {
    epoch: u64,
    refusals: u32,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The target was asked for so often since then, by these clients; only as many clients are noted as are needed.
    Seen(u32, Instant, Vec<u64>),
    /// To be asked for.
    Due(Instant),
    /// Being asked for.
    Asked,
    Kept {
        /// When the server was asked last.
        confirmed: Instant,
        lease: Duration,
        /// When it is to be asked again; `None`: it is being asked.
        check: Option<Instant>,
        used: Instant,
        until: Instant,
    },
    /// Left alone until then.
    Refused(Instant),
    /// It was kept. It is asked for anew if a client asks for it, but not before then.
    Ended(Instant),
}

/// A target, and the epoch in which its work began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptJob {
    /// Which.
    pub target: Target,
    epoch: u64,
}

/// The work for a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptWork {
    /// It is to be asked for.
    Ask(KeptJob),
    /// The server is to confirm it.
    Confirm(KeptJob),
}

impl KeptTable {
    /// An empty table of at most `most` targets. A target with a query is asked for once `clients` clients have asked
    /// for it.
    pub fn new(most: usize, clients: usize) -> Self {
        let (entries, counts) = (HashMap::new(), KeptCounts::default());
        Self { most, clients, entries, epoch: 0, may_give_way: GIVE_WAY, next_ask: None, counts }
    }

    /// A round of reports begins.
    pub fn begin_round(&mut self) {
        self.may_give_way = GIVE_WAY;
    }

    /// A client's request for the target went to the server.
    pub fn seen(&mut self, target: &[u8], client: u64, now: Instant) {
        let needed = if target.contains(&b'?') { self.clients } else { 1 };
        let Some(entry) = self.entries.get_mut(target) else {
            return self.admit(target, client, now);
        };
        let again = match &mut entry.state {
            State::Seen(_, since, _) => *since + WINDOW <= now,
            State::Refused(until) => *until <= now,
            _ => false,
        };
        if again {
            entry.state = State::Seen(0, now, Vec::new());
        }
        match &mut entry.state {
            State::Seen(count, _, clients) => {
                *count += 1;
                if clients.len() < needed && !clients.contains(&client) {
                    clients.push(client);
                }
                if *count >= WORTH && clients.len() >= needed {
                    entry.state = State::Due(now);
                }
            }
            State::Ended(then) => entry.state = State::Due(now.max(*then)),
            _ => {}
        }
    }

    fn admit(&mut self, target: &[u8], client: u64, now: Instant) {
        if self.entries.len() >= self.most && !self.make_room(now) {
            return;
        }
        self.epoch += 1;
        let state = State::Seen(1, now, vec![client]);
        self.entries.insert(target.into(), Entry { epoch: self.epoch, refusals: 0, state });
    }

    /// The target that tells least gives way: one that is not asked for any more, or else the one that was refused first.
    fn make_room(&mut self, now: Instant) -> bool {
        let Some(left) = self.may_give_way.checked_sub(1) else { return false };
        self.may_give_way = left;
        let worth = |state: &State| match state {
            State::Seen(_, since, _) if *since + WINDOW <= now => Some((0, *since)),
            State::Refused(until) | State::Ended(until) => Some((1, *until)),
            State::Seen(1, since, _) => Some((2, *since)),
            _ => None,
        };
        let all = self.entries.iter();
        let least = all.filter_map(|(target, entry)| Some((worth(&entry.state)?, target))).min();
        let Some(target) = least.map(|(_, target)| target.clone()) else { return false };
        self.entries.remove(&target).is_some()
    }

    /// The next target whose turn it is. Kept targets come first.
    pub fn next(&mut self, now: Instant) -> Option<KeptWork> {
        let may_ask = self.next_ask.is_none_or(|then| then <= now);
        self.take_next(now, may_ask)
    }

    /// The next kept target whose turn it is.
    pub fn next_to_confirm(&mut self, now: Instant) -> Option<KeptJob> {
        match self.take_next(now, false)? {
            KeptWork::Confirm(job) => Some(job),
            KeptWork::Ask(_) => None,
        }
    }

    fn take_next(&mut self, now: Instant, may_ask: bool) -> Option<KeptWork> {
        let mut first: Option<(bool, Instant, Target)> = None;
        for (target, entry) in &self.entries {
            let turn = match &entry.state {
                State::Kept { check: Some(at), .. } if *at <= now => (false, *at),
                State::Due(at) if *at <= now && may_ask => (true, *at),
                _ => continue,
            };
            if first.as_ref().is_none_or(|(new, at, _)| turn < (*new, *at)) {
                first = Some((turn.0, turn.1, target.clone()));
            }
        }
        let (new, _, target) = first?;
        let entry = self.entries.get_mut(&target)?;
        let job = KeptJob { target, epoch: entry.epoch };
        if let State::Kept { check, .. } = &mut entry.state {
            *check = None;
            return Some(KeptWork::Confirm(job));
        }
        debug_assert!(new);
        entry.state = State::Asked;
        self.next_ask = Some(now + PACE);
        Some(KeptWork::Ask(job))
    }

    /// When [`next`](Self::next) will have something.
    pub fn next_due(&self) -> Option<Instant> {
        let due = self.entries.values().filter_map(|entry| match &entry.state {
            State::Kept { check, .. } => *check,
            State::Due(at) => Some(self.next_ask.map_or(*at, |then| then.max(*at))),
            _ => None,
        });
        due.min()
    }

    /// Whether the server must be asked, or is being asked, for a target for the first time.
    pub fn is_busy(&self) -> bool {
        self.entries.values().any(|entry| matches!(entry.state, State::Due(_) | State::Asked))
    }

    /// The target is kept from now on, by answers to questions since `asked`. False: it was ended meanwhile, so it is not.
    pub fn keep(&mut self, job: &KeptJob, asked: Instant, lease: Duration) -> bool {
        let Some(entry) = self.held(job) else { return false };
        entry.state = State::Kept {
            confirmed: asked,
            lease,
            check: Some(asked + lease / 2),
            used: asked,
            until: asked + RENEW,
        };
        true
    }

    /// It cannot be kept, or not now.
    pub fn refuse(&mut self, job: &KeptJob, now: Instant) {
        let Some(entry) = self.held(job) else { return };
        let rest = pause_after(entry.refusals);
        entry.refusals += 1;
        entry.state = State::Refused(now + rest);
    }

    /// The server has confirmed it by answers to questions since `asked`. False: it was ended meanwhile.
    pub fn confirm(&mut self, job: &KeptJob, asked: Instant, new_lease: Duration) -> bool {
        let Some(entry) = self.held(job) else { return false };
        entry.refusals = 0;
        let State::Kept { confirmed, lease, check, .. } = &mut entry.state else { return false };
        (*confirmed, *lease) = (asked, new_lease);
        *check = Some(asked + new_lease / 2);
        self.counts.confirmed += 1;
        true
    }

    /// The server did not answer. It is asked again before the lease ends.
    pub fn confirm_later(&mut self, job: &KeptJob, now: Instant) {
        let Some(entry) = self.held(job) else { return };
        if let State::Kept { lease, check, .. } = &mut entry.state {
            *check = Some(now + *lease / 8);
        }
    }

    /// The server says something else now. True: the answer must be taken out of the kernel at once. A target whose
    /// answer changes before its first confirmation is left alone for a while, as if it had been refused.
    #[must_use]
    pub fn contradict(&mut self, job: &KeptJob, now: Instant) -> bool {
        let held = self.held(job).is_some();
        self.counts.changed += u64::from(held);
        let was_kept = held && self.end(&job.target, now);
        if let Some(entry) = self.entries.get_mut(&job.target).filter(|_| was_kept) {
            let rest =
                if entry.refusals > 0 { pause_after(entry.refusals) } else { Duration::ZERO };
            entry.refusals += 1;
            entry.state = State::Ended(now + rest);
        }
        was_kept
    }

    /// Answers of it were given.
    pub fn used(&mut self, target: &[u8], now: Instant) {
        if let Some(State::Kept { used, .. }) = self.state(target) {
            *used = now;
        }
    }

    /// Whether clients got an answer for the target since the server was asked last. If not, the server is not asked
    /// again, and the answer ends with its lease.
    pub fn is_worth_confirming(&mut self, job: &KeptJob, now: Instant) -> bool {
        let Some(entry) = self.held(job) else { return false };
        let State::Kept { confirmed, lease, check, used, .. } = &mut entry.state else {
            return false;
        };
        let is_used = *used > *confirmed;
        if !is_used {
            *check = Some(now + *lease / 8);
        }
        is_used
    }

    /// Nothing is known of it any more.
    pub fn forget(&mut self, target: &[u8]) {
        self.entries.remove(target);
    }

    /// An unsafe request, or its response, was on its way until `then`. The target's kept answer ends, and may be
    /// asked for again after that. True: it must be taken out of the kernel.
    #[must_use]
    pub fn outdate(&mut self, target: &[u8], then: Instant) -> bool {
        let ended = self.end(target, then);
        self.counts.outdated += u64::from(ended);
        ended
    }

    /// Ends the kept answers of these targets, and the questions about them. The returned targets must be taken out of
    /// the kernel.
    #[must_use]
    pub fn purge(&mut self, which: &Which, now: Instant) -> Vec<Target> {
        let about = self.entries.keys().filter(|target| which.is_about(target));
        let mut about: Vec<Target> = about.cloned().collect();
        about.retain(|target| self.end(target, now));
        self.counts.purged += about.len() as u64;
        about
    }

    /// Anything may have changed. All kept answers must be taken out of the kernel.
    #[must_use]
    pub fn everything_changed(&mut self, now: Instant) -> Vec<Target> {
        let mut all: Vec<Target> = self.entries.keys().cloned().collect();
        all.retain(|target| self.end(target, now));
        all
    }

    /// Targets that were not confirmed in time, or whose answers must be asked for anew. They must be taken out of the
    /// kernel at once. The table forgets those that nobody used.
    #[must_use]
    pub fn expired(&mut self, now: Instant) -> Vec<Target> {
        let over = |entry: &Entry| match &entry.state {
            State::Kept { confirmed, lease, until, used, .. } => {
                (*confirmed + *lease <= now || *until <= now).then_some(*used <= *confirmed)
            }
            _ => None,
        };
        let over = self.entries.iter().filter_map(|(target, e)| Some((target.clone(), over(e)?)));
        let over: Vec<(Target, bool)> = over.collect();
        for (target, unused) in &over {
            self.end(target, now);
            if *unused {
                self.entries.remove(target);
            }
        }
        over.into_iter().map(|(target, _)| target).collect()
    }

    /// Targets that are looked at, and those that are kept.
    pub fn sizes(&self) -> (usize, usize) {
        let kept = self.entries.values().filter(|e| matches!(e.state, State::Kept { .. })).count();
        (self.entries.len(), kept)
    }

    /// Numbers of events since the start.
    pub fn counts(&self) -> KeptCounts {
        self.counts
    }

    /// Ends the target's kept answer, or the question about it. The server is asked anew if a client asks for the
    /// target, and not before `due`. True: an answer was kept.
    fn end(&mut self, target: &[u8], due: Instant) -> bool {
        self.epoch += 1;
        let Some(entry) = self.entries.get_mut(target) else { return false };
        entry.epoch = self.epoch;
        let was_kept = matches!(entry.state, State::Kept { .. });
        if was_kept || matches!(entry.state, State::Asked | State::Due(_)) {
            entry.state = State::Ended(due);
        }
        was_kept
    }

    fn held(&mut self, job: &KeptJob) -> Option<&mut Entry> {
        self.entries.get_mut(&job.target).filter(|entry| entry.epoch == job.epoch)
    }

    fn state(&mut self, target: &[u8]) -> Option<&mut State> {
        self.entries.get_mut(target).map(|entry| &mut entry.state)
    }
}

/// How long a target is left alone that was refused so often before.
fn pause_after(refusals: u32) -> Duration {
    (FIRST_REST * 2u32.pow(refusals.min(10))).min(LAST_REST)
}

#[cfg(test)]
mod tests;
