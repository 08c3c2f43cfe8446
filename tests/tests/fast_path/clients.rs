//! Clients that others wrote, with a server whose kernel answers. The answers that they get are right, and some came
//! from the kernel.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use afpa_testkit::tree::patterned;
use afpa_testkit::{Tree, eventually, skip};
use afpa_tests::browser::shown;
use serde_json::Value;

use crate::lab::{Lab, answers, warm};

/// Requests of a load, over within a second or two: on each of 8 connections so many that 4 addresses
/// come equally often.
const REQUESTS: u64 = 8 * 4 * 50;
const PAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../site/pages");

fn site() -> Tree {
    let tree = Tree::new();
    tree.file("hello.txt", patterned(600));
    tree.file("empty.txt", "");
    tree.file("large.bin", patterned(300_000));
    tree
}

/// Runs a tool for two minutes at most. `None`: this machine does not have it.
fn run(tool: &str, arguments: &[&str]) -> Option<Output> {
    let found = Command::new("sh").args(["-c", &format!("command -v {tool}")]).output();
    found.is_ok_and(|found| found.status.success()).then(|| {
        let mut command = Command::new("timeout");
        command.args(["120", tool]).args(arguments).output().expect("timeout of coreutils")
    })
}

/// The tool's output; a tool that failed fails the test.
#[track_caller]
fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {text}\n{errors}", output.status);
    text
}

/// The number behind `label`.
#[track_caller]
fn number(text: &str, label: &str) -> u64 {
    let rest = text.split_once(label).unwrap_or_else(|| panic!("no {label:?} in {text}")).1;
    let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("no number behind {label:?} in {text}"))
}

#[test]
fn curl_gets_the_same_as_from_disk() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let server = lab.server(&tree, |_| ());
    for target in ["/hello.txt", "/empty.txt"] {
        warm(&server, target);
    }
    let (url, before) = (server.url(), answers(&server));
    let out = tempfile::tempdir().expect("a folder");
    // One connection: small, large, small, empty; the kernel and user mode by turns.
    let files = ["hello.txt", "large.bin", "hello.txt", "empty.txt", "large.bin", "hello.txt"];
    let mut arguments = vec!["--silent".to_owned(), "--show-error".into(), "--fail".into()];
    for (number, file) in files.iter().enumerate() {
        let to = out.path().join(number.to_string()).display().to_string();
        arguments.extend([format!("{url}/{file}"), "--output".into(), to]);
    }
    arguments.extend(["--write-out".into(), "%{http_code} %{num_connects}\n".into()]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some(output) = run("curl", &arguments) else { skip!("curl is not installed") };
    let text = said(&output);
    let expected = ["200 1", "200 0", "200 0", "200 0", "200 0", "200 0"];
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    for (number, file) in files.iter().enumerate() {
        let got = fs::read(out.path().join(number.to_string())).unwrap_or_default();
        let kept = fs::read(tree.at(file)).expect("the file");
        assert!(got == kept, "{file} came as {} bytes of {}", got.len(), kept.len());
    }
    assert_eq!(answers(&server), before + 4);
}

/// apt asks for `+` as `%2b` and for `~` as `%7e`.
#[test]
fn apt_gets_a_package_whose_name_it_escapes() {
    const NAME: &str = "libx++_1.0~rc1+b2_all.deb";
    let Some(lab) = Lab::new() else { return };
    let (tree, own) = (site(), tempfile::tempdir().expect("a folder"));
    tree.file(NAME, patterned(700));
    let file = tree.at(NAME).display().to_string();
    let Some(sum) = run("sha256sum", &[&file]) else { skip!("sha256sum is not installed") };
    let sum = said(&sum);
    let sum = sum.split_whitespace().next().expect("a sum");
    tree.file(
        "Packages",
        format!(
            "Package: libx++\nVersion: 1.0~rc1+b2\nArchitecture: all\nMaintainer: A <a@example.org>\n\
             Description: a sample\nFilename: {NAME}\nSize: 700\nSHA256: {sum}\n\n"
        ),
    );
    let server = lab.server(&tree, |_| ());
    warm(&server, &format!("/{NAME}"));
    let at = |name: &str| own.path().join(name).display().to_string();
    for folder in ["lists/lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(at(folder)).expect("a folder");
    }
    fs::write(at("sources"), format!("deb [trusted=yes] {} /\n", server.url())).expect("written");
    let apt = |command: &[&str]| {
        let options = [
            format!("Dir::Etc::sourcelist={}", at("sources")),
            "Dir::Etc::sourceparts=-".to_owned(),
            format!("Dir::State={}", at("lists")),
            format!("Dir::Cache={}", at("cache")),
            "APT::Sandbox::User=root".to_owned(),
            "Acquire::AllowInsecureRepositories=true".to_owned(),
            "Acquire::Languages=none".to_owned(),
        ];
        let folder = format!("--chdir={}", own.path().display());
        let mut arguments = vec![folder.as_str(), "apt-get"];
        arguments.extend(options.iter().flat_map(|option| ["-o", option]));
        arguments.extend(command);
        run("env", &arguments)
    };
    let installed = run("apt-get", &["--version"]).is_some_and(|output| output.status.success());
    if !installed {
        skip!("apt is not installed");
    }
    said(&apt(&["update"]).expect("env of coreutils"));
    let before = answers(&server);
    said(&apt(&["download", "libx++"]).expect("env of coreutils"));
    assert_eq!(fs::read(at(NAME)).expect("the package"), patterned(700));
    assert_eq!(answers(&server), before + 1);
}

