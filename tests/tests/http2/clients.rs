//! Ordinary clients: curl, nghttp, Python, Node, Go.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output, Stdio};

use afpa_testkit::curl::curl;
use afpa_testkit::{Running, Server, skip, tree::patterned};
use afpa_tests::proxy::{Raw, read_head};
use afpa_tests::tls::Authority;

use crate::{LARGE, server, site};

/// Runs a client; `None` if it is not installed.
fn run(program: &str, arguments: &[&str]) -> Option<Output> {
    match Command::new(program).args(arguments).output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => panic!("{program}: {error}"),
    }
}

#[test]
fn curl_gets_files_ranges_and_errors() {
    let tree = site();
    let server = server(&tree);
    let url = |target: &str| format!("{}{target}", server.url().trim_end_matches('/'));
    let curl = |arguments: &[&str]| {
        let known = ["--silent", "--http2-prior-knowledge", "--max-time", "20"];
        run("curl", &[&known, arguments].concat())
    };
    let Some(small) = curl(&["--include", &url("/hello.txt")]) else { skip!("no curl") };
    if String::from_utf8_lossy(&small.stderr).contains("does not support") {
        skip!("this curl has no HTTP/2");
    }
    let text = String::from_utf8_lossy(&small.stdout);
    assert!(text.starts_with("HTTP/2 200 \r\n") && text.ends_with("\r\n\r\nhello"), "{text}");
    let large = curl(&[&url("/large.bin")]).expect("curl").stdout;
    assert!(large == patterned(LARGE), "{} bytes", large.len());
    let range = curl(&["--range", "5-9", &url("/large.bin")]).expect("curl").stdout;
    assert_eq!(range, &patterned(LARGE)[5..10]);
    let status = ["--output", "/dev/null", "--write-out", "%{http_code} %{http_version}"];
    let asked = |arguments: &[&str]| {
        let output = curl(&[&status, arguments].concat()).expect("curl");
        String::from_utf8(output.stdout).expect("text")
    };
    assert_eq!(asked(&[&url("/none")]), "404 2");
    assert_eq!(asked(&["--head", &url("/large.bin")]), "200 2");
    assert_eq!(asked(&["--data", "content", &url("/hello.txt")]), "405 2");
    // The same port speaks HTTP/1.1 to everybody else.
    let old = run("curl", &["--silent", "--include", &url("/hello.txt")]).expect("curl");
    assert!(old.stdout.starts_with(b"HTTP/1.1 200 OK\r\n"));
}

