//! The results of checks of the client of one request, for the response that is derived again.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use afpa_proxy::limit::Permit;
use afpa_users::Users;

use crate::asked::KeptRequest;
use crate::checks::Found;
use crate::demand::{Consent, ServerDemand};
use crate::rates::PlaceRates;

/// The results of checks of one request, and the servers that have consented.
#[derive(Debug, Default)]
pub(crate) struct Learnt {
    pub(crate) passwords: Vec<(Arc<Users>, Found)>,
    pub(crate) consents: Vec<Rc<Consent>>,
    /// The rates that have counted it.
    pub(crate) charged: Vec<usize>,
    /// See [`Granted::permit`](crate::demand::Granted).
    pub(crate) permit: RefCell<Option<Permit>>,
}

impl Learnt {
    /// The results so far, with the rates that have now counted the request.
    pub(crate) fn charged(learnt: Option<Self>, rates: PlaceRates, read_as: &[PlaceRates]) -> Self {
        let mut learnt = learnt.unwrap_or_default();
        for rates in std::iter::once(&rates).chain(read_as) {
            learnt.charged.extend([rates.client, rates.all].into_iter().flatten());
        }
        learnt
    }

    pub(crate) fn of(&self, users: &Arc<Users>) -> Option<&Found> {
        self.passwords.iter().find(|(own, _)| Arc::ptr_eq(own, users)).map(|(_, found)| found)
    }

    pub(crate) fn consent(&self, demand: &Arc<ServerDemand>) -> Option<&Rc<Consent>> {
        self.consents.iter().find(|consent| Arc::ptr_eq(&consent.demand, demand))
    }
}

/// The request, and what was found out about its client.
pub struct CheckedRequest {
    pub(crate) request: KeptRequest,
    pub(crate) learnt: Learnt,
}
