//! A newcomer: does every job of the index *I want to ...* by the examples of its page, in folders of its own, before
//! servers as Debian has them, and looks at the answers.

mod apps;
mod browsers;
mod files;
mod guards;
mod operator;
mod place;
mod servers;
mod tls;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The pages of the index with examples, and the case of each.
const CASES: &[(&str, fn())] = &[
    ("../README.md", files::the_readme),
    ("access-log.md", operator::the_access_log),
    ("access.md", guards::access),
    ("adapt.md", operator::a_move_from_nginx),
    ("basic-auth.md", guards::names_and_passwords),
    ("certificates.md", tls::certificates_that_come_by_themselves),
    ("compression.md", servers::compression),
    ("conditions.md", servers::conditions),
    ("errors.md", files::error_pages),
    ("fallback.md", files::fallbacks),
    ("forward-auth.md", guards::a_server_that_says_who_may),
    ("headers.md", files::fields_and_cors),
    ("http2.md", tls::http2),
    ("https.md", tls::https),
    ("limits.md", servers::limits),
    ("monitoring.md", operator::monitoring),
    ("operations.md", operator::operations),
    ("php-details.md", servers::php_details),
    ("php-nextcloud.md", servers::nextcloud),
    ("php.md", servers::php),
    ("rewrites.md", servers::rewrites),
    ("router.md", servers::the_router),
    ("several-files.md", operator::several_files),
    ("shared-cache.md", servers::the_shared_cache),
    ("tracing.md", operator::ids_and_traces),
    ("upgrade.md", operator::an_upgrade),
];

/// Pages of the index whose examples have tests of their own, or that have none; and where those are.
const ELSEWHERE: &[(&str, &str)] = &[
    ("adapt-details.md", "tests/tests/program/adapt"),
    ("afpa.example.toml", "crates/afpa-config: it sets everything to its default"),
    ("attach-dns.md", "tests/tests/attach/dns.rs, before NSD"),
    ("attach.md", "tests/tests/attach, in namespaces of their own"),
    ("balancers.md", "tests/tests/wiring/balancers.rs, in namespaces of their own"),
    ("compare/README.md", "comparisons, with figures of docs/figures.md"),
    ("configuration.md", "crates/afpa-config: each example is a configuration"),
    ("crawlers.md", "tests/tests/proxy/rates.rs"),
    ("decisions/README.md", "reasons"),
    ("dns.md", "tests/tests/dns, with real clients and an authority"),
    ("explain.md", "crates/afpa/src/commands/explain.rs"),
    ("figures.md", "figures"),
    ("fleet-details.md", "tests/tests/fleet, with servers of NATS"),
    ("fleet.md", "tests/tests/fleet, with servers of NATS"),
    ("forward-auth-details.md", "tests/tests/proxy/forward_auth.rs"),
    ("glossary.md", "words"),
    ("http3.md", "tests/tests/http3, with quic-go and Chromium"),
    ("install.md", "packaging/check and packaging/test-install"),
    ("kubernetes.md", "packaging/kubernetes/check"),
    ("mirroring.md", "tests/tests/proxy/mirror.rs"),
    ("rules/README.md", "rules, each with its tests"),
    ("scenarios/README.md", "tests/tests/proxy/deployment.rs"),
    ("spans.md", "tests/tests/proxy/spans.rs, with a collector of OpenTelemetry"),
    ("what-is-bypassed.md", "tests/tests/attach"),
];

#[test]
fn each_page_of_the_index_has_its_case() {
    let index = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/README.md");
    let index = fs::read_to_string(index).expect("the index");
    let rows = index.lines().filter(|line| line.starts_with("| ")).collect::<String>();
    let links = rows.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    let pages: BTreeSet<&str> = links.collect();
    let cases = CASES.iter().map(|(page, _)| *page);
    let known: BTreeSet<&str> = cases.chain(ELSEWHERE.iter().map(|(page, _)| *page)).collect();
    let without: Vec<_> = pages.difference(&known).collect();
    assert!(without.is_empty(), "write a case for {without:?} in tests/tests/program/newcomer");
    let gone: Vec<_> = known.difference(&pages).collect();
    assert!(gone.is_empty(), "{gone:?} left the index");
    assert!(pages.len() > 30, "only {} pages were found", pages.len());
}
