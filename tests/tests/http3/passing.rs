//! Rules of passing on and of files for clients of HTTP/3, where HTTP/3 has words of its own.

use std::fs::File;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use afpa_testkit::tree::patterned;
use afpa_tests::proxy::{Raw, read_content, read_head, resetting};
use afpa_tests::quic::field;
use afpa_tests::tls::Authority;
use serde_json::json;

use crate::{both, site};

const INTERNAL: u64 = 0x102;
const EXCESSIVE_LOAD: u64 = 0x107;
const CANCELLED: u64 = 0x10c;

/// T5 of docs/rules.
#[test]
fn a_server_s_reset_reaches_the_client_as_what_it_means_for_it() {
    let (tree, authority, server) = (site(), Authority::new(), resetting());
    let group = format!(
        "[[server_group]]\nname = \"app\"\nservers = [\"{}\"]\nhttp2 = true\n[server_group.errors]\npercent = 0\n",
        server.to()
    );
    let path = "[[site.path]]\nprefix = \"/app/\"\nto = \"app\"\n";
    let Some((_server, mut client)) = both(&authority, &tree, &group, path, |_| {}) else {
        return;
    };
    for code in 0..=14 {
        let got = client.get(&format!("/app/{code}"));
        let expected = match code {
            8 => CANCELLED,
            11 => EXCESSIVE_LOAD,
            _ => INTERNAL,
        };
        assert_eq!(got["code"], expected, "code {code}: {got}");
    }
    assert_eq!(client.get("/hello.txt")["status"], 200, "the connection goes on");
}

#[test]
fn a_server_whose_connection_breaks_is_no_client_that_cancels() {
    let (tree, authority) = (site(), Authority::new());
    let server = Raw::start(|mut stream| {
        let Some(head) = read_head(&mut stream) else { return };
        let framing = match head.contains("/chunks") {
            true => "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
            false => "Content-Length: 100\r\n\r\nhalf",
        };
        let _sent = stream.write_all(format!("HTTP/1.1 200 OK\r\n{framing}").as_bytes());
    });
    let path = format!("[[site.path]]\nprefix = \"/app/\"\nto = \"{}\"\n", server.to());
    let Some((_server, mut client)) = both(&authority, &tree, "", &path, |_| {}) else { return };
    for path in ["/app/length", "/app/chunks"] {
        let got = client.get(path);
        assert_eq!(got["code"], INTERNAL, "{path}: {got}");
    }
}

/// A field line of QPACK with its name, without Huffman's code (RFC 9204 section 4.5.6).
fn put_line(out: &mut Vec<u8>, name: &str, value: &str) {
    let short = u8::try_from(name.len().min(7)).expect("short");
    out.push(0b0010_0000 | short);
    if short == 7 {
        out.push(u8::try_from(name.len() - 7).expect("short"));
    }
    out.extend_from_slice(name.as_bytes());
    out.push(u8::try_from(value.len()).expect("short"));
    out.extend_from_slice(value.as_bytes());
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// T1 and T2 of docs/rules.
#[test]
fn forged_trailers_of_a_stream_reach_no_server() {
    let (tree, authority) = (site(), Authority::new());
    let server = Raw::start(|mut stream| {
        while let Some(mut request) = read_head(&mut stream) {
            let Some(content) = read_content(&mut stream, &request) else { return };
            request += &content;
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", request.len());
            if stream.write_all((head + &request).as_bytes()).is_err() {
                return;
            }
        }
    });
    let group = format!(
        "[[server_group]]\nname = \"app\"\nservers = [\"{}\"]\n[server_group.request]\nclient_subject = \"X-Client-Subject\"\n",
        server.to()
    );
    let path = "[[site.path]]\nprefix = \"/app/\"\nto = \"app\"\n";
    let Some((_server, mut client)) = both(&authority, &tree, &group, path, |_| {}) else {
        return;
    };
    let mut section = vec![0, 0];
    for name in ["x-client-subject", "x_client_subject", "x-forwarded-for", "x_sum", "cookie"] {
        put_line(&mut section, name, "CN=admin");
    }
    let mut frames = b"\x00\x03abc\x01".to_vec();
    let length = u16::try_from(section.len()).expect("short");
    frames.extend((0x4000 | length).to_be_bytes());
    frames.extend(&section);
    let head = [
        [":method", "POST"],
        [":path", "/app/x"],
        [":scheme", "https"],
        [":authority", "localhost"],
    ];
    let named = ["trailer", "x-client-subject, x_client_subject, x-forwarded-for, x_sum, cookie"];
    for named in [None, Some(named)] {
        let lines: Vec<_> = head.into_iter().chain(named).collect();
        let got = client.one(&json!({
            "do": "raw", "on": "a", "lines": lines, "bytes": hex(&frames), "ends": true, "wait": 20_000,
        }));
        let text = got["text"].as_str().unwrap_or_default();
        assert!(text.contains(&hex(b"POST /app/x")) && text.contains(&hex(b"abc")), "{got}");
        assert!(!text.contains(&hex(b"CN=admin")), "{got}");
    }
}

/// D3 of docs/rules.
#[test]
fn a_file_that_grows_is_sent_as_it_was_announced() {
    let (tree, authority) = (site(), Authority::new());
    tree.file("log.bin", patterned(12_000_000));
    let Some((_server, mut client)) = both(&authority, &tree, "", "", |_| {}) else { return };
    let mut log = File::options().append(true).open(tree.at("log.bin")).expect("open");
    let ends = Arc::new(AtomicBool::new(false));
    let writes = std::thread::spawn({
        let ends = Arc::clone(&ends);
        move || {
            while !ends.load(Ordering::Relaxed) {
                log.write_all(b"another line\n").expect("written");
                std::thread::sleep(Duration::from_millis(15));
            }
        }
    });
    let all: Vec<_> = (0..3).map(|_| client.get("/log.bin")).collect();
    ends.store(true, Ordering::Relaxed);
    writes.join().expect("no panic");
    for got in all {
        assert_eq!((&got["status"], &got["error"]), (&json!(200), &json!("")), "{got}");
        assert_eq!(field(&got, "Content-Length"), got["length"].to_string(), "{got}");
    }
}
