//! The metrics in both formats, for the parsers that others have.

use std::{
    collections::BTreeMap,
    io::Write,
    path::PathBuf,
    process::{Command, Stdio},
};

use afpa_testkit::{Client, Response, Server, Tree, skip};
use afpa_tests::monitoring;
use afpa_tests::proxy::Raw;

const OPENMETRICS: &str = "application/openmetrics-text";

/// A server with a root and a group, both of which have answered.
fn busy() -> (Tree, Raw, Server) {
    let tree = Tree::new();
    tree.file("hello.txt", "hello");
    let app = Raw::named("app");
    let server = Server::start("/", |launch| {
        let (root, to) = (tree.path(), app.to());
        launch.written(|listen| {
            format!(
                "[[site]]\nname = \"front\"\nlisten = [\"{listen}\"]\nroot = {root:?}\n\
                 [[site.path]]\nprefix = \"/app/\"\nto = {to:?}\n"
            )
        });
        launch.admin();
    });
    let mut client = server.connect();
    for target in ["/hello.txt", "/hello.txt", "/none", "/app/x"] {
        client.get(target);
    }
    (tree, app, server)
}

fn metrics(server: &Server, accept: Option<&str>) -> Response {
    let accept = accept.map(|accept| format!("Accept: {accept}\r\n")).unwrap_or_default();
    let request = format!("GET /metrics HTTP/1.1\r\nHost: h\r\n{accept}\r\n");
    Client::connect(&server.admin()).expect("connect").exchange(&request)
}

fn content_type(response: &Response) -> &str {
    response.field("Content-Type").expect("a type")
}

#[test]
fn a_client_gets_the_format_that_it_asks_for() {
    let (_tree, _app, server) = busy();
    for accept in
        [None, Some("text/plain"), Some("*/*"), Some("application/openmetrics-text;q=0.1, */*")]
    {
        let response = metrics(&server, accept);
        assert_eq!(
            content_type(&response),
            "text/plain; version=0.0.4; charset=utf-8",
            "{accept:?}"
        );
        assert!(!response.text().contains("# EOF") && !response.text().contains("# UNIT"));
    }
    let of_prometheus =
        "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
    for accept in [OPENMETRICS, of_prometheus] {
        let response = metrics(&server, Some(accept));
        let expected = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        assert_eq!(content_type(&response), expected, "{accept}");
        assert!(response.text().ends_with("\n# EOF\n"));
    }
}

/// The demands of `promtool check metrics`, as far as they concern us.
#[test]
fn every_family_has_help_a_type_and_a_name_that_fits_it() {
    let (_tree, _app, server) = busy();
    let response = metrics(&server, None);
    let (mut help, mut types) = (BTreeMap::new(), BTreeMap::new());
    for line in response.text().lines() {
        if let Some((name, text)) = line.strip_prefix("# HELP ").and_then(|l| l.split_once(' ')) {
            assert!(help.insert(name, text).is_none(), "{name} is explained twice");
            assert!(!text.trim().is_empty(), "{name}");
        } else if let Some((name, kind)) =
            line.strip_prefix("# TYPE ").and_then(|l| l.split_once(' '))
        {
            assert!(help.contains_key(name), "{name} is not explained before its type");
            assert!(types.insert(name, kind).is_none(), "{name} is typed twice");
            assert_eq!(name.ends_with("_total"), kind == "counter", "{name} is a {kind}");
            let parts: Vec<_> = name.split('_').collect();
            for unit in ["ms", "us", "ns", "sec", "s", "kb", "mb", "milliseconds", "kilobytes"] {
                assert!(!parts.contains(&unit), "{name} is in {unit}");
            }
            for end in ["_count", "_sum", "_bucket"] {
                assert!(!name.ends_with(end), "{name}");
            }
        } else {
            let name = line.split(['{', ' ']).next().expect("a name");
            let of_histogram = ["_bucket", "_sum", "_count"]
                .iter()
                .filter_map(|end| name.strip_suffix(end))
                .find(|family| types.get(family) == Some(&"histogram"));
            let family = of_histogram.unwrap_or(name);
            assert!(types.contains_key(family), "no type: {line}");
        }
    }
    assert!(types.len() > 60, "{}", types.len());
}

