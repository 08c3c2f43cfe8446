//! Answers that no file stands behind: learns which targets clients ask for, asks the server for them, pins the
//! answers that may be kept, and unpins them again.

use std::io;
use std::sync::PoisonError;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use afpa_bpf::{Freshness, PinRules, SiteNumber, Variant, boot_ns, monotonic_ns};
use afpa_http::caching::freshness::WrittenAge;

use super::{Filler, FillerState, NEAR};
use crate::answer::{Answer, Asked};
use crate::gather::{Ask, AskError, Claim, Gathered, Unfit, Wanted, gather};
use crate::kept::{Allowed, Budget, Copy, KeptCounts, KeptJob, KeptWork, Target, Which, allowed};
use crate::say::say;

/// The answers that are kept for a target on one site.
pub(super) struct Kept {
    site: SiteNumber,
    found: Gathered,
    /// The last answer of the server, and the monotonic nanoseconds before it was asked for.
    heard: Answer,
    asked: u64,
    /// Nanoseconds since boot at which the answer's age was 0, and for how many seconds it is fresh.
    born: u64,
    lifetime: u64,
    /// The age at which the pinned answer ends: it is no longer fresh, or its age gets another digit.
    ends_at: u64,
}

/// The moment of a question, by all clocks.
#[derive(Clone, Copy)]
struct Moment {
    instant: Instant,
    monotonic: u64,
    boot: u64,
    unix: u64,
}

impl Moment {
    fn now() -> Self {
        Self {
            monotonic: monotonic_ns(),
            boot: boot_ns(),
            instant: Instant::now(),
            unix: unix_now(),
        }
    }
}

fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

const SECOND: u64 = 1_000_000_000;

/// How long the answers to all questions about one target may take together.
const PATIENCE: Duration = Duration::from_secs(8);

/// Asks the server no more than the budget allows. While questions about another target wait, it confirms kept
/// answers.
struct Patient<'s> {
    filler: &'s Filler,
    server: &'s mut dyn Ask,
    budget: &'s mut Budget,
    spent: Duration,
    confirms: bool,
}

impl<'s> Patient<'s> {
    fn new(filler: &'s Filler, server: &'s mut dyn Ask, budget: &'s mut Budget) -> Self {
        Self { filler, server, budget, spent: Duration::ZERO, confirms: false }
    }

    /// Waits until the next question may be asked. False: the filler has ended, and nothing is asked any more.
    fn wait(&mut self) -> bool {
        loop {
            let job = self.confirms.then(|| self.filler.take_confirmation()).flatten();
            if let Some(job) = job {
                let mut server = Patient::new(self.filler, self.server, self.budget);
                self.filler.confirm_kept(&mut server, &job);
            }
            let wait = self.budget.wait(Instant::now());
            // Answers that have to be confirmed meanwhile do not wake it: they are looked for each time.
            let most = if self.confirms { wait.min(LEARN) } else { wait };
            let (wake, state) = (&self.filler.wake, self.filler.lock());
            let waited = wake.wait_timeout_while(state, most, |state| !state.ended);
            if waited.unwrap_or_else(PoisonError::into_inner).0.ended {
                return false;
            }
            if wait.is_zero() {
                return true;
            }
        }
    }
}

impl Ask for Patient<'_> {
    fn viewpoints(&mut self) -> usize {
        self.server.viewpoints()
    }

    fn ask_at(
        &mut self,
        viewpoint: usize,
        asked: Asked,
        request: &str,
    ) -> Result<Answer, AskError> {
        if self.spent > PATIENCE || !self.wait() {
            let slow = "it takes too long for all questions to be asked";
            return Err(io::Error::new(io::ErrorKind::TimedOut, slow).into());
        }
        let began = Instant::now();
        let answer = self.server.ask_at(viewpoint, asked, request);
        let now = Instant::now();
        self.spent += now - began;
        self.budget.spend(now - began, now);
        answer
    }
}

impl Kept {
    fn new(site: SiteNumber, found: Gathered, asked: Moment, allowed: Allowed) -> Self {
        let heard = found.first.clone();
        let mut kept = Self { site, found, heard, asked: 0, born: 0, lifetime: 0, ends_at: 0 };
        kept.renew(None, asked, allowed);
        kept
    }

    /// The server has said it again.
    fn renew(&mut self, heard: Option<Answer>, asked: Moment, allowed: Allowed) {
        if let Some(heard) = heard {
            self.heard = heard;
        }
        self.asked = asked.monotonic;
        self.born = asked.boot.wrapping_sub(allowed.age.saturating_mul(SECOND));
        self.lifetime = allowed.lifetime;
    }

