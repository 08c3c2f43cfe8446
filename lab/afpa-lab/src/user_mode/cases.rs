//! The cases: four files, each with a number of connections.

use afpa_generator::Object;

use crate::bench::{Case, Method, Metric};

const KB: u64 = 1024;
const MB: u64 = 1024 * KB;

/// 64 connections keep a server's core busy without hiding its latency behind a long queue. Large files need fewer:
/// eight senders of 10 MB already never wait for a client, and more of them would measure how well 64 send buffers fit
/// into the processor's cache.
pub(super) fn all(servers: &[&str]) -> Vec<Case> {
    use Metric::{Bytes, BytesPerCore, P50, P99, Requests};
    let case = |name: &str, title: &str, (path, size), connections, metrics| Case {
        connections,
        method: Method::Wrk,
        metrics,
        quick: true,
        ..Case::new(
            name,
            format!("{title}, {connections} connections"),
            servers,
            vec![(1, Object::new(path, size))],
        )
    };
    vec![
        case("small", "512 B", ("/small.html", 512), 64, &[Requests, P99, P50]),
        case("page", "4 KB", ("/page.html", 4 * KB), 64, &[BytesPerCore, Requests]),
        case("large", "1 MB", ("/large.bin", MB), 16, &[BytesPerCore, Bytes]),
        case("huge", "10 MB", ("/huge.bin", 10 * MB), 8, &[BytesPerCore, Bytes]),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::fs;

    use afpa_generator::Workload;

    use super::*;

    #[test]
    fn every_case_has_figures_and_its_own_file() {
        let cases = all(&["nginx"]);
        let paths: HashSet<&str> =
            cases.iter().map(|case| case.objects[0].1.path.as_str()).collect();
        assert_eq!(paths.len(), cases.len());
        assert!(cases.iter().all(|case| !case.metrics.is_empty() && case.quick));
    }

    #[test]
    fn the_promised_cases_are_there() {
        let cases = all(&["nginx"]);
        let sizes: Vec<u64> = cases.iter().map(Case::size).collect();
        assert_eq!(sizes, [512, 4096, 1 << 20, 10 << 20]);
        assert_eq!((cases[0].connections, cases[0].title.as_str()), (64, "512 B, 64 connections"));
    }

    #[test]
    fn files_are_the_same_at_every_run() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        for case in all(&["nginx"]) {
            let read = folders.each_ref().map(|folder| {
                Workload::given(case.objects.clone()).make_files(folder.path()).unwrap();
                fs::read(folder.path().join(&case.objects[0].1.path[1..])).unwrap()
            });
            assert_eq!(read[0].len() as u64, case.size());
            assert!(read[0] == read[1], "{}", case.title);
        }
    }
}
