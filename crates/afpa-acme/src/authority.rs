//! The exchange with the authority: account, order, challenges, certificate (RFC 8555 section 7).

use std::time::Duration;

use instant_acme::{
    Account, AccountBuilder, AuthorizationHandle, Authorizations, ExternalAccountKey, NewAccount,
    Order, RetryPolicy,
};

use crate::certificate::Facts;
use crate::challenges::Challenges;
use crate::due::Window;
use crate::error::AcmeError;
use crate::https::Https;
use crate::settings::{AcmeSettings, ExternalAccount};
use crate::state::StateFolder;
use crate::together::{Alone, Counter, Held, OrderRecord, drive};

/// How long an authority may take to look at the answers, and to certify.
pub(crate) const POLLS: Duration = Duration::from_secs(90);
pub(crate) const PATIENCE: RetryPolicy =
    RetryPolicy::new().initial_delay(Duration::from_millis(250)).timeout(POLLS);

/// An authority at which there is an account.
pub(crate) struct Authority<'s> {
    pub(crate) settings: &'s AcmeSettings,
    pub(crate) challenges: &'s Challenges,
    pub(crate) account: Account,
    /// How long it may be silent.
    pub(crate) patience: Duration,
}

impl<'s> Authority<'s> {
    /// With the account of the folder; one is made if there is none.
    pub(crate) async fn connect(
        settings: &'s AcmeSettings,
        challenges: &'s Challenges,
        state: &StateFolder,
        patience: Duration,
    ) -> Result<Self, AcmeError> {
        let account = match state.account(&settings.directory)? {
            Some(json) => {
                let known = serde_json::from_slice(&json).map_err(|error| AcmeError::Content {
                    path: state.account_file(&settings.directory),
                    why: error.to_string(),
                })?;
                in_time(patience, builder(settings)?.from_credentials(known)).await?
            }
            None => {
                let (account, json) = open_account(settings, patience).await?;
                state.store_account(&settings.directory, &json)?;
                account
            }
        };
        Ok(Self { settings, challenges, account, patience })
    }

    /// Orders a certificate. Returns its key and its chain, in PEM. `replaced` is the one that it follows.
    pub(crate) async fn order(
        &self,
        names: &[String],
        replaced: Option<&Facts>,
    ) -> Result<String, AcmeError> {
        let counter = Counter { authority: self, names, replaced };
        let mut alone = Alone::new(self.challenges);
        drive(&counter, &mut alone, &mut OrderRecord::default(), names).await
    }

    /// Goes on with an order that all machines know, or places one.
    pub(crate) async fn order_for_all(
        &self,
        names: &[String],
        replaced: Option<&Facts>,
        (held, record): (&mut Box<dyn Held>, &mut OrderRecord),
    ) -> Result<String, AcmeError> {
        let counter = Counter { authority: self, names, replaced };
        drive(&counter, held, record, names).await
    }

    /// When the authority would like to be asked for the next one, and for how long that is true; `None`: it does not say.
    pub(crate) async fn window(&self, facts: &Facts) -> Option<(Window, Duration)> {
        let asked = self.account.renewal_info(facts.identifier.as_ref()?);
        let (info, valid) = in_time(self.patience, asked).await.ok()?;
        let seconds = |at: time::OffsetDateTime| at.unix_timestamp().max(0) as u64;
        let window = info.suggested_window;
        Some((Window { start: seconds(window.start), end: seconds(window.end) }, valid))
    }
}

fn builder(settings: &AcmeSettings) -> Result<AccountBuilder, AcmeError> {
    let https = Https::new(settings.directory_ca.as_deref())?;
    Ok(Account::builder_with_http(Box::new(https)))
}

/// An answer of the authority, if it does not take longer than that. Nothing below limits how long it may be silent, and
/// a connection can be lost without a word: the certificate would never be renewed.
pub(crate) async fn in_time<A>(
    patience: Duration,
    answer: impl Future<Output = Result<A, instant_acme::Error>>,
) -> Result<A, AcmeError> {
    match tokio::time::timeout(patience, answer).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(AcmeError::Silent(patience.as_secs())),
    }
}

pub(crate) async fn next<'a>(
    authorizations: &'a mut Authorizations<'_>,
    patience: Duration,
) -> Result<Option<AuthorizationHandle<'a>>, AcmeError> {
    let next = async { authorizations.next().await.transpose() };
    in_time(patience, next).await
}

/// Opens an account. Also returns its credentials, which are to be kept.
pub(crate) async fn open_account(
    settings: &AcmeSettings,
    patience: Duration,
) -> Result<(Account, Vec<u8>), AcmeError> {
    let contact = settings.email.as_ref().map(|email| format!("mailto:{email}"));
    let contact: Vec<&str> = contact.as_deref().into_iter().collect();
    let external = settings.external_account.as_ref().map(external_key).transpose()?;
    let wanted = NewAccount {
        contact: &contact,
        terms_of_service_agreed: true,
        only_return_existing: false,
    };
    let directory = settings.directory.clone();
    let opened = builder(settings)?.create(&wanted, directory, external.as_ref());
    let (account, credentials) = in_time(patience, opened).await?;
    let json = serde_json::to_vec_pretty(&credentials).map_err(instant_acme::Error::from)?;
    tracing::info!(directory = settings.directory, "an account was opened");
    Ok((account, json))
}

fn external_key(account: &ExternalAccount) -> Result<ExternalAccountKey, AcmeError> {
    use base64::Engine as _;
    use base64::prelude::BASE64_URL_SAFE_NO_PAD;
    let path = &account.key_file;
    let text = std::fs::read_to_string(path).map_err(AcmeError::file(path))?;
    let key = BASE64_URL_SAFE_NO_PAD.decode(text.trim().trim_end_matches('=')).map_err(|_| {
        AcmeError::Content { path: path.clone(), why: "it is not base64url".to_owned() }
    })?;
    Ok(ExternalAccountKey::new(account.key_id.clone(), &key))
}

/// The first name that the authority refused, with its reason.
pub(crate) async fn refused(order: &mut Order, patience: Duration) -> AcmeError {
    let mut authorizations = order.authorizations();
    while let Ok(Some(mut authorization)) = next(&mut authorizations, patience).await {
        // The state fetched before the challenge was answered lacks the error.
        let _ = in_time(patience, authorization.refresh()).await;
        let name = authorization.identifier().to_string();
        let why = authorization.challenges.iter().find_map(|challenge| challenge.error.as_ref());
        if let Some(why) = why {
            return AcmeError::NotOurs { name, why: why.to_string() };
        }
    }
    AcmeError::NotOurs { name: "a name".to_owned(), why: "it did not say why".to_owned() }
}
