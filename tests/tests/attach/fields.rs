//! Request fields: the kernel answers requests with the fields of real clients and proxies, and none with unknown fields.

use afpa_testkit::tree::patterned;
use afpa_testkit::{Asked, Client, Response};
use afpa_tests::attach::{Attached, Kind};

use crate::socketless::visit;

/// A page and its parts: the path, the length, and the kind of load by which a browser fetches each.
const PAGE: [(&str, usize, Load); 9] = [
    ("/", 6_000, Load::Document),
    ("/style.css", 9_000, Load::Style),
    ("/print.css", 700, Load::Style),
    ("/app.js", 12_000, Load::Script),
    ("/vendor.js", 15_000, Load::Script),
    ("/logo.svg", 2_500, Load::Image),
    ("/photo.png", 14_000, Load::Image),
    ("/favicon.ico", 1_100, Load::Image),
    ("/data.json", 3_000, Load::Fetch),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Load {
    Document,
    Style,
    Script,
    Image,
    Fetch,
}

/// The lines of a request, as the client sends them, without those of conditions.
type Lines = fn(Load) -> String;

const COOKIE: &str = "Cookie: _ga=GA1.1.1234567890.1700000000; consent={\"necessary\":true}; sessionid=k3v9x0q8w7e6r5\r\n";

fn chromium(load: Load) -> String {
    let (accept, dest, mode) = match load {
        Load::Document => (
            "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8",
            "document",
            "navigate",
        ),
        Load::Style => ("text/css,*/*;q=0.1", "style", "no-cors"),
        Load::Script => ("*/*", "script", "no-cors"),
        Load::Image => {
            ("image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8", "image", "no-cors")
        }
        Load::Fetch => ("*/*", "empty", "cors"),
    };
    let first = match load {
        Load::Document => "Upgrade-Insecure-Requests: 1\r\nSec-Fetch-User: ?1\r\n".to_owned(),
        _ => format!("Referer: http://{HOST}/\r\n"),
    };
    format!(
        "Connection: keep-alive\r\nsec-ch-ua: \"Chromium\";v=\"130\", \"Not?A_Brand\";v=\"99\"\r\n\
         sec-ch-ua-mobile: ?0\r\nsec-ch-ua-platform: \"Linux\"\r\n\
         User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36\r\n\
         Accept: {accept}\r\nSec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: {mode}\r\nSec-Fetch-Dest: {dest}\r\n{first}\
         Accept-Encoding: gzip, deflate, br, zstd\r\nAccept-Language: en-GB,en;q=0.9,de;q=0.8\r\n{COOKIE}"
    )
}

fn firefox(load: Load) -> String {
    let (accept, more, urgency) = match load {
        Load::Document => (
            "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/png,image/svg+xml,*/*;q=0.8",
            "Upgrade-Insecure-Requests: 1\r\nDNT: 1\r\nSec-GPC: 1\r\n".to_owned(),
            "u=0, i",
        ),
        Load::Style => ("text/css,*/*;q=0.1", format!("Referer: http://{HOST}/\r\n"), "u=2"),
        Load::Image => (
            "image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5",
            format!("Referer: http://{HOST}/\r\n"),
            "u=5, i",
        ),
        _ => ("*/*", format!("Referer: http://{HOST}/\r\n"), "u=2"),
    };
    format!(
        "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0\r\n\
         Accept: {accept}\r\nAccept-Language: en-GB,en;q=0.5\r\nAccept-Encoding: gzip, deflate\r\n\
         Connection: keep-alive\r\n{more}{COOKIE}Priority: {urgency}\r\n"
    )
}

fn safari(load: Load) -> String {
    let (accept, more) = match load {
        Load::Document => (
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
            "Upgrade-Insecure-Requests: 1\r\n".to_owned(),
        ),
        Load::Style => ("text/css,*/*;q=0.1", format!("Referer: http://{HOST}/\r\n")),
        Load::Image => (
            "image/webp,image/avif,image/jxl,image/heic,image/heic-sequence,video/*;q=0.8,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5",
            format!("Referer: http://{HOST}/\r\n"),
        ),
        _ => ("*/*", format!("Referer: http://{HOST}/\r\n")),
    };
    format!(
        "Accept: {accept}\r\n{more}{COOKIE}\
         User-Agent: Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Safari/605.1.15\r\n\
         Accept-Language: en-GB,en;q=0.9\r\nAccept-Encoding: gzip, deflate\r\nConnection: keep-alive\r\n"
    )
}

fn curl(_: Load) -> String {
    "User-Agent: curl/8.10.1\r\nAccept: */*\r\n".to_owned()
}

fn curl_compressed(_: Load) -> String {
    "User-Agent: curl/8.10.1\r\nAccept: */*\r\nAccept-Encoding: deflate, gzip, br, zstd\r\n"
        .to_owned()
}

/// With `option forwardfor` and `http-request set-header X-Forwarded-Proto`; keep-alive goes without saying.
fn haproxy(load: Load) -> String {
    let lines = chromium(load).replace("Connection: keep-alive\r\n", "");
    format!(
        "{lines}x-forwarded-for: 192.0.2.7\r\nx-forwarded-proto: https\r\nx-request-id: 5f2c0b1e\r\n"
    )
}

/// With `proxy_http_version 1.1`, an empty Connection, and the usual fields.
fn nginx(load: Load) -> String {
    let lines = firefox(load).replace("Connection: keep-alive\r\n", "");
    format!(
        "X-Real-IP: 192.0.2.7\r\nX-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: {HOST}\r\n{lines}"
    )
}

/// Of the kind that names its requests, as the one of Amazon does.
fn balancer(load: Load) -> String {
    let lines = safari(load);
    format!(
        "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Port: 443\r\n\
         X-Amzn-Trace-Id: Root=1-67891233-abcdef012345678912345678\r\n{lines}"
    )
}

const CLIENTS: [(&str, Lines); 8] = [
    ("Chromium", chromium),
    ("Firefox", firefox),
    ("Safari", safari),
    ("curl", curl),
    ("curl --compressed", curl_compressed),
    ("HAProxy, of Chromium", haproxy),
    ("nginx, of Firefox", nginx),
    ("a balancer, of Safari", balancer),
];

const HOST: &str = "10.77.0.1:8080";

fn request(path: &str, lines: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {HOST}\r\n{lines}\r\n")
}

fn ask(client: &mut Client, request: &str) -> Response {
    client.send(request);
    let mut response =
        client.try_receive(Asked::Body).unwrap_or_else(|error| panic!("{request:?}: {error}"));
    // Hop-by-hop fields, which Apache adds for clients that say what goes without saying.
    let aside = ["date", "connection", "keep-alive"];
    response.fields.retain(|(name, _)| !aside.contains(&name.to_ascii_lowercase().as_str()));
    response
}

/// How many requests of a load of the page were answered in the kernel. `validators` is what was cached.
fn load(
    client: &mut Client,
    attached: &Attached,
    lines: Lines,
    validators: &[String],
    expected: &mut Vec<Response>,
) -> u64 {
    let before = attached.answered();
    let again = !expected.is_empty();
    for (at, (path, _, load)) in PAGE.iter().enumerate() {
        let none = String::new();
        let validator = validators.get(at).unwrap_or(&none);
        let response = ask(client, &request(path, &format!("{}{validator}", lines(*load))));
        match again {
            true => assert_eq!(response, expected[at], "{path}"),
            false => expected.push(response),
        }
    }
    attached.answered() - before
}

/// The validators that a browser sends for the responses that it has.
fn validators(of: &[Response]) -> Vec<String> {
    let one = |response: &Response| {
        let tag = response.field("etag").map(|tag| format!("If-None-Match: {tag}\r\n"));
        let date =
            response.field("last-modified").map(|date| format!("If-Modified-Since: {date}\r\n"));
        [date, tag].into_iter().flatten().collect()
    };
    of.iter().map(one).collect()
}

const LOADS: u64 = 10;

fn share_of_page_loads(kind: Kind) {
    let lab = lab!(kind);
    for (path, length, _) in PAGE {
        let path = if path == "/" { "/index.html" } else { path };
        // Compressible, as such files are.
        let content: Vec<u8> = patterned(length / 4)
            .iter()
            .flat_map(|byte| [b'a' + byte % 16, b' ', b'=', b' '])
            .collect();
        lab.file(path, content);
    }
    let attached = lab.attach(&[]);
    assert_eq!(
        attached.pinned(),
        PAGE.len() as u64 + 1,
        "index.html and /: {:#?}",
        attached.statistics()
    );
    let all = PAGE.len() as u64;
    println!("{kind:?}, {all} requests a page load, answered in the kernel:");
    println!("{:24} {:>6} {:>12} {:>12}", "client", "first", "later", "validating");
    let (mut sum, mut wanted) = (0, 0);
    for (name, lines) in CLIENTS {
        let mut client = lab.connect();
        let mut expected = Vec::new();
        let first = load(&mut client, &attached, lines, &[], &mut expected);
        let mut later = 0;
        for _ in 0..LOADS {
            later += load(&mut client, &attached, lines, &[], &mut expected);
        }
        let have = validators(&expected);
        let mut unchanged = Vec::new();
        let mut validating = 0;
        for _ in 0..LOADS {
            validating += load(&mut client, &attached, lines, &have, &mut unchanged);
        }
        println!(
            "{name:24} {first:>4}/{all} {later:>7}/{} {validating:>7}/{}",
            LOADS * all,
            LOADS * all
        );
        sum += later;
        wanted += LOADS * all;
        let percent = |count: u64| count * 100 / (LOADS * all);
        assert!(percent(later) >= 95, "{name}: {:#?}", attached.statistics());
        // Apache answers 200 to its own tag of content that it has compressed; such requests are left to it.
        if kind == Kind::DebianNginx {
            assert!(unchanged.iter().all(|response| response.status == 304), "{name}");
            assert!(percent(validating) >= 95, "{name}: {:#?}", attached.statistics());
        }
    }
    println!("{sum} of {wanted} later ones");
}

#[test]
fn page_loads_before_debians_nginx_come_from_the_kernel() {
    share_of_page_loads(Kind::DebianNginx);
}

#[test]
fn page_loads_before_debians_apache_come_from_the_kernel() {
    share_of_page_loads(Kind::DebianApache);
}

/// Visits of a real browser, each with an empty cache of its own and as many connections as it likes.
fn share_of_a_browsers_page_loads(kind: Kind) {
    let lab = lab!(kind);
    let script = "addEventListener('load', async () => { await (await fetch('/data.json')).text(); \
                  const all = performance.getEntriesByType('resource'); \
                  document.body.append(`loaded ${1 + all.length} `); });";
    let page = "<!doctype html><link rel=icon href=/favicon.ico><link rel=stylesheet href=/style.css>\
                <link rel=stylesheet href=/print.css><body><img src=/logo.svg><img src=/photo.png>\
                <script src=/app.js></script><script src=/vendor.js></script>";
    lab.file("index.html", page);
    lab.file("data.json", "[1]");
    lab.file("vendor.js", format!("{script}//{}", "v ".repeat(6_000)));
    lab.file("app.js", "// a script\n".repeat(900));
    lab.file("style.css", "b { color: red }\n".repeat(500));
    lab.file("print.css", "i { color: blue }\n".repeat(40));
    lab.file("logo.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"><path d=\"M0 0\"/></svg>");
    lab.file("photo.png", patterned(14_000));
    lab.file("favicon.ico", patterned(1_100));
    let attached = lab.attach(&["--connections", "known"]);
    let url = format!("http://{HOST}/");
    let Some(first) = visit(&lab, &url) else { return };
    assert!(first.contains("loaded "), "{first}");
    let (mut answered, mut asked) = (0, 0);
    for _ in 0..LOADS {
        let before = attached.answered();
        let page = visit(&lab, &url).expect("it was there before");
        let loaded = page.split("loaded ").nth(1).and_then(|rest| rest.split(' ').next());
        let loaded: u64 = loaded.and_then(|count| count.parse().ok()).expect("a number");
        assert!(loaded >= PAGE.len() as u64 - 1, "{page}");
        let here = attached.answered() - before;
        println!("{kind:?}: {here} of {loaded}");
        asked += loaded;
        answered += here.min(loaded); // the page does not know of its icon
    }
    println!("{kind:?}: {answered} of {asked} requests of Chromium's page loads");
    assert!(answered * 100 >= asked * 95, "{answered} of {asked}: {:#?}", attached.statistics());
}

#[test]
fn chromiums_page_loads_before_debians_nginx_come_from_the_kernel() {
    share_of_a_browsers_page_loads(Kind::DebianNginx);
}

#[test]
fn chromiums_page_loads_before_debians_apache_come_from_the_kernel() {
    share_of_a_browsers_page_loads(Kind::DebianApache);
}

/// Nobody can know what a server makes of these.
#[test]
fn unknown_fields_are_left_to_the_server_unless_the_operator_knows_them() {
    let lab = lab!(Kind::Nginx);
    lab.file("page.html", "content");
    let answered = |attached: &Attached, fields: &str| {
        let before = attached.answered();
        let mut client = lab.connect();
        for _ in 0..2 {
            assert_eq!(ask(&mut client, &request("/page.html", fields)).text(), "content");
        }
        attached.answered() - before
    };
    let fields = [
        "X-HTTP-Method-Override: DELETE\r\n",
        "X-Original-URL: /admin\r\n",
        "X-Shop-Session: 1\r\n",
        "Sec-WebSocket-Key: x\r\n",
        "Access-Control-Request-Method: PUT\r\n",
    ];
    let attached = lab.attach(&[]);
    for fields in fields {
        assert_eq!(answered(&attached, fields), 0, "{fields:?}");
    }
    assert_eq!(answered(&attached, ""), 2);
    let reasons = attached.statistics().expect("it runs")["reasons"].clone();
    assert!(
        reasons["passed: a header field only user mode handles"].as_u64() >= Some(10),
        "{reasons:#}"
    );
    assert!(lab.detach(&["--wait", "0", "--force"]).0);
    assert!(attached.wait());
    let attached = lab.attach(&["--allow-field", "X-Shop-Session"]);
    assert_eq!(answered(&attached, fields[2]), 2);
    assert_eq!(answered(&attached, fields[1]), 0);
}
