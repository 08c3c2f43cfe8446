//! The steps of an order. After each of them, another machine can go on from the record.

use rcgen::{CertificateParams, DistinguishedName, KeyPair};

use super::record::{Begun, OrderRecord, Proof};
use crate::error::AcmeError;

/// How far an order has come at the authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The authority has not validated all names yet.
    Pending,
    /// It has, and waits for the request with the key.
    Ready,
    /// The certificate is issued, or is being issued.
    Certified,
    /// The order has failed, or has expired.
    Over,
}

/// The authority, as one order needs it.
pub(crate) trait Office {
    type Order;
    /// A record of the DNS that a program has set.
    type Record;

    /// Places an order.
    async fn place(&self) -> Result<Self::Order, AcmeError>;
    /// An order that was placed before; `None`: the authority has none.
    async fn again(&self, url: &str) -> Result<Option<Self::Order>, AcmeError>;
    fn url(&self, order: &Self::Order) -> String;
    fn stage(&self, order: &mut Self::Order) -> Stage;
    /// The answers to the open challenges.
    async fn proofs(&self, order: &mut Self::Order) -> Result<Vec<Proof>, AcmeError>;
    /// Whether a program sets the answers, and no machine shows them.
    fn has_program(&self) -> bool;
    async fn set(&self, proofs: &[Proof]) -> Result<Vec<Self::Record>, AcmeError>;
    async fn unset(&self, records: Vec<Self::Record>);
    /// Tells the authority that the answers are in place (RFC 8555 section 7.5.1).
    async fn tell(&self, order: &mut Self::Order) -> Result<(), AcmeError>;
    /// Waits until the authority has validated all names.
    async fn ready(&self, order: &mut Self::Order) -> Result<(), AcmeError>;
    async fn finalize(&self, order: &mut Self::Order, request: &[u8]) -> Result<(), AcmeError>;
    async fn chain(&self, order: &mut Self::Order) -> Result<String, AcmeError>;
}

/// The record of the order, which this machine holds.
pub(crate) trait Desk {
    /// Whether nobody else can hold it yet.
    fn holds(&self) -> bool;
    /// Writes the record to the servers of the fleet. When this returns, it outlives this machine.
    async fn keep(&mut self, record: &OrderRecord) -> Result<(), AcmeError>;
    /// Waits until all machines show the answers that were kept last.
    async fn seen(&self);
}

/// Orders a certificate for names, or goes on with the order of the record. Returns key and chain, in PEM.
///
/// An error leaves the order in the record, if there may still be a certificate of it.
pub(crate) async fn drive<O: Office>(
    office: &O,
    desk: &mut impl Desk,
    record: &mut OrderRecord,
    names: &[String],
) -> Result<String, AcmeError> {
    let outcome = steps(office, desk, record, names).await;
    if outcome.as_ref().is_err_and(AcmeError::ends_order) {
        record.order = None;
    }
    outcome
}

async fn steps<O: Office>(
    office: &O,
    desk: &mut impl Desk,
    record: &mut OrderRecord,
    names: &[String],
) -> Result<String, AcmeError> {
    let mut order = match &record.order {
        Some(begun) => match office.again(&begun.url).await? {
            Some(mut found) => (office.stage(&mut found) != Stage::Over).then_some(found),
            None => None,
        },
        None => None,
    };
    let (order, key) = match (&mut order, &record.order) {
        (Some(order), Some(begun)) => (order, begun.key.clone()),
        _ => {
            if !desk.holds() {
                return Err(AcmeError::Others("another machine may order it".to_owned()));
            }
            let key = KeyPair::generate().map_err(unusable)?.serialize_pem();
            let placed = order.insert(office.place().await?);
            let (url, key_here) = (office.url(placed), key.clone());
            record.order = Some(Begun { url, key: key_here, proofs: Vec::new() });
            desk.keep(record).await?;
            (placed, key)
        }
    };
    if office.stage(order) == Stage::Pending {
        show(office, desk, record, order).await?;
    }
    if office.stage(order) != Stage::Certified {
        let request = request(&key, names).map_err(unusable)?;
        finalize(office, order, &request).await?;
    }
    let chain = office.chain(order).await?;
    Ok(format!("{key}{chain}"))
}

/// Shows that the names are ours.
async fn show<O: Office>(
    office: &O,
    desk: &mut impl Desk,
    record: &mut OrderRecord,
    order: &mut O::Order,
) -> Result<(), AcmeError> {
    let proofs = office.proofs(order).await?;
    let by_machines = if office.has_program() { Vec::new() } else { proofs.clone() };
    if let Some(begun) = &mut record.order
        && begun.proofs != by_machines
    {
        begun.proofs = by_machines;
        desk.keep(record).await?;
    }
    let records = if office.has_program() { office.set(&proofs).await? } else { Vec::new() };
    desk.seen().await;
    let outcome = match office.tell(order).await {
        Ok(()) => office.ready(order).await,
        Err(error) => Err(error),
    };
    office.unset(records).await;
    outcome
}

/// Asks for the certificate. A machine that held the record before may have done so.
async fn finalize<O: Office>(
    office: &O,
    order: &mut O::Order,
    request: &[u8],
) -> Result<(), AcmeError> {
    let Err(error) = office.finalize(order, request).await else { return Ok(()) };
    match office.again(&office.url(order)).await {
        Ok(Some(mut found)) => match office.stage(&mut found) {
            Stage::Certified => {
                *order = found;
                Ok(())
            }
            Stage::Pending | Stage::Ready | Stage::Over => Err(error),
        },
        Ok(None) | Err(_) => Err(error),
    }
}

/// The request for a certificate (RFC 2986), DER.
fn request(key: &str, names: &[String]) -> Result<Vec<u8>, rcgen::Error> {
    let key = KeyPair::from_pem(key)?;
    let mut wanted = CertificateParams::new(names.to_vec())?;
    wanted.distinguished_name = DistinguishedName::new();
    Ok(wanted.serialize_request(&key)?.der().to_vec())
}

fn unusable(error: rcgen::Error) -> AcmeError {
    AcmeError::Certificate(error.to_string())
}

#[cfg(test)]
mod tests;
