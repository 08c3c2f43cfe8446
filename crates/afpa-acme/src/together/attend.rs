//! A certificate of a machine that is not alone: it comes from the others, is offered to them, or is ordered for all.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::record::OrderRecord;
use super::{Held, Others, account_key, certificate_key};
use crate::authority::open_account;
use crate::certificate::Facts;
use crate::due::pause_after;
use crate::error::AcmeError;
use crate::manager::{Wanted, Work, usable};

/// How long a client's certificate on demand, or an account, is waited for while another machine sees to it.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often the record is read in that time, should no change be reported.
const LOOK: Duration = Duration::from_millis(250);

/// Seconds of the longest pause that is believed of another machine, whose clock may be wrong.
const LONGEST_PAUSE: u64 = 16 * 3600;

impl Work {
    pub(crate) async fn attend_together(
        &self,
        others: &dyn Others,
        wanted: &mut Wanted,
        now: u64,
    ) -> Result<(), AcmeError> {
        wanted.waits = false;
        self.look_in_folder(wanted)?;
        let key = certificate_key(&self.settings.directory, &wanted.names);
        wanted.heard = others.value(&key);
        let known = read(wanted.heard.as_deref())?;
        self.take_in(wanted, &known, now)?;
        if !wanted.is_due(now) {
            self.ask_for_window_together(others, wanted, now).await;
        }
        if !wanted.is_due(now) {
            return self.offer(others, &key, wanted, &known).await;
        }
        if !others.are_here() {
            wanted.waits_for("the fleet, of which this machine hears nothing".to_owned());
            return Ok(());
        }
        if wanted.pauses(&known, now) {
            return Ok(());
        }
        let Some(_lock) = self.lock()? else { return Ok(()) };
        match others.take(&key).await {
            Ok(Some(held)) => self.order_for_all(others, held, wanted, now).await,
            Ok(None) => {
                wanted.waits_for("another machine of the fleet, which orders it".to_owned());
                if wanted.on_demand && wanted.facts.is_none() {
                    self.wait_for_another(others, &key, wanted, now).await?;
                }
                Ok(())
            }
            Err(why) => {
                wanted.waits_for(format!("the fleet: {why}"));
                Ok(())
            }
        }
    }

    /// A client waits for a certificate that another machine orders.
    async fn wait_for_another(
        &self,
        others: &dyn Others,
        key: &str,
        wanted: &mut Wanted,
        now: u64,
    ) -> Result<(), AcmeError> {
        let deadline = Instant::now() + PATIENCE;
        while wanted.is_due(now) && Instant::now() < deadline {
            sleep(LOOK).await;
            let known = read(others.value(key).as_deref())?;
            self.take_in(wanted, &known, now)?;
            if wanted.pauses(&known, now) {
                break;
            }
        }
        Ok(())
    }

    /// Takes the certificates of records that have changed.
    pub(crate) fn take_in_all(&self, all: &mut [Wanted]) {
        let Some(others) = self.shared.others.load_full() else { return };
        let now = (self.pace.clock)();
        for wanted in all {
            let value = others.value(&certificate_key(&self.settings.directory, &wanted.names));
            if is_same(value.as_ref(), wanted.heard.as_ref()) {
                continue;
            }
            let taken = read(value.as_deref()).and_then(|known| {
                self.take_in(wanted, &known, now)?;
                wanted.pauses(&known, now);
                Ok(())
            });
            wanted.heard = value;
            if let Err(error) = taken {
                tracing::warn!("no certificate for {}: {error}", wanted.names.join(", "));
            }
        }
    }

    /// Uses the certificate of the record, if it is newer than the one that is here.
    fn take_in(&self, wanted: &mut Wanted, known: &OrderRecord, now: u64) -> Result<(), AcmeError> {
        let Some(pem) = &known.certificate else { return Ok(()) };
        let Ok(facts) = usable(pem, wanted, now) else { return Ok(()) };
        if !is_newer(&facts, wanted.right()) {
            return Ok(());
        }
        self.state.store_certificate(&wanted.names, pem)?;
        wanted.came(facts);
        if let Some(name) = wanted.names.first().filter(|_| wanted.on_demand) {
            self.shared.demand.is_here(name);
        }
        tracing::info!("a certificate for {} has come from the fleet", wanted.names.join(", "));
        Ok(())
    }

