//! The authority for the steps of an order.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use instant_acme::{
    AuthorizationStatus, ChallengeStatus, ChallengeType, Identifier, NewOrder, Order, OrderStatus,
};

use super::Held;
use super::answers::{Showing, show};
use super::order::{Desk, Office, Stage};
use super::record::{Kind, OrderRecord, Proof};
use crate::authority::{Authority, PATIENCE, POLLS, in_time, next, refused};
use crate::certificate::Facts;
use crate::challenges::Challenges;
use crate::error::AcmeError;
use crate::program::Record;
use crate::settings::ChallengeKind;

/// An authority, for a certificate.
pub(crate) struct Counter<'s> {
    pub(crate) authority: &'s Authority<'s>,
    pub(crate) names: &'s [String],
    /// The certificate that the order replaces (RFC 9773 section 5).
    pub(crate) replaced: Option<&'s Facts>,
}

impl Counter<'_> {
    fn kind(&self) -> Kind {
        match self.authority.settings.challenge {
            ChallengeKind::Http01 => Kind::Response,
            ChallengeKind::TlsAlpn01 => Kind::Certificate,
            ChallengeKind::Dns01 => Kind::Record,
        }
    }

    fn asked(&self) -> (ChallengeType, &'static str) {
        match self.kind() {
            Kind::Response => (ChallengeType::Http01, "http-01"),
            Kind::Certificate => (ChallengeType::TlsAlpn01, "tls-alpn-01"),
            Kind::Record => (ChallengeType::Dns01, "dns-01"),
        }
    }

    async fn new_order(&self, wanted: &NewOrder<'_>) -> Result<Order, AcmeError> {
        in_time(self.authority.patience, self.authority.account.new_order(wanted)).await
    }

    /// The name at which the text of a record is put.
    fn record_name(&self, name: &str) -> String {
        let alias = self.authority.settings.challenge_alias.as_deref();
        format!("_acme-challenge.{}", alias.filter(|_| !self.has_program()).unwrap_or(name))
    }
}

