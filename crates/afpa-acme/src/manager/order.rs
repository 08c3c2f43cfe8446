//! The order of one certificate: the folder, the authority, and the certificate that came.

use super::wanted::Wanted;
use super::work::Work;
use crate::authority::Authority;
use crate::certificate::Facts;
use crate::error::AcmeError;

impl Work {
    /// Reads the certificate in the folder, which is the one that is served. An unreadable one counts as missing, so it
    /// is ordered anew.
    pub(crate) fn look_in_folder(&self, wanted: &mut Wanted) -> Result<(), AcmeError> {
        let found = self.state.certificate(&wanted.names)?;
        wanted.found(found.and_then(|pem| Facts::read(&pem).ok()));
        Ok(())
    }

    /// The authority is asked as often as it wants, without an effect if it does not answer.
    pub(crate) async fn ask_for_window(&self, wanted: &mut Wanted, now: u64) {
        const AT_LEAST: u64 = 3600;
        const AT_MOST: u64 = 24 * 3600;
        if now < wanted.ask_at {
            return;
        }
        let Some(facts) = &wanted.facts else { return };
        let answer = match self.authority().await {
            Ok(authority) => authority.window(facts).await,
            Err(_) => None,
        };
        let (window, valid) = answer.map_or((None, AT_LEAST), |(window, valid)| {
            (Some(window), valid.as_secs().clamp(AT_LEAST, AT_MOST))
        });
        (wanted.window, wanted.ask_at) = (window, now + valid);
        wanted.plan();
    }

    /// Orders a certificate, unless one has come before that the folder did not take: authorities certify the same names a few times
    /// a week, and a disk that is full would use these up within the hour.
    pub(super) async fn order(&self, wanted: &mut Wanted, now: u64) -> Result<(), AcmeError> {
        let unstored = self.unstored.borrow_mut().remove(&wanted.names);
        let pem = match unstored {
            Some(pem) => pem,
            None => self.order_anew(wanted).await?,
        };
        let facts = usable(&pem, wanted, now)?;
        let stored = self.use_ordered(wanted, (&pem, facts));
        if stored.is_err() {
            self.unstored.borrow_mut().insert(wanted.names.clone(), pem);
        }
        stored
    }

    async fn order_anew(&self, wanted: &Wanted) -> Result<String, AcmeError> {
        let (names, directory) = (wanted.names.join(", "), &self.settings.directory);
        tracing::info!("a certificate for {names} is ordered at {directory}");
        let account = self.state.account(directory)?;
        match self.order_once(wanted).await {
            Err(error) if error.is_unknown_account() => {
                tracing::warn!(
                    "the authority does not know the account any more, so another one is opened: {error}"
                );
                // Another order may have opened one meanwhile.
                if self.state.account(directory)? == account {
                    self.state.remove_account(directory)?;
                }
                self.order_once(wanted).await
            }
            ordered => ordered,
        }
    }

    /// Stores a certificate that this process has ordered.
    pub(crate) fn use_ordered(
        &self,
        wanted: &mut Wanted,
        (pem, facts): (&str, Facts),
    ) -> Result<(), AcmeError> {
        self.state.store_certificate(&wanted.names, pem)?;
        wanted.issued(facts);
        if let Some(name) = wanted.names.first().filter(|_| wanted.on_demand) {
            self.shared.demand.is_here(name);
        }
        tracing::info!("there is a new certificate for {}", wanted.names.join(", "));
        Ok(())
    }

    pub(crate) async fn authority(&self) -> Result<Authority<'_>, AcmeError> {
        let patience = self.pace.patience;
        let has_none = self.state.account(&self.settings.directory)?.is_none();
        let _opening = if has_none { Some(self.opening.lock().await) } else { None };
        Authority::connect(&self.settings, &self.shared.challenges, &self.state, patience).await
    }

    async fn order_once(&self, wanted: &Wanted) -> Result<String, AcmeError> {
        let authority = self.authority().await?;
        authority.order(&wanted.names, wanted.right()).await
    }
}

/// The facts of a certificate that came, if it is the one that is wanted.
pub(crate) fn usable(pem: &str, wanted: &Wanted, now: u64) -> Result<Facts, AcmeError> {
    let facts = Facts::read(pem.as_bytes()).map_err(AcmeError::Certificate)?;
    if !facts.is_for(&wanted.names) || facts.lifetime.not_after <= now {
        let why = format!("it is for {}", facts.names.join(", "));
        return Err(AcmeError::Certificate(why));
    }
    Ok(facts)
}