#[test]
fn curl_keeps_its_copy_when_nothing_has_changed() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let server = lab.server(&tree, |_| ());
    warm(&server, "/hello.txt");
    let (url, out) =
        (format!("{}/hello.txt", server.url()), tempfile::tempdir().expect("a folder"));
    let (tag, copy) = (out.path().join("tag"), out.path().join("copy"));
    let (tag, copy) = (tag.display().to_string(), copy.display().to_string());
    let ask = |kind: &str| {
        let compare = [kind, &tag, "--output", &copy, "--write-out", "%{http_code}", &url];
        run("curl", &[&["--silent", "--fail"], &compare[..]].concat())
    };
    let Some(first) = ask("--etag-save") else { skip!("curl is not installed") };
    assert_eq!(said(&first), "200");
    let before = answers(&server);
    assert_eq!(said(&ask("--etag-compare").expect("curl")), "304");
    assert_eq!(answers(&server), before + 1, "the kernel says that it has not changed");
    tree.replace("hello.txt", "new");
    eventually("curl gets the new version", || {
        said(&ask("--etag-compare").expect("curl")) == "200"
    });
    assert_eq!(fs::read(&copy).expect("the copy"), b"new");
}

#[test]
fn wrk_meets_no_error() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let server = lab.server(&tree, |_| ());
    warm(&server, "/hello.txt");
    let before = answers(&server);
    let url = format!("{}/hello.txt", server.url());
    let words = ["--threads", "1", "--connections", "16", "--duration", "1s", &url];
    let Some(output) = run("wrk", &words) else { skip!("wrk is not installed") };
    let text = said(&output);
    assert!(!text.contains("Non-2xx") && !text.contains("Socket errors"), "{text}");
    let (line, _) = text.split_once(" requests in").expect("a summary");
    let requests: u64 = line.rsplit(char::is_whitespace).next().unwrap_or("").parse().expect(&text);
    let from_kernel = answers(&server) - before;
    // Requests that were under way when wrk ended are answered and not counted.
    assert!(requests > 100 && from_kernel * 10 > requests * 9, "{from_kernel} of {requests}");
}

/// ab speaks HTTP/1.0 and asks to keep connections: the kernel has answers for that once somebody has asked so.
#[test]
fn ab_meets_no_error() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let server = lab.server(&tree, |_| ());
    warm(&server, "/hello.txt");
    let url = format!("{}/hello.txt", server.url());
    let mut client = server.connect();
    eventually("the kernel has answers to HTTP/1.0 that keeps its connection", || {
        let before = answers(&server);
        client.exchange("GET /hello.txt HTTP/1.0\r\nHost: h\r\nConnection: Keep-Alive\r\n\r\n");
        answers(&server) > before
    });
    for keep in [&["-k"][..], &[]] {
        let before = answers(&server);
        let words = [keep, &["-n", "1000", "-c", "8", &url]].concat();
        let Some(output) = run("ab", &words) else { skip!("ab (apache2-utils) is not installed") };
        let text = said(&output);
        assert_eq!(number(&text, "Complete requests:"), 1000, "{text}");
        assert_eq!(number(&text, "Failed requests:"), 0, "{text}");
        assert_eq!(number(&text, "HTML transferred:"), 600_000, "{text}");
        assert!(!text.contains("Non-2xx"), "{text}");
        let from_kernel = answers(&server) - before;
        // Connections of known clients have no socket that would have to be closed.
        assert!(from_kernel > 900, "{keep:?}: {from_kernel} of 1000");
    }
}

#[test]
fn h2load_gets_every_response_whole() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let server = lab.server(&tree, |_| ());
    warm(&server, "/hello.txt");
    let (before, url) = (answers(&server), server.url());
    let (small, large) = (format!("{url}/hello.txt"), format!("{url}/large.bin"));
    let requests = REQUESTS.to_string();
    let words = ["--h1", "-n", &requests, "-c", "8", "-m", "1", &small, &small, &small, &large];
    let Some(output) = run("h2load", &words) else {
        skip!("h2load (nghttp2-client) is not installed")
    };
    let text = said(&output);
    for all in
        [format!("{REQUESTS} succeeded, 0 failed, 0 errored, 0 timeout"), format!("{REQUESTS} 2xx")]
    {
        assert!(text.contains(&all), "{text}");
    }
    // Three of four are small. Each connection goes back to the kernel after a large one.
    let (_, data) = text.rsplit_once("traffic:").expect("a summary");
    let bytes =
        number(data.rsplit_once("data").expect("data").0.rsplit_once('(').expect("bytes").1, "");
    assert_eq!(bytes, REQUESTS / 4 * (3 * 600 + 300_000), "{text}");
    let from_kernel = answers(&server) - before;
    assert!(from_kernel > REQUESTS / 4, "the kernel answered {from_kernel} of {REQUESTS}");
}

