//! The kernel's answers are the same as AFPA's.

use std::process::Command;

use afpa_netlab::Bed;
use afpa_testkit::tree::patterned;
use afpa_testkit::{Asked, Client, Endpoint, Response, Tree, eventually};
use afpa_tests::codings::settle;

use crate::lab::{Lab, PORT, answers, is_from_kernel, stats, warm, warm_with};

fn site() -> Tree {
    let tree = Tree::new();
    tree.file("index.html", "<!doctype html><title>start</title>");
    tree.file("empty.txt", "");
    tree.file("hello.txt", "hello");
    tree.file("odd.css", "b { c: d }\n".repeat(60) + "x");
    tree.file("with space.txt", "escaped");
    tree.file("picture.png", patterned(1000));
    tree.file("folder/index.html", "inside");
    tree.file("large.bin", patterned(300_000));
    tree
}

/// All but the Date.
fn compared(mut response: Response) -> Response {
    assert!(response.field("Date").is_some(), "{response:?}");
    response.fields.retain(|(name, _)| !name.eq_ignore_ascii_case("Date"));
    response
}

#[test]
fn answers_are_the_same_with_and_without() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let with = lab.server(&tree, |_| ());
    let without = lab.server_on(PORT + 1, &tree, |_| ());
    let targets = [
        "/",
        "/empty.txt",
        "/hello.txt",
        "/odd.css",
        "/with%20space.txt",
        "/picture.png",
        "/folder/",
    ];
    let codings = ["", "gzip", "br", "zstd", "gzip, deflate, br, zstd", "identity", "deflate"];
    settle(&with, &targets);
    settle(&without, &targets);
    let mut kernel = with.connect();
    let mut user = without.connect();
    for target in targets {
        warm(&with, target);
        for coding in codings {
            let mut lines = "Host: test\r\n".to_owned();
            if !coding.is_empty() {
                lines += &format!("Accept-Encoding: {coding}\r\n");
            }
            let plain = same(&mut kernel, &mut user, "GET", target, &lines);
            let etag = plain.field("ETag").expect("an entity tag").to_owned();
            let modified = plain.field("Last-Modified").expect("a date").to_owned();
            let before = answers(&with);
            let validators = [
                format!("If-None-Match: {etag}\r\n"),
                format!("If-Modified-Since: {modified}\r\n"),
            ];
            for validator in validators {
                let lines = format!("{lines}{validator}");
                let answer = same(&mut kernel, &mut user, "GET", target, &lines);
                assert_eq!(answer.status, 304, "{target} {lines}");
            }
            same(
                &mut kernel,
                &mut user,
                "GET",
                target,
                &format!("{lines}If-None-Match: \"x\"\r\n"),
            );
            same(&mut kernel, &mut user, "HEAD", target, &lines);
            assert_eq!(answers(&with), before + 4, "{target} {lines:?} came from user mode");
        }
    }
    let stats = stats(&with);
    let not_modified = &stats["fast_path"]["packets"]["answered_not_modified"];
    assert_eq!(&stats["requests"]["status"]["304"], not_modified, "every 304 came from the kernel");
    let by_status = stats["requests"]["status"].as_object().expect("counts");
    let sum: u64 = by_status.values().filter_map(serde_json::Value::as_u64).sum();
    assert_eq!(stats["requests"]["responses"].as_u64(), Some(sum), "{by_status:?}");
}

#[test]
fn codings_come_to_the_kernel_when_they_are_made() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let server = lab.server(&tree, |_| ());
    // The kernel answers clients that accept no coding from the first load on.
    warm(&server, "/odd.css");
    assert_eq!(stats(&server)["compression"]["objects"], 0);
    let mut client = server.connect();
    let before = answers(&server);
    let gzip = "Accept-Encoding: gzip\r\n";
    let first = client.get_with("/odd.css", gzip);
    assert_eq!(first.field("Content-Encoding"), None, "nobody waits for an encoder");
    assert!(first.lists("Vary", "Accept-Encoding"), "{first:?}");
    assert_eq!(answers(&server), before, "what is due is for user mode to have made");
    eventually("the kernel answers with gzip", || {
        let before = answers(&server);
        let coded = client.get_with("/odd.css", gzip).field("Content-Encoding") == Some("gzip");
        coded && answers(&server) > before
    });
    eventually("it is counted", || stats(&server)["compression"]["objects"] == 1);
    let plain = client.get("/odd.css");
    assert_eq!((plain.field("ETag"), &plain.body), (first.field("ETag"), &first.body));
    assert!(is_from_kernel(&server, &mut client, "/odd.css"));
    // The next version begins anew.
    tree.replace("odd.css", "i { j: k }\n".repeat(70));
    eventually("the new version is answered", || {
        client.get_with("/odd.css", gzip).field("ETag") != first.field("ETag")
            && client.get("/odd.css").body == "i { j: k }\n".repeat(70).as_bytes()
    });
    eventually("and its codings come, too", || {
        let before = answers(&server);
        let coded = client.get_with("/odd.css", gzip).field("Content-Encoding") == Some("gzip");
        coded && answers(&server) > before
    });
}