/// curl of Debian 12 loses an answer behind which RST_STREAM(NO_ERROR) comes at once.
#[test]
fn curl_has_its_answer_before_it_has_sent_its_content() {
    let (tree, folder) = (site(), tempfile::tempdir().expect("a folder"));
    let (users, upload) = (folder.path().join("users"), folder.path().join("upload"));
    // Of `htpasswd -nbs`; nobody logs in.
    fs::write(&users, "ann:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=\n").expect("written");
    fs::write(&upload, vec![0; 3_000_000]).expect("written");
    for path in [folder.path(), &users] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("readable");
    }
    // It answers when it has the head, and closes.
    let early = Raw::start(|mut stream| {
        if let Some(head) = read_head(&mut stream) {
            let status = if head.contains("/missing") { 404 } else { 403 };
            let rest = "Content-Length: 2\r\nConnection: close\r\n\r\nno";
            let answer = format!("HTTP/1.1 {status} No\r\n{rest}");
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    let root = tree.path().display().to_string();
    // The same by TLS, and whatever arrives meanwhile is not read: the connection ends with a reset.
    const SEALED: &str = "
import socket, ssl, sys, threading
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
listener = socket.create_server(('127.0.0.1', 0))
print(listener.getsockname()[1], flush=True)
def serve(plain):
    try:
        # Else the answer may wait for an acknowledgement, and is lost with the reset.
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream = context.wrap_socket(plain, server_side=True)
        head = b''
        while b'\\r\\n\\r\\n' not in head:
            some = stream.recv(1)
            if not some:
                return
            head += some
        stream.sendall(b'HTTP/1.1 403 No\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\nno')
        stream.close()
    except OSError:
        pass
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
";
    let authority = Authority::new();
    let files = authority.issue("sealed", &["localhost"]);
    let mut python = Command::new("python3");
    python.args(["-c", SEALED]).args([&files.chain, &files.key]).stdout(Stdio::piped());
    let mut sealed = Running::start(&mut python);
    let port = BufReader::new(sealed.stdout().expect("its output")).lines().next();
    let port = port.expect("a port").expect("text");
    let server = Server::start("/", |launch| {
        launch.arg("--io").arg("readiness").written(|listen| {
            format!(
                "http2.cleartext = true\n[[server_group]]\nname = \"sealed\"\n\
                 servers = [\"127.0.0.1:{port}\"]\ntls = true\n[server_group.verify]\n\
                 authorities = \"{authorities}\"\nname = \"localhost\"\n[[site]]\nlisten = [\"{listen}\"]\nroot = \"{root}\"\n\
                 [[site.path]]\nprefix = \"/private/\"\nto = \"{to}\"\nbasic_auth = \"{users}\"\n\
                 [[site.path]]\nprefix = \"/small/\"\nto = \"{to}\"\nlargest_content = \"1KiB\"\n\
                 [[site.path]]\nprefix = \"/early/\"\nto = \"{to}\"\n\
                 [[site.path]]\nprefix = \"/sealed/\"\nto = \"sealed\"\n",
                authorities = authority.path().display(),
                to = early.to(),
                users = users.display(),
            )
        });
    });
    let form = "%{http_code} %{size_download}";
    for (target, status) in [
        ("hello.txt", "413"),
        ("early/missing", "404"),
        ("private/x", "401"),
        ("small/x", "413"),
        ("early/x", "403"),
        ("sealed/x", "403"),
    ] {
        for _ in 0..5 {
            let url = format!("{}/{target}", server.url().trim_end_matches('/'));
            let file = upload.to_string_lossy();
            let answer = curl(["--http2-prior-knowledge", "-o-", "-w", form, "-T", &file, &url]);
            let Some(answer) = answer else { skip!("no curl") };
            if answer.errors.contains("does not support") {
                skip!("this curl has no HTTP/2");
            }
            let text = String::from_utf8_lossy(&answer.output);
            let (_, end) =
                text.split_at(text.rfind(status).unwrap_or_else(|| panic!("{target}: {answer:?}")));
            assert!(answer.exit == 0 && !end.ends_with(" 0"), "{target}: {answer:?}");
        }
    }
    assert_eq!(server.get("/hello.txt").text(), "hello");
}

#[test]
fn nghttp_gets_many_at_a_time() {
    let tree = site();
    let server = server(&tree);
    let url = server.url();
    let target = |name: &str| format!("{}/{name}", url.trim_end_matches('/'));
    let mut arguments = vec!["--null-out".to_owned(), "--stat".to_owned()];
    let names = ["hello.txt", "none", "medium.bin", "large.bin", "index.html", "empty.txt"];
    arguments.extend((0..36).map(|at| target(names[at % names.len()])));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some(output) = run("nghttp", &arguments) else { skip!("no nghttp") };
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    // It asks for each URL once.
    for (name, status) in names.into_iter().zip([200, 404, 200, 200, 200, 200]) {
        let row = text.lines().find(|line| line.ends_with(&format!(" /{name}")));
        let row = row.unwrap_or_else(|| panic!("no row for {name} in {text}"));
        assert!(row.contains(&format!(" {status} ")), "{row}");
    }
}

#[test]
fn python_has_its_requests_answered() {
    const SCRIPT: &str = "
import sys
try:
    import h2, httpx
except ImportError as error:
    print('SKIP', error)
    sys.exit(0)
url = sys.argv[1]
with httpx.Client(http1=False, http2=True, base_url=url) as client:
    for _ in range(20):
        answer = client.get('/hello.txt')
        assert (answer.http_version, answer.status_code, answer.text) == ('HTTP/2', 200, 'hello')
    assert len(client.get('/large.bin').content) == 3000000
    tag = client.get('/hello.txt').headers['etag']
    assert client.get('/hello.txt', headers={'If-None-Match': tag}).status_code == 304
    assert client.post('/hello.txt', content=b'x' * 200000).status_code == 405
print('good')
";
    let tree = site();
    let server = server(&tree);
    let Some(output) = run("python3", &["-c", SCRIPT, &server.url()]) else { skip!("no Python") };
    let said = String::from_utf8_lossy(&output.stdout);
    if said.starts_with("SKIP") {
        skip!("Python: {}", said.trim());
    }
    assert_eq!(said.trim(), "good", "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn node_has_its_requests_answered() {
    const SCRIPT: &str = "
const http2 = require('http2');
const client = http2.connect(process.argv[1]);
client.on('error', (error) => { console.log(error); process.exit(1); });
let left = 60;
for (let at = 0; at < 60; at++) {
  const target = ['/hello.txt', '/medium.bin', '/large.bin'][at % 3];
  const length = [5, 100000, 3000000][at % 3];
  const request = client.request({ ':path': target });
  let status = 0, got = 0;
  request.on('response', (fields) => { status = fields[':status']; });
  request.on('data', (bytes) => { got += bytes.length; });
  request.on('end', () => {
    if (status !== 200 || got !== length) { console.log(target, status, got); process.exit(1); }
    left -= 1;
    if (left === 0) { console.log('good'); client.close(); }
  });
  request.end();
}
";
    let tree = site();
    let server = server(&tree);
    let Some(output) = run("node", &["-e", SCRIPT, &server.url()]) else { skip!("no Node") };
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.trim(), "good", "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn go_has_its_requests_answered() {
    const PROGRAM: &str = "
package main

import (
\t\"fmt\"
\t\"io\"
\t\"net/http\"
\t\"os\"
\t\"sync\"
)

func main() {
\tvar protocols http.Protocols
\tprotocols.SetUnencryptedHTTP2(true)
\tclient := &http.Client{Transport: &http.Transport{Protocols: &protocols}}
\tvar all sync.WaitGroup
\tfor at := 0; at < 40; at++ {
\t\tall.Add(1)
\t\tgo func(name string, length int) {
\t\t\tdefer all.Done()
\t\t\tanswer, err := client.Get(os.Args[1] + name)
\t\t\tif err != nil {
\t\t\t\tfmt.Println(err)
\t\t\t\tos.Exit(1)
\t\t\t}
\t\t\tcontent, err := io.ReadAll(answer.Body)
\t\t\tif err != nil || answer.ProtoMajor != 2 || len(content) != length {
\t\t\t\tfmt.Println(err, answer.Proto, len(content))
\t\t\t\tos.Exit(1)
\t\t\t}
\t\t}([]string{\"hello.txt\", \"large.bin\"}[at%2], []int{5, 3000000}[at%2])
\t}
\tall.Wait()
\tfmt.Println(\"good\")
}
";
    let tree = site();
    let server = server(&tree);
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("main.go");
    fs::write(&source, PROGRAM).expect("written");
    let url = format!("{}/", server.url().trim_end_matches('/'));
    let path = source.to_string_lossy();
    // `Protocols` came with Go 1.24.
    let version = run("go", &["version"]).map(|output| output.stdout);
    let version = String::from_utf8(version.unwrap_or_default()).expect("text");
    let minor = version.split("go1.").nth(1).and_then(|rest| rest.split('.').next());
    let minor = minor.and_then(|digits| digits.trim().split(' ').next()?.parse().ok());
    if minor.unwrap_or(0) < 24 {
        skip!("no Go of 1.24 or later");
    }
    let output = run("go", &["run", &path, &url]).expect("go");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.trim(), "good", "{}", String::from_utf8_lossy(&output.stderr));
}

/// A client that makes the table of its decoder smaller and larger again, which nghttp2 watches (RFC 7541 section 4.2).
#[test]
fn node_makes_its_table_of_fields_smaller_and_larger() {
    const SCRIPT: &str = "
const http2 = require('http2');
const client = http2.connect(process.argv[1], { settings: { headerTableSize: 100 } });
const fail = (error) => { console.log(error); process.exit(1); };
client.on('error', fail);
const ask = () => new Promise((done) => {
  const request = client.request({ ':path': '/hello.txt', 'user-agent': 'node' });
  request.on('error', fail);
  request.on('response', (fields) => {
    if (fields[':status'] !== 200 || !fields.etag) { fail(fields); }
  });
  request.resume().on('end', done);
  request.end();
});
const settle = (headerTableSize) =>
  new Promise((done) => client.settings({ headerTableSize }, (error) => error ? fail(error) : done()));
(async () => {
  for (const size of [0, 4096, 32, 65536, 0]) {
    await ask();
    await settle(size);
    await ask();
  }
  console.log('good');
  client.close();
})();
";
    let tree = site();
    let server = server(&tree);
    let Some(output) = run("node", &["-e", SCRIPT, &server.url()]) else { skip!("no Node") };
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.trim(), "good", "{}", String::from_utf8_lossy(&output.stderr));
}