    fn age(&self, now: u64) -> u64 {
        now.wrapping_sub(self.born) / SECOND
    }

    /// Pins it with an Age of as many digits as that has now.
    fn pin(&mut self, filler: &Filler, target: &[u8]) -> Result<(), String> {
        let WrittenAge { digits, until } = WrittenAge::of(self.age(boot_ns()), self.lifetime);
        self.ends_at = until;
        let Ok(fresh_for) = u32::try_from(self.ends_at) else { return Ok(()) };
        let (born, asked) = (self.born, self.asked);
        let freshness = Freshness { born, fresh_for, digits, ttl: None, asked };
        let copies: Vec<Copy> = self.found.copies(&self.heard, digits);
        let variants: Vec<Variant<'_>> =
            copies.iter().map(|copy| copy.variant(freshness)).collect();
        let rules: PinRules = self.found.rules();
        let pinned = filler.fast_path.objects.pin_with(self.site, target, &variants, &rules);
        pinned.map(|_| ()).map_err(|error| error.to_string())
    }
}

impl Filler {
    /// Learns what goes to the server, until the end.
    ///
    /// # Errors
    /// When the kernel's reports cannot be read.
    pub(crate) fn learn(&self) -> Result<(), String> {
        let misses = self.fast_path.reports.misses().map_err(|error| error.to_string())?;
        loop {
            let news = misses.drain().map_err(|error| error.to_string())?;
            let mut state = self.lock();
            if state.ended {
                return Ok(());
            }
            let now = Instant::now();
            state.kept.begin_round();
            for missed in news.iter().filter(|missed| self.keeps.covers(&missed.target)) {
                state.kept.seen(&missed.target, missed.client, now);
            }
            if state.kept.next_due().is_some_and(|due| due <= now) {
                self.wake.notify_all();
            }
            drop(state);
            std::thread::sleep(LEARN);
        }
    }

    /// Asks for targets that are worth it, and confirms kept answers, until the end. An application may be slow, so
    /// this has a thread of its own: pinned files must be confirmed meanwhile.
    pub(crate) fn keep_answers(&self, server: &mut dyn Ask) {
        let mut budget = Budget::new(Instant::now());
        while let Some(work) = self.take_kept() {
            let mut server = Patient::new(self, server, &mut budget);
            match work {
                KeptWork::Ask(job) => {
                    server.confirms = true;
                    self.keep(&mut server, &job);
                }
                KeptWork::Confirm(job) => self.confirm_kept(&mut server, &job),
            }
        }
    }

    fn take_confirmation(&self) -> Option<KeptJob> {
        let mut state = self.lock();
        let away = state.away;
        if away { None } else { state.kept.next_to_confirm(Instant::now()) }
    }

    fn take_kept(&self) -> Option<KeptWork> {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            let work = if state.away { None } else { state.kept.next(now) };
            if state.ended || work.is_some() {
                return work.filter(|_| !state.ended);
            }
            let due = state.kept.next_due().filter(|_| !state.away);
            let pause = due.map_or(NEAR, |due| due.saturating_duration_since(now)).min(NEAR);
            let waited = self.wake.wait_timeout(state, pause);
            state = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
    }

    /// Asks the server for a target, by the names of every site, and pins the answers that may be kept. All the
    /// questions take their time. So the server is asked once more at the end, must give the same answer, and the age
    /// counts from that question.
    fn keep(&self, server: &mut dyn Ask, job: &KeptJob) {
        let begun = Moment::now();
        let mut outcome = self.gather_kept(server, &job.target, begun);
        let asked = Moment::now();
        if let Ok(kept) = &mut outcome {
            let said = kept.iter_mut().try_for_each(|kept| self.say_again(server, kept, asked));
            outcome = said.and(outcome);
        }
        let mut state = self.lock();
        state.unfit.forget(&job.target);
        let kept = match outcome {
            Ok(kept) => kept,
            Err(why) => {
                state.note(&job.target, &why);
                return state.kept.refuse(job, Instant::now());
            }
        };
        let lease = self.lease(&kept, asked);
        // A file stands behind it after all, and tells of its changes.
        let is_file = state.ledger.is_pinned(&path_of(&job.target));
        if state.ended || is_file || !state.kept.keep(job, asked.instant, lease) {
            return;
        }
        state.answers.insert(job.target.clone(), kept);
        self.pin_or_refuse(&mut state, job);
    }

