//! The turns of the manager: each certificate is looked at, and the names that clients wait for come first.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use super::wanted::Wanted;
use super::{Pace, Shared};
use crate::error::AcmeError;
use crate::settings::AcmeSettings;
use crate::state::{Lock, StateFolder};

/// The longest time between two looks while a certificate waits for another machine.
const WAIT: Duration = Duration::from_secs(2);

/// Orders for names that clients ask for, at a time.
const MOST_AT_ONCE: usize = 8;

pub(crate) struct Work {
    pub(crate) settings: AcmeSettings,
    pub(crate) state: StateFolder,
    pub(crate) shared: Shared,
    pub(crate) pace: Pace,
    /// That of the folder, while an order of this manager holds it.
    pub(super) lock: RefCell<Weak<Lock>>,
    /// Certificates that have come and that the folder did not take, by their names.
    pub(super) unstored: RefCell<BTreeMap<Vec<String>, String>>,
    /// One account is opened at a time.
    pub(super) opening: tokio::sync::Mutex<()>,
}

impl Work {
    pub(super) async fn go_on(&self) {
        let names = self.settings.certificates.iter();
        let mut all: Vec<_> = names.map(|names| Wanted::new(names.clone())).collect();
        all.extend(self.found_on_demand());
        loop {
            // An earlier manager may have left names that clients wait for.
            self.meet_demand(&mut all).await;
            for index in 0..all.len() {
                // Clients wait for certificates on demand; renewals can wait, so demand is met before each of them.
                self.meet_demand(&mut all).await;
                if let Some(wanted) = all.get_mut(index) {
                    self.look_at(wanted).await;
                }
                self.tell(&all);
            }
            all.retain(|wanted| !self.is_over(wanted));
            self.tell(&all);
            self.rest(&mut all).await;
        }
    }