#[test]
fn the_last_bucket_of_every_histogram_holds_all() {
    let (_tree, _app, server) = busy();
    for accept in [None, Some(OPENMETRICS)] {
        let response = metrics(&server, accept);
        let mut buckets: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
        let mut counts = BTreeMap::new();
        for line in response.text().lines().filter(|line| !line.starts_with('#')) {
            let (key, value) = line.rsplit_once(' ').expect("a value");
            let value: f64 = value.parse().expect("a number");
            if let Some((family, labels)) = key.split_once("_bucket{") {
                let (bound, labels) = labels
                    .trim_end_matches('}')
                    .strip_prefix("le=\"")
                    .and_then(|rest| rest.split_once('"'))
                    .unwrap_or_else(|| panic!("no bound: {line}"));
                let bound =
                    if bound == "+Inf" { f64::INFINITY } else { bound.parse().expect("a bound") };
                let of = format!("{family} {}", labels.trim_start_matches(','));
                buckets.entry(of).or_default().push((bound, value));
            } else if let Some((family, labels)) = key.split_once("_count{") {
                counts.insert(format!("{family} {}", labels.trim_end_matches('}')), value);
            }
        }
        assert!(buckets.len() >= 2, "{buckets:?}");
        for (of, buckets) in &buckets {
            assert!(buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{of}: {buckets:?}");
            let last = *buckets.last().expect("a bucket");
            assert_eq!(last, (f64::INFINITY, counts[of]), "{of}");
            assert!(
                buckets
                    .iter()
                    .filter(|(bound, _)| *bound < f64::INFINITY)
                    .all(|(bound, _)| *bound < 1e6)
            );
        }
    }
}

/// Python's `prometheus_client` has the parser that the specification of OpenMetrics names as its reference.
#[test]
fn the_reference_parsers_take_both_formats() {
    const PARSE: &str = "
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus
text = sys.stdin.read()
families = list((openmetrics if sys.argv[1] == 'openmetrics' else prometheus)(text))
assert len(families) > 60, len(families)
for family in families:
    assert family.documentation, family.name
    assert family.type != 'unknown', family.name
";
    let python = match python_with_prometheus_client() {
        Ok(python) => python,
        Err(why) => skip!("no Python with prometheus_client: {why}"),
    };
    let (_tree, _app, server) = busy();
    for (accept, parser) in [(None, "prometheus"), (Some(OPENMETRICS), "openmetrics")] {
        let page = metrics(&server, accept);
        let mut child = Command::new(&python)
            .args(["-c", PARSE, parser])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("python");
        child.stdin.take().expect("a pipe").write_all(page.text().as_bytes()).expect("write");
        let output = child.wait_with_output().expect("wait");
        assert!(output.status.success(), "{parser}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// In a virtual environment, which is kept between runs.
fn python_with_prometheus_client() -> Result<PathBuf, String> {
    const WANTED: &str = "prometheus_client==0.22.1";
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("prometheus-client");
    let python = folder.join("bin/python");
    let run = |program: &std::path::Path, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
        match output {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Err(error.to_string()),
        }
    };
    if run(&python, &["-c", "import prometheus_client"]).is_err() {
        run("python3".as_ref(), &["-m", "venv", &folder.display().to_string()])?;
        run(&python, &["-m", "pip", "install", "--quiet", "--disable-pip-version-check", WANTED])?;
    }
    Ok(python)
}

/// Those of the fast path, of certificates and of a fleet are looked for where there is one.
#[test]
fn dashboard_and_alerts_ask_for_metrics_that_there_are() {
    let (_tree, _app, server) = busy();
    let page = metrics(&server, None);
    let names = monitoring::names();
    let others = |name: &&String| {
        !["afpa_fast_path_", "afpa_certificate_", "afpa_fleet_"]
            .iter()
            .any(|other| name.starts_with(other))
    };
    let absent = monitoring::absent_from(page.text(), names.iter().filter(others));
    assert!(absent.is_empty(), "{absent:?}");
    let dashboard = std::fs::read_to_string(monitoring::folder().join("grafana.json")).expect("it");
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).expect("JSON");
    assert!(dashboard["panels"].as_array().expect("panels").len() > 10);
}

#[test]
fn promtool_takes_the_alerts_and_their_tests_pass() {
    for (kind, file) in [("check", "afpa-alerts.yml"), ("test", "afpa-alerts-test.yml")] {
        let mut promtool = Command::new("promtool");
        promtool.args([kind, "rules", file]).current_dir(monitoring::folder());
        let Ok(output) = promtool.output() else {
            skip!("promtool is not there: install prometheus");
        };
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
    }
}
