//! Makes the marks of requests.

use std::fmt;

use afpa_http::Request;
use afpa_http::edits::FieldRules;
use afpa_http::marks::Marks;
use afpa_http::trace::TraceBits;
use rand::RngExt as _;
use rand::rngs::StdRng;

/// A source of marks, one for each core. It asks the system for random bits once, when it is made.
pub(crate) struct Marker {
    random: StdRng,
    /// Those of the request that is being answered.
    marks: Marks,
}

impl Marker {
    pub(crate) fn new() -> Self {
        Self { random: rand::make_rng(), marks: Marks::default() }
    }

    /// The marks of a request. Only a trusted router in front may have chosen its id.
    pub(crate) fn mark(
        &mut self,
        rules: &FieldRules,
        request: &Request<'_, '_>,
        trusted: bool,
    ) -> &Marks {
        let random = &mut self.random;
        let id = rules.id.as_ref().map(|rule| rule.id(request, trusted, random.random()));
        let trace = rules.trace.map(|rule| {
            let (trace, step, choice) = (random.random(), random.random(), random.random());
            rule.trace(request, trusted, TraceBits { trace, step, choice })
        });
        self.marks = Marks { id, trace };
        &self.marks
    }
}

impl fmt::Debug for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Its state would tell the ids to come.
        f.debug_struct("Marker").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afpa_http::marks::IdRule;
    use afpa_http::{FieldSlots, RequestLimits, request};

    #[test]
    fn each_request_has_an_id_of_its_own_and_none_costs_memory() {
        let head = b"GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: theirs\r\n\r\n";
        let mut slots = FieldSlots::default();
        let parsed = request::parse(head, &mut slots, &RequestLimits::default());
        let parsed = parsed.unwrap().unwrap();
        let id = Some(IdRule { field: "X-Request-Id".to_owned(), in_answers: true });
        let rules = FieldRules { id, ..FieldRules::default() };
        let (mut one, mut two) = (Marker::new(), Marker::new());
        assert_eq!(one.mark(&rules, &parsed, true).id(), b"theirs");
        let made = one.mark(&rules, &parsed, false).id().to_vec();
        assert_ne!(two.mark(&rules, &parsed, false).id(), made, "each core has its own bits");
        let counted = allocation_counter::measure(|| {
            for _ in 0..100 {
                assert_ne!(one.mark(&rules, &parsed, false).id(), made);
            }
        });
        assert_eq!(counted.count_total, 0);
    }
}
