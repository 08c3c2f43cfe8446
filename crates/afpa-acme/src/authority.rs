//! The exchange with the authority: account, order, challenges, certificate (RFC 8555 section 7).

use std::time::Duration;

use instant_acme::{
    Account, AccountBuilder, AuthorizationHandle, AuthorizationStatus, Authorizations,
    ChallengeHandle, ChallengeType, ExternalAccountKey, Identifier, NewAccount, NewOrder, Order,
    OrderStatus, RetryPolicy,
};
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair};

use crate::certificate::Facts;
use crate::challenges::{AlpnCertificate, Challenges, Shown};
use crate::due::Window;
use crate::error::AcmeError;
use crate::https::Https;
use crate::program::Record;
use crate::settings::{AcmeSettings, ChallengeKind, ExternalAccount};
use crate::state::StateFolder;
use crate::zone::RecordInZone;

/// How long an authority may take to look at the answers, and to certify.
const POLLS: Duration = Duration::from_secs(90);
const PATIENCE: RetryPolicy =
    RetryPolicy::new().initial_delay(Duration::from_millis(250)).timeout(POLLS);

/// The answer to an open challenge. Dropping it withdraws the answer.
enum Answer {
    Shown(#[expect(dead_code, reason = "held until the order has ended")] Shown),
    Record(Record),
    InZone(#[expect(dead_code, reason = "held until the order has ended")] RecordInZone),
}

/// An authority at which there is an account.
pub(crate) struct Authority<'s> {
    settings: &'s AcmeSettings,
    challenges: &'s Challenges,
    account: Account,
    /// How long it may be silent.
    patience: Duration,
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
            None => open_account(settings, state, patience).await?,
        };
        Ok(Self { settings, challenges, account, patience })
    }

    /// Orders a certificate. Returns its key and its chain, in PEM. `replaced` is the one that it follows.
    pub(crate) async fn order(
        &self,
        names: &[String],
        replaced: Option<&Facts>,
    ) -> Result<String, AcmeError> {
        let identifiers: Vec<_> = names.iter().cloned().map(Identifier::Dns).collect();
        let wanted = || {
            let wanted = NewOrder::new(&identifiers);
            match &self.settings.profile {
                Some(profile) => wanted.profile(profile),
                None => wanted,
            }
        };
        let mut order = match replaced.and_then(|facts| facts.identifier.clone()) {
            Some(before) => match self.new_order(&wanted().replaces(before)).await {
                Ok(order) => order,
                // An authority without renewal information, or one that knows another successor already.
                Err(_) => self.new_order(&wanted()).await?,
            },
            None => self.new_order(&wanted()).await?,
        };
        let mut answers = Vec::new();
        let certified = self.certify(&mut order, &mut answers).await;
        for answer in answers {
            if let Answer::Record(record) = answer {
                record.remove().await;
            }
        }
        certified
    }

    async fn new_order(&self, wanted: &NewOrder<'_>) -> Result<Order, AcmeError> {
        in_time(self.patience, self.account.new_order(wanted)).await
    }

    async fn certify(
        &self,
        order: &mut Order,
        answers: &mut Vec<Answer>,
    ) -> Result<String, AcmeError> {
        self.answer_challenges(order, answers).await?;
        match in_time(POLLS + self.patience, order.poll_ready(&PATIENCE)).await {
            Ok(OrderStatus::Ready) => {}
            Ok(_) => return Err(refused(order, self.patience).await),
            Err(AcmeError::Authority(instant_acme::Error::Api(problem))) => {
                tracing::debug!(%problem, "the order is invalid");
                return Err(refused(order, self.patience).await);
            }
            Err(error) => return Err(error),
        }
        let key = in_time(self.patience, order.finalize()).await?;
        let chain = in_time(POLLS + self.patience, order.poll_certificate(&PATIENCE)).await?;
        Ok(format!("{key}{chain}"))
    }

    async fn answer_challenges(
        &self,
        order: &mut Order,
        answers: &mut Vec<Answer>,
    ) -> Result<(), AcmeError> {
        let (kind, shown) = match self.settings.challenge {
            ChallengeKind::Http01 => (ChallengeType::Http01, "http-01"),
            ChallengeKind::TlsAlpn01 => (ChallengeType::TlsAlpn01, "tls-alpn-01"),
            ChallengeKind::Dns01 => (ChallengeType::Dns01, "dns-01"),
        };
        let mut authorizations = order.authorizations();
        while let Some(mut authorization) = next(&mut authorizations, self.patience).await? {
            if authorization.status == AuthorizationStatus::Valid {
                continue;
            }
            let name = authorization.identifier().to_string();
            let mut challenge = authorization
                .challenge(kind.clone())
                .ok_or(AcmeError::NotOffered { challenge: shown, name })?;
            answers.push(self.answer(&challenge).await?);
            in_time(self.patience, challenge.set_ready()).await?;
        }
        Ok(())
    }

    async fn answer(&self, challenge: &ChallengeHandle<'_>) -> Result<Answer, AcmeError> {
        let proof = challenge.key_authorization();
        let name = match challenge.identifier().identifier {
            Identifier::Dns(name) => name.clone(),
            _ => return Err(AcmeError::Certificate("it is for no name".to_owned())),
        };
        Ok(match self.settings.challenge {
            ChallengeKind::Http01 => {
                Answer::Shown(self.challenges.show_response(&challenge.token, proof.as_str()))
            }
            ChallengeKind::TlsAlpn01 => {
                let made = alpn_certificate(&name, proof.digest().as_ref())
                    .map_err(|error| AcmeError::Certificate(error.to_string()))?;
                Answer::Shown(self.challenges.show_certificate(&name, made))
            }
            ChallengeKind::Dns01 => {
                let value = proof.dns_value();
                match (&self.settings.dns_program, self.challenges.zones()) {
                    (None, Some(zones)) => {
                        let name = self.settings.challenge_alias.as_ref().unwrap_or(&name);
                        let record = format!("_acme-challenge.{name}");
                        Answer::InZone(RecordInZone::set(zones, record, value)?)
                    }
                    (program, _) => {
                        let program = program.as_deref().unwrap_or("afpa-dns".as_ref());
                        let record = format!("_acme-challenge.{name}");
                        Answer::Record(Record::set(program, record, value).await?)
                    }
                }
            }
        })
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
async fn in_time<A>(
    patience: Duration,
    answer: impl Future<Output = Result<A, instant_acme::Error>>,
) -> Result<A, AcmeError> {
    match tokio::time::timeout(patience, answer).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(AcmeError::Silent(patience.as_secs())),
    }
}

async fn next<'a>(
    authorizations: &'a mut Authorizations<'_>,
    patience: Duration,
) -> Result<Option<AuthorizationHandle<'a>>, AcmeError> {
    let next = async { authorizations.next().await.transpose() };
    in_time(patience, next).await
}

async fn open_account(
    settings: &AcmeSettings,
    state: &StateFolder,
    patience: Duration,
) -> Result<Account, AcmeError> {
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
    state.store_account(&settings.directory, &json)?;
    tracing::info!(directory = settings.directory, "an account was opened");
    Ok(account)
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

/// The certificate of RFC 8737 section 3: signed by itself, for the name, with the digest of the proof.
fn alpn_certificate(name: &str, digest: &[u8]) -> Result<AlpnCertificate, rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut wanted = CertificateParams::new(vec![name.to_owned()])?;
    wanted.distinguished_name = DistinguishedName::new();
    wanted.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let certificate = wanted.self_signed(&key)?;
    Ok(AlpnCertificate { certificate: certificate.der().to_vec(), key: key.serialize_der() })
}

/// The first name that the authority refused, with its reason.
async fn refused(order: &mut Order, patience: Duration) -> AcmeError {
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
