//! Counts of one thread.

use afpa_dns::query::Rcode;
use afpa_dns::{Answered, rtype};
use afpa_framework::Counter;

/// The answers of one thread.
#[derive(Debug, Default)]
pub struct DnsCounters {
    rcodes: [Counter; Rcode::ALL.len()],
    types: [Counter; rtype::PLACES],
    /// Questions by datagrams.
    pub udp: Counter,
    /// Questions on connections.
    pub tcp: Counter,
    /// Answers that were too long for a datagram.
    pub truncated: Counter,
    /// Answers above the rate of their client's prefix that asked it to come by TCP.
    pub slipped: Counter,
    /// Answers above that rate that were not given.
    pub dropped: Counter,
    /// Datagrams that are no questions, and got no answer.
    pub ignored: Counter,
    /// Zones that were transferred.
    pub transfers: Counter,
}

impl DnsCounters {
    pub(crate) fn answered(&self, answered: &Answered) {
        let place = Rcode::ALL.iter().position(|rcode| *rcode == answered.rcode);
        if let Some(count) = place.and_then(|place| self.rcodes.get(place)) {
            count.add(1);
        }
        if let Some(count) = self.types.get(rtype::place(answered.rtype)) {
            count.add(1);
        }
        if answered.is_truncated {
            self.truncated.add(1);
        }
    }

    /// Answers by their code.
    pub fn by_rcode(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Rcode::ALL.iter().zip(&self.rcodes).map(|(rcode, count)| (rcode.name(), count.get()))
    }

    /// Answers by the type that was asked for.
    pub fn by_type(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.types
            .iter()
            .enumerate()
            .map(|(place, count)| (rtype::name_of_place(place), count.get()))
    }
}
