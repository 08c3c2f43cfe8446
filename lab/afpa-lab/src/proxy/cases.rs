//! The files that are asked for through the proxies, and the numbers of connections.

use afpa_generator::Object;

use crate::bench::{Case, Method, Metric, TcLoad};

const KB: u64 = 1024;
const MB: u64 = 1024 * KB;

/// Length of a measurement at a given rate. Many short ones: a machine that stands still for some milliseconds decides
/// the 99th percentile of the measurement in which it does so.
pub(super) const SECONDS_AT_RATE: f64 = 0.15;
/// So many of them for each round of a closed loop.
pub(super) const ROUNDS_AT_RATE: u32 = 4;

/// The servers behind the proxy answer requests below `/app/`; the proxy has `/small.html` in its cache.
const TINY: (u32, u64, &str) = (1, 102, "/app/tiny");
const SMALL: (u32, u64, &str) = (4, 512, "/small.html");

/// Closed loops: as fast as the proxy answers. The paper's own workload comes first: responses of 102 bytes from three
/// servers (section 6).
pub(super) fn closed(proxies: &[&str]) -> Vec<Case> {
    use Metric::{Bytes, BytesPerCore, P99, Requests, RequestsPerCore};
    const PER_CORE: &[Metric] = &[RequestsPerCore, Requests, P99];
    let case = |name: &str, title: &str, parts: &[_], connections, metrics| Case {
        connections,
        method: Method::Tc(TcLoad::default()),
        metrics,
        quick: true,
        ..Case::new(name, format!("{title}, {connections} connections"), proxies, objects(parts))
    };
    vec![
        case("tiny", "102 B from servers", &[TINY], 64, PER_CORE),
        case("page", "10 KB from servers", &[(1, 10 * KB, "/app/page")], 64, PER_CORE),
        case("large", "1 MB from servers", &[(1, MB, "/app/large")], 16, &[BytesPerCore, Bytes]),
        case("mix", "80 % cached 512 B, 20 % 102 B", &[SMALL, TINY], 64, PER_CORE),
        case("cached", "cached 512 B alone", &[SMALL], 64, PER_CORE),
    ]
}

/// The same requests at rates that do not depend on the answers: shares of what the slowest proxy answers at its most.
pub(super) fn at_rates(proxies: &[&str]) -> Vec<Case> {
    let closed = closed(proxies);
    let shares = [("tiny", 0.3), ("tiny", 0.6), ("tiny", 0.8), ("mix", 0.6)];
    let found = |(name, share): (&str, f64)| {
        Some(at_rate(closed.iter().find(|case| case.name == name)?, share))
    };
    shares.into_iter().filter_map(found).collect()
}

fn at_rate(case: &Case, share: f64) -> Case {
    let percent = share * 100.0;
    let title = case.title.rsplit_once(',').map_or(case.title.as_str(), |(title, _)| title);
    Case {
        name: format!("{}-{percent:.0}", case.name),
        title: format!("{title}, at {percent:.0}% of the slowest's most"),
        method: Method::Rate { of: case.name.clone(), share },
        metrics: &[Metric::P99, Metric::P50, Metric::P999, Metric::Requests],
        ..case.clone()
    }
}

fn objects(parts: &[(u32, u64, &str)]) -> Vec<(u32, Object)> {
    parts.iter().map(|(weight, size, path)| (*weight, Object::new(*path, *size))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_promised_cases_are_there() {
        let told = |case: &Case| (case.name.clone(), case.size(), case.connections);
        let found: Vec<_> = closed(&["afpa"]).iter().map(told).collect();
        let expected = [
            ("tiny", 102, 64),
            ("page", 10_240, 64),
            ("large", 1 << 20, 16),
            ("mix", 512, 64),
            ("cached", 512, 64),
        ];
        assert_eq!(found, expected.map(|(name, size, count)| (name.to_owned(), size, count)));
        let mix = &closed(&["afpa"])[3].objects;
        assert_eq!(mix.iter().map(|(weight, _)| *weight).collect::<Vec<_>>(), [4, 1]);
    }

    #[test]
    fn a_case_at_a_rate_belongs_to_one_at_its_most() {
        let closed = closed(&["afpa"]);
        let at_rates = at_rates(&["afpa"]);
        assert_eq!(at_rates.len(), 4);
        for case in &at_rates {
            let Method::Rate { of, share } = &case.method else { panic!("{}", case.name) };
            assert!(closed.iter().any(|one| one.name == *of), "{of}");
            assert!(*share > 0.0 && *share < 1.0);
        }
        assert_eq!(at_rates[0].title, "102 B from servers, at 30% of the slowest's most");
        assert_eq!(at_rates[3].name, "mix-60");
    }
}