    fn say_again(
        &self,
        server: &mut dyn Ask,
        kept: &mut Kept,
        asked: Moment,
    ) -> Result<(), String> {
        let mut claim = kept.found.claim.clone();
        let said =
            self.still_allowed(server, &mut claim, asked).map_err(|error| error.to_string())?;
        let allowed = said.ok_or("it changes while it is asked for")?;
        kept.renew(claim.heard().cloned(), asked, allowed);
        kept.found.claim = claim;
        Ok(())
    }

    fn gather_kept(
        &self,
        server: &mut dyn Ask,
        target: &[u8],
        asked: Moment,
    ) -> Result<Vec<Kept>, String> {
        let target = str::from_utf8(target).map_err(|_| "it is no text".to_owned())?;
        let mut kept = Vec::new();
        let mut why = "no site gives it".to_owned();
        for hosts in self.sites().iter() {
            let wanted = Wanted {
                hosts: &hosts.names,
                target,
                longest: self.scope.longest.saturating_sub(Copy::ROOM),
                closes: self.fast_path.socketless.may_close(),
                kept: true,
            };
            match gather(server, &wanted, &|_| true, &|_, _| true) {
                Ok(found) => match allowed(&found.first, asked.unix) {
                    Ok(_) if let Err(refused) = self.heed_timeout(&found) => why = refused,
                    Ok(allowed) => kept.push(Kept::new(hosts.site, found, asked, allowed)),
                    Err(refused) => why = refused.to_string(),
                },
                Err(Unfit::Ask(AskError::Unreachable(error))) => return Err(error.to_string()),
                Err(unfit) => why = unfit.to_string(),
            }
        }
        if kept.is_empty() { Err(why) } else { Ok(kept) }
    }

    /// How long kept answers count without another confirmation.
    fn lease(&self, kept: &[Kept], asked: Moment) -> Duration {
        let rest = kept.iter().map(|kept| kept.lifetime.saturating_sub(kept.age(asked.boot)));
        Duration::from_secs(rest.min().unwrap_or(0)).min(self.revalidate)
    }

    /// Has the server confirm the kept answers of a target. Their age begins anew then.
    fn confirm_kept(&self, server: &mut dyn Ask, job: &KeptJob) {
        let asked = Moment::now();
        let mut state = self.lock();
        let now = asked.instant;
        self.look_at_use(&mut state, &job.target, now);
        if !state.kept.is_worth_confirming(job, now) {
            return;
        }
        let Some(kept) = state.answers.get(&job.target) else { return };
        let mut claims: Vec<Claim> = kept.iter().map(|kept| kept.found.claim.clone()).collect();
        drop(state);
        let said: Result<Vec<Option<Allowed>>, AskError> =
            claims.iter_mut().map(|claim| self.still_allowed(server, claim, asked)).collect();
        let mut state = self.lock();
        match said {
            Ok(all) => match all.into_iter().collect::<Option<Vec<Allowed>>>() {
                Some(all) => self.renew_kept(&mut state, job, asked, claims.into_iter().zip(all)),
                None => {
                    if state.kept.contradict(job, Instant::now()) {
                        self.drop_kept(&mut state, std::slice::from_ref(&job.target));
                    }
                }
            },
            Err(error) => {
                state.note(&job.target, &error.to_string());
                state.kept.confirm_later(job, Instant::now());
            }
        }
    }

    /// Asks the server about a claim. `None`: it gives another answer, or no longer allows the answer to be kept.
    fn still_allowed(
        &self,
        server: &mut dyn Ask,
        claim: &mut Claim,
        asked: Moment,
    ) -> Result<Option<Allowed>, AskError> {
        if !claim.confirm(server)? {
            return Ok(None);
        }
        Ok(claim.heard().and_then(|heard| allowed(heard, asked.unix).ok()))
    }

    fn renew_kept(
        &self,
        state: &mut FillerState,
        job: &KeptJob,
        asked: Moment,
        claims: impl Iterator<Item = (Claim, Allowed)>,
    ) {
        let Some(kept) = state.answers.get_mut(&job.target) else { return };
        let confirmed: Vec<(Claim, Allowed)> = claims.collect();
        let rest = confirmed.iter().map(|(_, allowed)| allowed.lifetime - allowed.age).min();
        let lease = Duration::from_secs(rest.unwrap_or(0)).min(self.revalidate);
        if !state.kept.confirm(job, asked.instant, lease) {
            return; // it was ended, and is not pinned any more
        }
        for (kept, (claim, allowed)) in kept.iter_mut().zip(confirmed) {
            kept.renew(claim.heard().cloned(), asked, allowed);
            kept.found.claim = claim;
        }
        self.pin_or_refuse(state, job);
    }