fn same(
    kernel: &mut Client,
    user: &mut Client,
    method: &str,
    target: &str,
    lines: &str,
) -> Response {
    let request = format!("{method} {target} HTTP/1.1\r\n{lines}\r\n");
    let [one, other] = [kernel, user].map(|client| compared(client.exchange(&request)));
    assert_eq!(one, other, "{request}");
    one
}

/// HTTP/1.0 that keeps its connection: the kernel gets the answers when somebody has asked so, and they are user mode's.
#[test]
fn old_clients_that_keep_their_connection_get_the_same() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let with = lab.server(&tree, |_| ());
    let without = lab.server_on(PORT + 1, &tree, |_| ());
    let targets = ["/hello.txt", "/odd.css", "/with%20space.txt", "/folder/"];
    settle(&with, &targets);
    settle(&without, &targets);
    targets.iter().for_each(|target| warm(&with, target));
    let (mut kernel, mut user) = (with.connect(), without.connect());
    let request = |method: &str, target: &str, lines: &str| {
        format!("{method} {target} HTTP/1.0\r\nHost: test\r\nConnection: Keep-Alive\r\n{lines}\r\n")
    };
    for target in targets {
        eventually("the kernel answers", || {
            let before = answers(&with);
            kernel.exchange(request("GET", target, ""));
            answers(&with) > before
        });
        let etag = kernel.get(target).field("ETag").expect("an entity tag").to_owned();
        for (method, lines) in [
            ("GET", String::new()),
            ("HEAD", String::new()),
            ("GET", "Accept-Encoding: gzip;q=1.0,deflate;q=0.6,identity;q=0.3\r\n".to_owned()),
            ("GET", "Accept-Encoding: compress, br\r\n".to_owned()),
            ("GET", format!("If-None-Match: {etag}\r\n")),
        ] {
            let (before, bytes) = (answers(&with), request(method, target, &lines));
            let [one, other] = [&mut kernel, &mut user].map(|c| compared(c.exchange(&bytes)));
            assert_eq!(one, other, "{bytes}");
            assert_eq!(one.field("Connection"), Some("keep-alive"), "{bytes}");
            assert_eq!(answers(&with), before + 1, "{bytes}");
        }
    }
    // A file that changes takes these answers along.
    tree.replace("hello.txt", "other");
    eventually("the new version comes", || {
        kernel.exchange(request("GET", "/hello.txt", "")).text() == "other"
    });
}

#[test]
fn a_large_file_is_not_modified_in_the_kernel() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let server = lab.server(&tree, |_| ());
    let mut client = server.connect();
    let whole = client.get("/large.bin");
    assert_eq!(whole.body, patterned(300_000));
    let validator = format!("If-None-Match: {}\r\n", whole.field("ETag").expect("a tag"));
    eventually("the kernel knows its validators", || {
        let before = answers(&server);
        assert_eq!(client.get_with("/large.bin", &validator).status, 304);
        answers(&server) > before
    });
    let before = answers(&server);
    assert_eq!(client.get("/large.bin").body, whole.body);
    assert_eq!(answers(&server), before);
}

#[test]
fn kernel_and_user_mode_take_turns_on_one_connection() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let server = lab.server(&tree, |_| ());
    warm(&server, "/hello.txt");
    let mut client = server.connect();
    for _ in 0..3 {
        assert!(is_from_kernel(&server, &mut client, "/hello.txt"));
        assert!(!is_from_kernel(&server, &mut client, "/large.bin"));
        assert!(is_from_kernel(&server, &mut client, "/hello.txt"));
        assert_eq!(client.get("/missing").status, 404);
        assert!(is_from_kernel(&server, &mut client, "/hello.txt"));
        assert_eq!(client.get_with("/hello.txt", "Range: bytes=1-2\r\n").text(), "el");
        assert!(is_from_kernel(&server, &mut client, "/hello.txt"));
    }
}