    /// Gives the others a certificate that they do not have: of the time before the fleet, or before its servers lost theirs.
    async fn offer(
        &self,
        others: &dyn Others,
        key: &str,
        wanted: &mut Wanted,
        known: &OrderRecord,
    ) -> Result<(), AcmeError> {
        if !others.are_here() || !self.has_newer(wanted, known) {
            return Ok(());
        }
        let Ok(Some(held)) = others.take(key).await else { return Ok(()) };
        let known = read(held.value().as_deref())?;
        if !self.has_newer(wanted, &known) {
            return Ok(());
        }
        let Some(pem) = self.state.certificate(&wanted.names)? else { return Ok(()) };
        let Ok(pem) = String::from_utf8(pem) else { return Ok(()) };
        let offered = OrderRecord::come(pem).write();
        held.give_back(offered).await.map_err(AcmeError::Others)
    }

    /// Whether the certificate that is here is right, and newer than that of the record.
    fn has_newer(&self, wanted: &Wanted, known: &OrderRecord) -> bool {
        let theirs = known.certificate.as_ref().and_then(|pem| Facts::read(pem.as_bytes()).ok());
        let theirs = theirs.filter(|facts| facts.is_for(&wanted.names));
        wanted.right().is_some_and(|own| is_newer(own, theirs.as_ref()))
    }

    /// The record is this machine's: goes on with its order, or places one.
    async fn order_for_all(
        &self,
        others: &dyn Others,
        mut held: Box<dyn Held>,
        wanted: &mut Wanted,
        now: u64,
    ) -> Result<(), AcmeError> {
        let mut record = read(held.value().as_deref())?;
        self.take_in(wanted, &record, now)?;
        if !wanted.is_due(now) || wanted.pauses(&record, now) {
            return Ok(());
        }
        let (names, directory) = (wanted.names.join(", "), &self.settings.directory);
        match &record.order {
            Some(_) => tracing::info!("the order of a certificate for {names} goes on here"),
            None => tracing::info!("a certificate for {names} is ordered at {directory}"),
        }
        let outcome = self.order_held(others, &mut held, &mut record, wanted).await;
        let usable = outcome.and_then(|pem| {
            let facts = usable(&pem, wanted, now)?;
            // An old order that was put back: there will be no other certificate of it.
            match is_newer(&facts, wanted.right()) {
                true => Ok((pem, facts)),
                false => Err(AcmeError::Certificate("it is one from before".to_owned())),
            }
        });
        match usable {
            Ok((pem, facts)) => {
                let kept = held.give_back(OrderRecord::come(pem.clone()).write()).await;
                if let Err(why) = kept {
                    // The order is in the record: the others get this same certificate from the authority.
                    tracing::warn!("a certificate for {names} is here alone for now: {why}");
                }
                self.use_ordered(wanted, (&pem, facts))
            }
            Err(error) => {
                if error.ends_order() {
                    record.order = None;
                }
                // Failures count for all machines, so the record has their number.
                wanted.status.failures = record.failures;
                let pause = pause_after(record.failures.saturating_add(1), 0).as_secs();
                record.failed(&error.to_string(), now.saturating_add(pause));
                if let Some(order) = &mut record.order {
                    order.proofs.clear();
                }
                // If it cannot be written, the lease runs out.
                let _ = held.give_back(record.write()).await;
                Err(error)
            }
        }
    }

