//! The loads, and who takes part in them.

use afpa_netlab::queries::{Names, Question};

use super::zones::{FEW, MANY, PLAIN, SIGNED};
use crate::bench::{Case, Method, Metric};

/// Names of cases.
pub(super) const PLAIN_A: &str = "plain";
pub(super) const NAMES: &str = "names";
pub(super) const SIGNED_A: &str = "signed";
pub(super) const ABSENT: &str = "absent";
pub(super) const MISSES: &str = "misses";
pub(super) const COOKIES: &str = "cookies";

/// The length of answers that resolvers of today allow.
const EDNS: u16 = 1232;
/// The first of 160 names that are in no zone.
const NOBODY: u32 = 0x4000_0000;

/// A case, and what its queries ask.
#[derive(Debug, Clone)]
pub(super) struct DnsCase {
    pub(super) case: Case,
    pub(super) question: Question,
    /// The names have addresses.
    pub(super) found: bool,
    /// The answers can be given from the kernel, by an AFPA that is attached.
    pub(super) hits: bool,
}

/// All cases for these servers.
pub(super) fn all(servers: &[&str], outstanding: u32) -> Vec<DnsCase> {
    use Metric::{CoreTime, Requests};
    const METRICS: &[Metric] = &[Requests, CoreTime];
    let few = Names::InTurn { first: 0, count: FEW };
    let case = |name: &str, title: &str, but: &[&str], question, quick| {
        let names: Vec<&str> = servers.iter().filter(|name| !but.contains(name)).copied().collect();
        let case = Case {
            connections: outstanding,
            method: Method::Streams(1),
            quick,
            metrics: METRICS,
            ..Case::new(name, title, &names, Vec::new())
        };
        DnsCase { case, question, found: true, hits: true }
    };
    let plain = |names| Question::new(PLAIN, names);
    let edns = |zone, cookie| Question { edns: Some(EDNS), cookie, ..Question::new(zone, few) };
    let signed = Question { signatures: true, ..edns(SIGNED, None) };
    // Where they are left out, they would say the same as before NSD, or have nothing to show.
    let not_nsd = ["afpa-knot", "afpa-bind", "bind"];
    let only_misses = ["knot-xdp", "afpa-bind", "bind", "afpa-zones"];
    vec![
        case(PLAIN_A, "A, 160 names", &[], plain(few), true),
        case(NAMES, "A, 32,768 names at random", &not_nsd, plain(Names::Drawn(MANY)), true),
        case(SIGNED_A, "A with signatures, 160 names", &[], signed, true),
        DnsCase {
            found: false,
            ..case(
                ABSENT,
                "160 names that are not there",
                &not_nsd,
                plain(Names::InTurn { first: NOBODY, count: FEW }),
                false,
            )
        },
        DnsCase {
            found: false,
            hits: false,
            ..case(MISSES, "a new name each time", &only_misses, plain(Names::Fresh), true)
        },
        case(
            COOKIES,
            "A with a client's cookie, 160 names",
            &not_nsd,
            edns(PLAIN, Some(*b"resolver")),
            false,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::dns::NAME_SERVERS;

    #[test]
    fn the_promised_cases_are_there() {
        let cases = all(&NAME_SERVERS, 128);
        let servers = |name: &str| {
            let case = cases.iter().find(|case| case.case.name == name).expect("a case");
            case.case.servers.clone()
        };
        for name in [PLAIN_A, SIGNED_A] {
            assert_eq!(servers(name), NAME_SERVERS);
        }
        for name in [NAMES, ABSENT, COOKIES] {
            assert_eq!(servers(name), ["afpa-nsd", "nsd", "knot", "knot-xdp", "afpa-zones"]);
        }
        assert_eq!(servers(MISSES), ["afpa-nsd", "nsd", "afpa-knot", "knot"]);
        for case in &cases {
            assert_eq!(case.found, ![ABSENT, MISSES].contains(&case.case.name.as_str()));
            assert_eq!(case.hits, case.case.name != MISSES);
            assert!(case.question.query(0, 0).expect("a query").len() <= 128);
        }
    }
}