/// From a body or a second request in the segment on, user mode keeps the connection.
#[test]
fn what_is_not_surely_one_request_is_for_user_mode() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let server = lab.server(&tree, |_| ());
    warm(&server, "/hello.txt");
    let odd: [(&str, &[u16]); 3] = [
        ("POST /hello.txt HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", &[405]),
        (
            "GET /hello.txt HTTP/1.1\r\nHost: h\r\n\r\nGET /missing HTTP/1.1\r\nHost: h\r\n\r\n\
             GET /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n",
            &[200, 404, 200],
        ),
        ("OPTIONS /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n", &[204]),
    ];
    for (bytes, statuses) in odd {
        let mut client = server.connect();
        assert!(is_from_kernel(&server, &mut client, "/hello.txt"));
        client.send(bytes);
        for status in statuses {
            assert_eq!(client.receive().status, *status, "{bytes}");
        }
        assert_eq!(client.get("/hello.txt").text(), "hello");
        assert_eq!(client.get("/large.bin").body.len(), 300_000);
        assert!(is_from_kernel(&server, &mut server.connect(), "/hello.txt"));
    }
    let mut client = server.connect();
    assert!(is_from_kernel(&server, &mut client, "/hello.txt"));
    client.send_split(b"GET /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n", 9).expect("sent");
    assert_eq!(client.try_receive(Asked::Body).expect("a response").text(), "hello");
    assert_eq!(client.get("/hello.txt").text(), "hello");
}

#[test]
fn only_the_hosts_of_the_site_are_answered() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let server = lab.server(&tree, |launch| {
        launch.set(|settings| {
            settings.set("site.hosts", "[\"example.org\", \"www.example.org\"]");
        });
    });
    for host in ["example.org", "WWW.example.org", "www.EXAMPLE.org:8080"] {
        warm_with(&server, "/hello.txt", &format!("Host: {host}\r\n"));
    }
    let before = answers(&server);
    for host in ["example.com", "xample.org", "www.example.orgs", "10.77.0.1"] {
        let mut client = server.connect();
        let request = format!("GET /hello.txt HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(client.exchange(request).status, 421, "{host}");
    }
    assert_eq!(answers(&server), before);
}

#[test]
fn both_families_and_the_loopback_are_served() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let server = lab.server(&tree, |launch| {
        launch.listen(Endpoint::Tcp(format!("[{}]:9090", Bed::SERVER_V6).parse().expect("v6")));
        launch.listen(Endpoint::Tcp("10.77.0.1:9091".parse().expect("v4")));
    });
    warm(&server, "/hello.txt");
    let remote = [format!("[{}]:9090", Bed::SERVER_V6), "10.77.0.1:9091".to_owned()];
    for address in remote {
        let address = Endpoint::Tcp(address.parse().expect("an address"));
        let mut client = Client::connect(&address).expect("connected");
        assert!(is_from_kernel(&server, &mut client, "/hello.txt"), "{address}");
        // Clients call it by this address: IPv6 addresses are known by name.
        let before = answers(&server);
        let request = format!("GET /hello.txt HTTP/1.1\r\nHost: {address}\r\n\r\n");
        assert_eq!(client.exchange(request).text(), "hello");
        assert_eq!(answers(&server), before + 1, "{address}");
    }
    lab.on_the_server(|| {
        let mut client = server.connect();
        assert!(is_from_kernel(&server, &mut client, "/hello.txt"), "over lo");
    });
}

#[test]
fn curl_and_python_are_content() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let server = lab.server(&tree, |_| ());
    warm(&server, "/hello.txt");
    let before = answers(&server);
    // A child is in the namespace of the thread that starts it.
    let url = format!("{}/hello.txt", server.url());
    let curl = Command::new("curl").args(["-sS", "--compressed", &url, &url, &url]).output();
    match curl {
        Ok(output) => assert_eq!(output.stdout, b"hellohellohello", "{output:?}"),
        Err(error) => afpa_testkit::aloud::say("SKIP", &format!("curl: {error}")),
    }
    let script = format!(
        "import http.client\nc = http.client.HTTPConnection('{}')\n\
         for path in ['/hello.txt', '/large.bin', '/hello.txt', '/missing', '/hello.txt']:\n\
         \x20   c.request('GET', path)\n    print(len(c.getresponse().read()) % 1000)\n",
        server.address()
    );
    match Command::new("python3").args(["-c", &script]).output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let lengths: Vec<&str> = text.lines().collect();
            assert_eq!([lengths[0], lengths[1], lengths[2], lengths[4]], ["5", "0", "5", "5"]);
        }
        Err(error) => afpa_testkit::aloud::say("SKIP", &format!("python3: {error}")),
    }
    assert!(answers(&server) > before, "none of these requests was answered in the kernel");
}