    async fn order_held(
        &self,
        others: &dyn Others,
        held: &mut Box<dyn Held>,
        record: &mut OrderRecord,
        wanted: &Wanted,
    ) -> Result<String, AcmeError> {
        self.share_account(others, None).await?;
        let (names, directory) = (&wanted.names, &self.settings.directory);
        let account = self.state.account(directory)?;
        let ordered = {
            let authority = self.authority().await;
            match authority {
                Ok(authority) => {
                    authority.order_for_all(names, wanted.right(), (&mut *held, &mut *record)).await
                }
                Err(error) => Err(error),
            }
        };
        match ordered {
            Err(error) if error.is_unknown_account() => {
                tracing::warn!(
                    "the authority does not know the account any more, so another one is opened: {error}"
                );
                self.share_account(others, account.as_deref()).await?;
                let authority = self.authority().await?;
                authority.order_for_all(names, wanted.right(), (&mut *held, &mut *record)).await
            }
            ordered => ordered,
        }
    }

    /// The account of the fleet is that of the folder. One is opened if there is none but the `unknown` one, which the
    /// authority has forgotten.
    async fn share_account(
        &self,
        others: &dyn Others,
        unknown: Option<&[u8]>,
    ) -> Result<(), AcmeError> {
        let directory = &self.settings.directory;
        let key = account_key(directory);
        let deadline = Instant::now() + PATIENCE;
        loop {
            let own = self.state.account(directory)?;
            let is_known = |account: &[u8]| unknown != Some(account);
            let own = own.filter(|own| is_known(own));
            let shared = |value: Option<Arc<str>>| value.filter(|one| is_known(one.as_bytes()));
            if let Some(account) = shared(others.value(&key)) {
                return match own.as_deref() == Some(account.as_bytes()) {
                    true => Ok(()),
                    false => self.state.store_account(directory, account.as_bytes()),
                };
            }
            match others.take(&key).await.map_err(AcmeError::Others)? {
                Some(held) if shared(held.value()).is_some() => drop(held),
                Some(held) => {
                    let json = match own {
                        Some(own) => own,
                        None => open_account(&self.settings, self.pace.patience).await?.1,
                    };
                    let text = String::from_utf8_lossy(&json).into_owned();
                    held.give_back(text).await.map_err(AcmeError::Others)?;
                    return self.state.store_account(directory, &json);
                }
                None if Instant::now() >= deadline => {
                    let why = "another machine opens an account, and does not say which".to_owned();
                    return Err(AcmeError::Others(why));
                }
                None => {}
            }
            sleep(LOOK).await;
        }
    }

    /// The authority is asked with the account of the fleet. Before there is one, it is not asked.
    async fn ask_for_window_together(&self, others: &dyn Others, wanted: &mut Wanted, now: u64) {
        let directory = &self.settings.directory;
        if let Some(account) = others.value(&account_key(directory))
            && !matches!(self.state.account(directory), Ok(Some(_)))
            && let Err(error) = self.state.store_account(directory, account.as_bytes())
        {
            tracing::warn!("the account of the fleet is not kept: {error}");
        }
        if matches!(self.state.account(directory), Ok(Some(_))) {
            self.ask_for_window(wanted, now).await;
        }
    }
}

impl Wanted {
    /// A certificate has come from another machine.
    fn came(&mut self, facts: Facts) {
        self.found(Some(facts));
        (self.not_yet, self.waits) = (0, false);
        (self.status.failures, self.status.error) = (0, None);
    }

    fn waits_for(&mut self, what: String) {
        self.waits = true;
        self.status.error = Some(format!("it waits for {what}"));
    }

    /// Whether an order of any machine has failed just now.
    fn pauses(&mut self, known: &OrderRecord, now: u64) -> bool {
        if known.not_yet <= now || known.not_yet > now.saturating_add(LONGEST_PAUSE) {
            return false;
        }
        self.status.failures = known.failures;
        self.status.error.clone_from(&known.why);
        self.waits = false;
        true
    }
}

fn read(value: Option<&str>) -> Result<OrderRecord, AcmeError> {
    OrderRecord::read(value).map_err(|error| AcmeError::Others(error.to_string()))
}

fn is_newer(facts: &Facts, than: Option<&Facts>) -> bool {
    let age = |facts: &Facts| (facts.lifetime.not_before, facts.lifetime.not_after);
    than.is_none_or(|than| age(facts) > age(than))
}

fn is_same(one: Option<&Arc<str>>, other: Option<&Arc<str>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (one, other) => one.is_none() && other.is_none(),
    }
}