    /// Until the next look. Demand is met meanwhile, and what comes from the fleet is taken.
    async fn rest(&self, all: &mut Vec<Wanted>) {
        // Those that the last call left.
        if !self.shared.demand.wanted().is_empty() {
            return;
        }
        let others = self.shared.others.load_full();
        let waits = all.iter().any(|wanted| wanted.waits);
        let pause = if waits { self.pace.look.min(WAIT) } else { self.pace.look };
        let mut look = pin!(tokio::time::sleep(pause));
        loop {
            let changed = async {
                match &others {
                    Some(others) => others.changed().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = &mut look => return,
                () = self.shared.demand.asked() => return self.meet_demand(all).await,
                () = changed => self.take_in_all(all),
            }
            self.tell(all);
        }
    }

    fn tell(&self, all: &[Wanted]) {
        self.shared.statuses.set(all.iter().map(|wanted| wanted.status.clone()).collect());
    }

    /// The certificates that an earlier process ordered on demand.
    fn found_on_demand(&self) -> Vec<Wanted> {
        let AcmeSettings { on_demand, certificates, .. } = &self.settings;
        let names = self.state.names().unwrap_or_default().into_iter();
        let names = names.filter(|name| {
            on_demand.allows(name) && !certificates.iter().flatten().any(|other| other == name)
        });
        let mut found = Vec::new();
        for name in names.take(on_demand.most) {
            let mut wanted = Wanted { on_demand: true, ..Wanted::new(vec![name.clone()]) };
            if self.look_in_folder(&mut wanted).is_ok() && !self.is_over(&wanted) {
                self.shared.demand.is_here(&name);
                found.push(wanted);
            }
        }
        found
    }

    /// Orders certificates for the names that clients wait for, also for those that they ask for meanwhile: none waits for the
    /// order of another one. Renewals and the fleet wait meanwhile, so those that ask later than a look after the first order began
    /// are left to the next call: clients who ask all the time, of a slow authority, would keep everything else waiting.
    async fn meet_demand(&self, all: &mut Vec<Wanted>) {
        let (mut under_way, mut names) = (FuturesUnordered::new(), BTreeSet::new());
        let mut look = pin!(tokio::time::sleep(self.pace.look));
        let mut takes = true;
        loop {
            for name in self.shared.demand.wanted() {
                if takes && names.len() < self.most_at_once() && names.insert(name.clone()) {
                    under_way.push(self.meet(name));
                }
            }
            if under_way.is_empty() {
                return;
            }
            tokio::select! {
                Some((name, found)) = under_way.next() => {
                    names.remove(&name);
                    all.extend(found);
                    self.take_in_all(all);
                    self.tell(all);
                }
                () = self.shared.demand.asked(), if takes => {}
                () = &mut look, if takes => takes = false,
            }
        }
    }

    /// Orders a certificate for a name that clients wait for. They do not any more when this is done.
    async fn meet(&self, name: String) -> (String, Option<Wanted>) {
        let now = (self.pace.clock)();
        let mut wanted = Wanted { on_demand: true, ..Wanted::new(vec![name.clone()]) };
        // One that is configured is ordered anyway.
        if !self.settings.certificates.iter().flatten().any(|other| *other == name) {
            self.look_at(&mut wanted).await;
        }
        let is_good = wanted.status.failures == 0 && !wanted.is_due(now);
        let found = Some(wanted).filter(|wanted| wanted.facts.is_some() && is_good);
        match &found {
            Some(_) => self.shared.demand.is_here(&name),
            None => self.shared.demand.has_failed(&name, now),
        }
        (name, found)
    }

    /// A program that sets records may change a file: it is not run twice at a time.
    fn most_at_once(&self) -> usize {
        if self.settings.dns_program.is_some() { 1 } else { MOST_AT_ONCE }
    }

    /// The lock of the folder, which all orders of this manager share; `None`: another process orders.
    pub(crate) fn lock(&self) -> Result<Option<Rc<Lock>>, AcmeError> {
        let mut known = self.lock.borrow_mut();
        if let Some(lock) = known.upgrade() {
            return Ok(Some(lock));
        }
        let lock = self.state.lock()?.map(Rc::new);
        *known = lock.as_ref().map(Rc::downgrade).unwrap_or_default();
        Ok(lock)
    }

    /// Whether its certificate was ordered on demand, has expired, and no client asks for it any more.
    fn is_over(&self, wanted: &Wanted) -> bool {
        let Some(name) = wanted.names.first().filter(|_| wanted.on_demand) else { return false };
        let now = (self.pace.clock)();
        let has_ended = wanted.status.not_after.is_none_or(|end| end <= now);
        let is_over = has_ended && !self.shared.demand.is_in_use(name);
        if is_over {
            self.shared.demand.forget(name);
            self.unstored.borrow_mut().remove(&wanted.names);
        }
        is_over
    }

    async fn look_at(&self, wanted: &mut Wanted) {
        let now = (self.pace.clock)();
        if now < wanted.not_yet || self.is_idle(wanted) {
            return;
        }
        match self.attend(wanted, now).await {
            Ok(()) => {}
            Err(error) => {
                wanted.failed(now, &error);
                let (names, pause) = (wanted.names.join(", "), wanted.not_yet.saturating_sub(now));
                let serving = match wanted.facts {
                    Some(_) => "the certificate that is there stays",
                    None => "there is none yet",
                };
                tracing::warn!(
                    "no certificate for {names}: {error}; {serving}, again in {pause} s"
                );
            }
        }
    }

    /// Whether a certificate is there that was ordered on demand, and no client has asked for it since.
    fn is_idle(&self, wanted: &Wanted) -> bool {
        let is_here = wanted.on_demand && wanted.facts.is_some();
        is_here && !wanted.names.iter().any(|name| self.shared.demand.is_in_use(name))
    }

    async fn attend(&self, wanted: &mut Wanted, now: u64) -> Result<(), AcmeError> {
        if let Some(others) = self.shared.others.load_full() {
            return self.attend_together(&**others, wanted, now).await;
        }
        self.look_in_folder(wanted)?;
        if !wanted.is_due(now) {
            self.ask_for_window(wanted, now).await;
        }
        if !wanted.is_due(now) {
            return Ok(());
        }
        let Some(_lock) = self.lock()? else { return Ok(()) };
        // Another process may have ordered it meanwhile.
        self.look_in_folder(wanted)?;
        if wanted.is_due(now) { self.order(wanted, now).await } else { Ok(()) }
    }
}
