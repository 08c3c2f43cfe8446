//! Clients of several makers.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use afpa_testkit::{eventually, skip, tree::patterned};
use afpa_tests::tls::{Authority, Plan, TlsServer};

use crate::site;

#[test]
fn curl_gets_every_length_by_both_versions() {
    let (tree, authority) = (site(), Authority::new());
    let server = TlsServer::start(&authority, tree.path());
    for version in ["--tls-max=1.2", "--tlsv1.3"] {
        let version: Vec<&str> = version.split('=').collect();
        for (path, content) in [
            ("/hello.txt", b"hello".to_vec()),
            ("/medium.bin", patterned(200_000)),
            ("/large.bin", patterned(10_000_000)),
        ] {
            let url = server.url(path);
            let arguments = [&version[..], &[&url]].concat();
            let (content_with, got) = server.curl(&authority, &arguments);
            assert!(content_with && got == content, "{version:?} {path}: {} bytes", got.len());
        }
    }
}

#[test]
fn openssl_says_what_was_agreed_and_resumes() {
    let (tree, authority) = (site(), Authority::new());
    let server = TlsServer::start(&authority, tree.path());
    let request = "GET /hello.txt HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    for version in ["-tls1_2", "-tls1_3"] {
        let session = authority.folder().join(version);
        let session = session.to_str().expect("a path");
        let first = ["-ign_eof", version, "-alpn", "h9,http/1.1", "-sess_out", session];
        let said = server.openssl(&authority, &first, request);
        assert!(said.contains("ALPN protocol: http/1.1"), "{said}");
        assert!(said.contains("Verify return code: 0 (ok)") && said.contains("hello"), "{said}");
        assert!(said.contains("New, TLSv1."), "{said}");
        let again = ["-ign_eof", version, "-sess_in", session];
        let said = server.openssl(&authority, &again, request);
        assert!(said.contains("Reused, TLSv1.") && said.contains("hello"), "{said}");
    }
    assert_eq!(server.number("/tls/resumed"), 2);
}

#[test]
fn every_cipher_suite_of_version_13_carries_files_of_every_length() {
    let (tree, authority) = (site(), Authority::new());
    let server = TlsServer::start(&authority, tree.path());
    for suite in
        ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"]
    {
        let url = server.url("");
        let files = [("hello.txt", b"hello".to_vec()), ("large.bin", patterned(10_000_000))];
        for (name, content) in files {
            let (path, protocol) = (format!("{url}/{name}"), ["--http1.1", "--http2"]);
            for protocol in protocol {
                let arguments = [protocol, "--tls13-ciphers", suite, &path];
                let (whole, got) = server.curl(&authority, &arguments);
                assert!(whole && got == content, "{suite} {name} {protocol}: {}", got.len());
            }
        }
    }
    for suite in ["AES_128_GCM_SHA256", "AES_256_GCM_SHA384", "CHACHA20_POLY1305_SHA256"] {
        assert_eq!(server.number(&format!("/tls/ciphers/TLS13_{suite}")), 4, "{suite}");
    }
}

#[test]
fn versions_before_1_2_are_refused() {
    let (tree, authority) = (site(), Authority::new());
    let server = TlsServer::start(&authority, tree.path());
    let old = ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"];
    let said = server.openssl(&authority, &old, "");
    assert!(said.contains(" alert ") && said.contains("Cipher is (NONE)"), "{said}");
}