#[test]
fn the_access_log_has_what_the_kernel_answered() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let server = lab.server(&tree, |launch| {
        let log = launch.home().join("access.log");
        launch.arg("--access-log").arg(log).arg("--log-format").arg("json");
    });
    warm(&server, "/with%20space.txt");
    let mut client = server.connect();
    let whole = client.get("/with%20space.txt");
    let validator = format!("If-None-Match: {}\r\n", whole.field("ETag").expect("a tag"));
    client.get_with("/with%20space.txt", &validator);
    client.head_with("/with%20space.txt", "");
    let answered = answers(&server);
    let lines = || {
        let text = std::fs::read_to_string(server.home().join("access.log")).unwrap_or_default();
        let parse = |line: &str| serde_json::from_str(line).expect("a line is JSON");
        let lines = text.lines().map(parse);
        lines.filter(|line: &serde_json::Value| line["source"] == "kernel").collect::<Vec<_>>()
    };
    eventually("every answer is logged", || lines().len() as u64 == answered);
    let lines = lines();
    let [.., whole, not_modified, head] = lines.as_slice() else { panic!("{lines:?}") };
    for (line, method, status, bytes) in
        [(whole, "GET", 200, 7), (not_modified, "GET", 304, 0), (head, "HEAD", 200, 0)]
    {
        assert_eq!(line["method"], method, "{line}");
        assert_eq!(line["status"], status, "{line}");
        assert_eq!(line["body_bytes"], bytes, "{line}");
        assert_eq!(line["target"], "/with%20space.txt", "{line}");
        assert_eq!(line["client"], "10.77.64.1", "{line}");
        assert_eq!(line["duration_us"], 0, "{line}");
    }
}

#[test]
fn a_sample_of_the_answers_is_logged_with_its_weight() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let server = lab.server(&tree, |launch| {
        let log = launch.home().join("access.log");
        launch.arg("--access-log").arg(log).arg("--log-format").arg("json");
        launch.set(|settings| {
            settings.set("fast_path.log_every", 4);
        });
    });
    warm(&server, "/hello.txt");
    let mut client = server.connect();
    (0..400).for_each(|_| _ = client.get_with("/hello.txt", "Referer: /from\r\nUser-Agent: x\r\n"));
    let lines = || {
        let text = std::fs::read_to_string(server.home().join("access.log")).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        let kernel = lines.filter(|line: &serde_json::Value| line["source"] == "kernel");
        kernel.filter(|line| line["referer"] == "/from").collect::<Vec<_>>()
    };
    // A quarter is a hundred; ten deviations from it are 87.
    eventually("a quarter is logged", || lines().len() > 12);
    assert!(lines().len() < 188, "{}", lines().len());
    for line in lines() {
        assert_eq!((&line["weight"], &line["user_agent"]), (&4.into(), &"x".into()), "{line}");
    }
}

#[test]
fn objects_beyond_the_limit_are_left_to_user_mode() {
    let Some(lab) = Lab::new() else { return };
    let tree = Tree::new();
    for number in 0..30 {
        tree.file(format!("{number}.txt"), format!("file {number}"));
    }
    let server = lab.server(&tree, |launch| {
        launch.set(|settings| {
            settings.set("fast_path.memory", "\"128KiB\"");
            settings.set("fast_path.connections", "\"kernel\""); // one place an object
        });
    });
    let mut client = server.connect();
    for _ in 0..3 {
        for number in 0..30 {
            assert_eq!(client.get(&format!("/{number}.txt")).text(), format!("file {number}"));
        }
    }
    let seen = &stats(&server)["fast_path"];
    assert_eq!(seen["objects"], 16, "{seen}");
    assert_eq!(seen["objects_left"]["full"], 14, "{seen}");
    assert_eq!(seen["answers"], 32, "16 objects, two rounds: {seen}");
    // Objects that found no room before soon use it. The removed ones need not have been forgotten by then.
    (0..8).for_each(|number| tree.remove(format!("{number}.txt")));
    let pinned = || stats(&server)["fast_path"]["objects"].as_u64().expect("a count");
    eventually("eight objects are gone", || pinned() <= 8);
    eventually("eight others are pinned", || pinned() == 16);
    let before = answers(&server);
    for number in 8..24 {
        assert_eq!(client.get(&format!("/{number}.txt")).text(), format!("file {number}"));
    }
    assert!(answers(&server) > before + 8, "{}", stats(&server)["fast_path"]);
}