    /// Pins the answers. If that fails, because there is no room or a tag is too long, the target is left alone for a
    /// while.
    fn pin_or_refuse(&self, state: &mut FillerState, job: &KeptJob) {
        if !self.pin_kept(state, &job.target) {
            self.drop_kept(state, std::slice::from_ref(&job.target));
            state.kept.refuse(job, Instant::now());
        }
    }

    /// Called with the lock held, as all below are. False: the kernel does not have all of it.
    fn pin_kept(&self, state: &mut FillerState, target: &Target) -> bool {
        let Some(kept) = state.answers.get_mut(target) else { return true };
        let failed: Vec<String> =
            kept.iter_mut().filter_map(|kept| kept.pin(self, target).err()).collect();
        failed.iter().for_each(|why| state.note(target, why));
        failed.is_empty()
    }

    fn look_at_use(&self, state: &mut FillerState, target: &Target, now: Instant) {
        let Some(kept) = state.answers.get(target) else { return };
        if kept.iter().any(|kept| self.fast_path.objects.was_used(kept.site, target)) {
            state.kept.used(target, now);
        }
    }

    /// The heartbeat's work for kept answers: unsafe requests, ends, and ages that get another digit.
    pub(super) fn tend_kept(&self, state: &mut FillerState) {
        let (now, clock, boot) = (Instant::now(), monotonic_ns(), boot_ns());
        let mut gone = state.kept.expired(now);
        let (mut noted, mut longer) = (Vec::new(), Vec::new());
        for (target, kept) in &state.answers {
            let note = self.fast_path.reports.noted(target);
            if kept.iter().any(|kept| note >= kept.asked) {
                let ahead = Duration::from_nanos(note.saturating_sub(clock));
                noted.push((target.clone(), now + ahead + SETTLE));
            }
            let next = |kept: &Kept| (kept.ends_at..kept.lifetime).contains(&kept.age(boot));
            if kept.iter().any(next) {
                longer.push(target.clone());
            }
        }
        for (target, then) in noted {
            if state.kept.outdate(&target, then) {
                gone.push(target);
            }
        }
        self.drop_kept(state, &gone);
        for target in longer {
            self.look_at_use(state, &target, now); // first: a copy that is pinned anew is unused
            if !self.pin_kept(state, &target) {
                state.kept.forget(&target);
                self.drop_kept(state, &[target]);
            }
        }
        if state.kept.next_due().is_some_and(|due| due <= now) {
            self.wake.notify_all();
        }
    }

    /// Unpins the answers of targets whose entries the table has ended.
    pub(super) fn drop_kept(&self, state: &mut FillerState, targets: &[Target]) {
        for target in targets {
            for kept in state.answers.remove(target).unwrap_or_default() {
                if self.fast_path.objects.unpin(kept.site, target).is_err() {
                    // As in `unpin`: it is better to stop.
                    self.fast_path.clock.pause();
                    std::process::abort();
                }
            }
        }
    }

    /// Drops the kept answers of these targets. When this returns, no request gets one of them any more, nor an answer
    /// that the server was asked for before. Returns how many targets had answers; `None`: nothing is ever kept.
    pub fn purge(&self, which: &Which) -> Option<usize> {
        let mut state = self.lock();
        let gone = state.kept.purge(which, Instant::now());
        self.drop_kept(&mut state, &gone);
        self.wake.notify_all();
        (!self.keeps.is_empty()).then_some(gone.len())
    }

    /// Targets that are looked at, those that are kept, and what happened; `None`: nothing is ever kept.
    pub fn kept(&self) -> Option<(usize, usize, KeptCounts)> {
        let state = self.lock();
        let (known, kept) = state.kept.sizes();
        (!self.keeps.is_empty()).then(|| (known, kept, state.kept.counts()))
    }
}

/// How often the kernel is asked what went to the server.
const LEARN: Duration = Duration::from_millis(100);
/// After an unsafe request, before its target is asked for anew.
const SETTLE: Duration = Duration::from_millis(20);

/// The path below the root that a target would name.
fn path_of(target: &[u8]) -> Vec<u8> {
    let mut scratch = Vec::new();
    let path = afpa_http::target::normalise(target, &mut scratch);
    path.map(<[u8]>::to_vec).unwrap_or_default()
}

/// Learns until the end which targets clients ask for. Without the kernel's reports nothing more is kept.
pub(crate) fn learn(filler: &Filler) {
    if let Err(why) = filler.learn() {
        say(&format!("nothing more is kept: the kernel's reports cannot be read: {why}"));
    }
}