/// http.client on one connection: pages that are there, that are not, a POST, and so on by turns.
#[test]
fn python_takes_turns_on_one_connection() {
    const SCRIPT: &str = r#"
import hashlib, http.client, sys
host, port, small, large = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
connection = http.client.HTTPConnection(host, port, timeout=10)
connection.connect()
socket = connection.sock
def ask(method, path, status, digest=None, **more):
    connection.request(method, path, **more)
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == status, (method, path, answer.status)
    assert digest is None or hashlib.sha256(body).hexdigest() == digest, (method, path, len(body))
    assert connection.sock is socket, "a new connection"
    return answer
for turn in range(50):
    tag = ask("GET", "/hello.txt", 200, small).headers["ETag"]
    ask("HEAD", "/hello.txt", 200)
    ask("GET", "/hello.txt", 304, headers={"If-None-Match": tag})
    ask("GET", "/large.bin", 200, large)
    ask("GET", "/hello.txt", 200, small, headers={"Cookie": "turn=%d" % turn})
    ask("GET", "/none", 404)
    ask("GET", "/hello.txt", 206, headers={"Range": "bytes=0-9"})
"#;
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let server = lab.server(&tree, |_| ());
    warm(&server, "/hello.txt");
    let before = answers(&server);
    let digest = |file: &str| {
        let told = Command::new("sha256sum").arg(tree.at(file)).output().expect("sha256sum");
        said(&told).split(' ').next().unwrap_or_default().to_owned()
    };
    let address = server.address();
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    let words = ["-c", SCRIPT, &host, &port, &digest("hello.txt"), &digest("large.bin")];
    let Some(output) = run("python3", &words) else { skip!("python3 is not installed") };
    said(&output);
    let from_kernel = answers(&server) - before;
    assert!(from_kernel >= 50, "the kernel answered {from_kernel} of 200 that it could");
}

/// A browser loads pages of the sample site with all their parts, and nothing fails.
#[test]
fn a_browser_shows_the_sample_site() {
    let Some(lab) = Lab::new() else { return };
    let tree = Tree::new();
    let parts = copy_site(&tree);
    let server = lab.server(&tree, |launch| {
        let log = launch.home().join("access.log");
        launch.arg("--access-log").arg(log).arg("--log-format").arg("json");
    });
    let log = server.home().join("access.log");
    let mut from_kernel = 0;
    // The first visit fills the cache; the second is by somebody else.
    for visit in 1..=2 {
        for page in ["/", "/gallery.html"] {
            let begun = entries(&log).len();
            let dom = match shown(&format!("{}{page}", server.url())) {
                Ok(dom) => dom,
                Err(why) => skip!("{why}"),
            };
            assert!(dom.contains("</html>") && dom.contains("AFPA"), "visit {visit}: {dom}");
            let wanted: Vec<&str> = parts[page].iter().map(String::as_str).collect();
            let seen = || entries(&log).split_off(begun);
            eventually("all parts are asked for", || {
                let seen = seen();
                wanted.iter().all(|part| seen.iter().any(|entry| entry["target"] == *part))
            });
            for entry in seen() {
                assert!([200, 304].map(Value::from).contains(&entry["status"]), "{entry}");
            }
            from_kernel += seen().iter().filter(|entry| entry["source"] == "kernel").count();
        }
    }
    assert!(from_kernel > 0, "the kernel answered nothing of {:?}", entries(&log));
}

/// Copies the pages. Returns the parts of two of them.
fn copy_site(tree: &Tree) -> BTreeMap<&'static str, Vec<String>> {
    for folder in ["", "pictures"] {
        for entry in fs::read_dir(Path::new(PAGES).join(folder)).expect("the pages") {
            let path = entry.expect("an entry").path();
            if path.is_file() {
                let name = Path::new(folder).join(path.file_name().expect("a name"));
                tree.file(name, fs::read(&path).expect("read"));
            }
        }
    }
    let parts = |page: &str| {
        let text = fs::read_to_string(tree.at(page)).expect("a page");
        let sources = text.split("src=\"").skip(1).filter_map(|rest| rest.split('"').next());
        let mut parts: Vec<String> = sources.map(|source| format!("/{source}")).collect();
        parts.push("/style.css".into());
        assert!(parts.len() > 1 && text.contains("href=\"style.css\""), "{page}: {parts:?}");
        parts
    };
    BTreeMap::from([("/", parts("index.html")), ("/gallery.html", parts("gallery.html"))])
}

/// The whole lines of the access log so far.
fn entries(log: &Path) -> Vec<Value> {
    let text = fs::read_to_string(log).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}