#[test]
fn python_and_node_get_what_they_ask_for() {
    let (tree, authority) = (site(), Authority::new());
    let server = TlsServer::start(&authority, tree.path());
    let (ip, port) = (server.tls.ip(), server.tls.port());
    let ca = authority.path();
    let python = format!(
        "import ssl, http.client, socket\n\
         context = ssl.create_default_context(cafile='{}')\n\
         c = http.client.HTTPSConnection('localhost', {port}, context=context, timeout=20)\n\
         c.sock = context.wrap_socket(socket.create_connection(('{ip}', {port})), server_hostname='localhost')\n\
         for _ in range(3):\n  c.request('GET', '/large.bin'); r = c.getresponse(); print(r.status, len(r.read()))\n\
         c.request('GET', '/hello.txt', headers={{'Connection': 'close'}}); print(c.getresponse().read().decode())\n\
         print(repr(c.sock.recv(1)) if c.sock else 'closed')",
        ca.display()
    );
    let node = format!(
        "require('https').get({{host: '{ip}', port: {port}, servername: 'localhost', path: '/large.bin',\
         ca: require('fs').readFileSync('{}')}}, r => {{ let n = 0;\
         r.on('data', d => n += d.length); r.on('end', () => console.log(r.statusCode, n)) }})",
        ca.display()
    );
    for (program, argument, script, expected) in [
        ("python3", "-c", python, "200 10000000\n200 10000000\n200 10000000\nhello\nclosed\n"),
        ("node", "-e", node, "200 10000000\n"),
    ] {
        match Command::new(program).args([argument, &script]).output() {
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stdout);
                let errors = String::from_utf8_lossy(&output.stderr);
                assert_eq!(said, expected, "{program}: {errors}");
            }
            Err(error) => skip!("{program}: {error}"),
        }
    }
}

#[test]
fn gnutls_gets_what_it_asks_for() {
    let (tree, authority) = (site(), Authority::new());
    let server = TlsServer::start(&authority, tree.path());
    let script = format!(
        "printf 'GET /hello.txt HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' | \
         timeout 20 gnutls-cli --x509cafile {} --verify-hostname localhost -p {} {}",
        authority.path().display(),
        server.tls.port(),
        server.tls.ip()
    );
    if Command::new("gnutls-cli").arg("--version").output().is_err() {
        skip!("there is no gnutls-cli");
    }
    let output = Command::new("sh").args(["-c", &script]).output().expect("a shell");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("hello"), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn secrets_are_written_only_where_a_setting_says_so_and_as_the_client_has_them() {
    let (tree, authority) = (site(), Authority::new());
    let (mine, theirs) = (authority.folder().join("mine"), authority.folder().join("theirs"));
    let sections = format!("[tls]\nkey_log = \"{}\"\n", theirs.display());
    let plan = Plan { sections, ..Plan::default() };
    let server = TlsServer::with(&authority, tree.path(), plan);
    assert!(server.server.log().contains("the secrets of connections are written down"));
    for version in ["-tls1_2", "-tls1_3"] {
        let log = mine.to_str().expect("a path");
        server.openssl(&authority, &[version, "-keylogfile", log], "");
    }
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let known = read(&mine);
    for label in ["CLIENT_RANDOM ", "CLIENT_TRAFFIC_SECRET_0 ", "SERVER_HANDSHAKE_TRAFFIC_SECRET "]
    {
        let line = known.lines().find(|line| line.starts_with(label));
        let line = line.unwrap_or_else(|| panic!("{label}: {known}"));
        eventually("both sides have it", || read(&theirs).lines().any(|other| other == line));
    }
    let mode = std::fs::metadata(&theirs).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let log = server.server.log();
    for line in known.lines().filter(|line| !line.starts_with('#')) {
        let secret = line.rsplit(' ').next().unwrap_or_default();
        assert!(!log.contains(secret), "a secret is in the log");
    }

    // The variable of browsers does nothing here.
    let other = authority.folder().join("other");
    let variable = other.clone();
    let launch = Box::new(move |launch: &mut afpa_testkit::Launch| {
        launch.env("SSLKEYLOGFILE", &variable);
    });
    let server = TlsServer::with(&authority, tree.path(), Plan { launch, ..Plan::default() });
    assert!(server.curl(&authority, &[&server.url("/hello.txt")]).0);
    assert!(!other.exists());
}
