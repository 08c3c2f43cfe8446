//! Makes the marks of requests.

use std::fmt;

use afpa_http::Request;
use afpa_http::edits::FieldRules;
use afpa_http::marks::Marks;
use afpa_http::trace::{Trace, TraceBits};
use rand::RngExt as _;
use rand::rngs::StdRng;

/// A source of marks, one for each core. It asks the system for random bits once, when it is made.
pub(crate) struct Marker {
    random: StdRng,
    /// The marks of the request that is being answered.
    marks: Marks,
}

impl Marker {
    pub(crate) fn new() -> Self {
        Self { random: rand::make_rng(), marks: Marks::default() }
    }

    /// The marks of a request. Only a trusted router in front may have chosen its id. `before`: the marks with which a
    /// server was asked about the same request; they stay.
    pub(crate) fn mark(
        &mut self,
        rules: &FieldRules,
        request: &Request<'_, '_>,
        (trusted, before): (bool, Option<&Marks>),
    ) -> &Marks {
        let random = &mut self.random;
        let id = rules.id.as_ref().map(|rule| match before.and_then(|marks| marks.id) {
            Some(id) => id,
            None => rule.id(request, trusted, random.random()),
        });
        let trace = rules.trace.map(|rule| {
            // That of a client goes on only where the rule of the place lets it.
            let may_stay = |trace: &Trace| trusted || rule.of_anybody || !trace.goes_on();
            match before.and_then(|marks| marks.trace).filter(may_stay) {
                Some(trace) => trace,
                None => {
                    let (trace, step) = (random.random(), random.random());
                    let (own, choice) = (random.random(), random.random());
                    rule.trace(request, trusted, TraceBits { trace, step, own, choice })
                }
            }
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
    use afpa_http::trace::TraceRule;
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
        let (theirs, own) = ((true, None), (false, None));
        assert_eq!(one.mark(&rules, &parsed, theirs).id(), b"theirs");
        let made = one.mark(&rules, &parsed, own).id().to_vec();
        assert_ne!(two.mark(&rules, &parsed, own).id(), made, "each core has its own bits");
        let counted = allocation_counter::measure(|| {
            for _ in 0..100 {
                assert_ne!(one.mark(&rules, &parsed, own).id(), made);
            }
        });
        assert_eq!(counted.count_total, 0);
    }

    #[test]
    fn a_request_that_is_derived_again_keeps_its_marks_as_far_as_the_place_has_some() {
        let head = b"GET / HTTP/1.1\r\nHost: a\r\n\
            traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n\r\n";
        let mut slots = FieldSlots::default();
        let parsed = request::parse(head, &mut slots, &RequestLimits::default());
        let parsed = parsed.unwrap().unwrap();
        let rules = |of_anybody| {
            let id = Some(IdRule { field: "X-Request-Id".to_owned(), in_answers: true });
            let trace = Some(TraceRule { of_anybody, share: 100 });
            FieldRules { id, trace, ..FieldRules::default() }
        };
        let (open, shut, mut marker) = (rules(true), rules(false), Marker::new());
        let first = *marker.mark(&open, &parsed, (false, None));
        assert_eq!(*marker.mark(&open, &parsed, (false, Some(&first))), first);
        let second = *marker.mark(&shut, &parsed, (false, Some(&first)));
        assert_eq!(second.id, first.id);
        assert_ne!(second.trace_id(), first.trace_id(), "no client chooses it there");
        assert_eq!(*marker.mark(&shut, &parsed, (false, Some(&second))), second);
        let without = FieldRules { id: None, ..open };
        let third = *marker.mark(&without, &parsed, (false, Some(&first)));
        assert_eq!((third.id, third.trace), (None, first.trace));
    }
}