impl Office for Counter<'_> {
    type Order = Order;
    type Record = Record;

    async fn place(&self) -> Result<Order, AcmeError> {
        let identifiers: Vec<_> = self.names.iter().cloned().map(Identifier::Dns).collect();
        let wanted = || {
            let wanted = NewOrder::new(&identifiers);
            match &self.authority.settings.profile {
                Some(profile) => wanted.profile(profile),
                None => wanted,
            }
        };
        match self.replaced.and_then(|facts| facts.identifier.clone()) {
            Some(before) => match self.new_order(&wanted().replaces(before)).await {
                Ok(order) => Ok(order),
                // An authority without renewal information, or one that knows another successor already.
                Err(_) => self.new_order(&wanted()).await,
            },
            None => self.new_order(&wanted()).await,
        }
    }

    async fn again(&self, url: &str) -> Result<Option<Order>, AcmeError> {
        let asked = self.authority.account.order(url.to_owned());
        match in_time(self.authority.patience, asked).await {
            Ok(order) => Ok(Some(order)),
            Err(error) if error.is_no_order() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn url(&self, order: &Order) -> String {
        order.url().to_owned()
    }

    fn stage(&self, order: &mut Order) -> Stage {
        match order.state().status {
            OrderStatus::Pending => Stage::Pending,
            OrderStatus::Ready => Stage::Ready,
            OrderStatus::Processing | OrderStatus::Valid => Stage::Certified,
            OrderStatus::Invalid => Stage::Over,
        }
    }

    async fn proofs(&self, order: &mut Order) -> Result<Vec<Proof>, AcmeError> {
        let (asked, said) = self.asked();
        let mut proofs = Vec::new();
        let mut authorizations = order.authorizations();
        while let Some(mut authorization) =
            next(&mut authorizations, self.authority.patience).await?
        {
            if authorization.status == AuthorizationStatus::Valid {
                continue;
            }
            let shown = authorization.identifier().to_string();
            let challenge = authorization.challenge(asked.clone());
            let challenge =
                challenge.ok_or(AcmeError::NotOffered { challenge: said, name: shown })?;
            let name = match challenge.identifier().identifier {
                Identifier::Dns(name) => name.clone(),
                _ => return Err(AcmeError::Certificate("it is for no name".to_owned())),
            };
            let proof = challenge.key_authorization();
            let (place, answer) = match self.kind() {
                Kind::Response => (challenge.token.clone(), proof.as_str().to_owned()),
                Kind::Certificate => (name, BASE64_URL_SAFE_NO_PAD.encode(proof.digest())),
                Kind::Record => (self.record_name(&name), proof.dns_value()),
            };
            proofs.push(Proof { kind: self.kind(), place, answer });
        }
        Ok(proofs)
    }

    fn has_program(&self) -> bool {
        let is_here = self.authority.challenges.zones().is_some();
        let is_set = self.authority.settings.dns_program.is_some();
        self.kind() == Kind::Record && (is_set || !is_here)
    }

    async fn set(&self, proofs: &[Proof]) -> Result<Vec<Record>, AcmeError> {
        let program = self.authority.settings.dns_program.as_deref();
        let program = program.unwrap_or("afpa-dns".as_ref());
        let mut records = Vec::new();
        for Proof { place, answer, .. } in proofs {
            match Record::set(program, place.clone(), answer.clone()).await {
                Ok(record) => records.push(record),
                Err(error) => {
                    self.unset(records).await;
                    return Err(error);
                }
            }
        }
        Ok(records)
    }

    async fn unset(&self, records: Vec<Record>) {
        for record in records {
            record.remove().await;
        }
    }

    async fn tell(&self, order: &mut Order) -> Result<(), AcmeError> {
        let patience = self.authority.patience;
        let (asked, _) = self.asked();
        let mut authorizations = order.authorizations();
        while let Some(mut authorization) = next(&mut authorizations, patience).await? {
            if authorization.status != AuthorizationStatus::Pending {
                continue;
            }
            let Some(mut challenge) = authorization.challenge(asked.clone()) else { continue };
            // Another machine may have told it.
            if challenge.status == ChallengeStatus::Pending {
                in_time(patience, challenge.set_ready()).await?;
            }
        }
        Ok(())
    }

    async fn ready(&self, order: &mut Order) -> Result<(), AcmeError> {
        let patience = self.authority.patience;
        match in_time(POLLS + patience, order.poll_ready(&PATIENCE)).await {
            Ok(OrderStatus::Ready) => Ok(()),
            Ok(_) => Err(refused(order, patience).await),
            Err(AcmeError::Authority(instant_acme::Error::Api(problem))) => {
                tracing::debug!(%problem, "the order is invalid");
                Err(refused(order, patience).await)
            }
            Err(error) => Err(error),
        }
    }

    async fn finalize(&self, order: &mut Order, request: &[u8]) -> Result<(), AcmeError> {
        in_time(self.authority.patience, order.finalize_csr(request)).await
    }

    async fn chain(&self, order: &mut Order) -> Result<String, AcmeError> {
        in_time(POLLS + self.authority.patience, order.poll_certificate(&PATIENCE)).await
    }
}

/// The record of an order of a machine that is alone: nothing outlives it, and it shows the answers itself.
pub(crate) struct Alone<'c> {
    challenges: &'c Challenges,
    showing: Vec<Showing>,
}

impl<'c> Alone<'c> {
    pub(crate) fn new(challenges: &'c Challenges) -> Self {
        Self { challenges, showing: Vec::new() }
    }
}

impl Desk for Alone<'_> {
    fn holds(&self) -> bool {
        true
    }

    async fn keep(&mut self, record: &OrderRecord) -> Result<(), AcmeError> {
        self.showing.clear();
        let proofs = record.order.iter().flat_map(|order| &order.proofs);
        self.showing =
            proofs.map(|proof| show(self.challenges, proof)).collect::<Result<_, _>>()?;
        Ok(())
    }

    async fn seen(&self) {}
}

impl Desk for Box<dyn Held> {
    fn holds(&self) -> bool {
        (**self).holds()
    }

    async fn keep(&mut self, record: &OrderRecord) -> Result<(), AcmeError> {
        self.put(record.write()).await.map_err(AcmeError::Others)
    }

    async fn seen(&self) {
        (**self).seen().await;
    }
}
