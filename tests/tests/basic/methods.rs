//! The response to each method.

use afpa_testkit::{curl::curl, skip, tree::patterned};
use afpa_tests::dates;

use crate::{connection_keeps_its_word, refused, site};

#[test]
fn get_gives_the_file_with_the_fields_of_a_static_response() {
    let (tree, server) = site();
    tree.set_modified("hello.txt", 1_600_000_000);
    let response = server.get("/hello.txt");
    assert_eq!((response.status, response.reason.as_str()), (200, "OK"));
    assert_eq!((response.minor_version, response.text()), (1, "hello"));
    assert_eq!(response.field("content-length"), Some("5"));
    assert_eq!(response.field("accept-ranges"), Some("bytes"));
    assert_eq!(response.field("server"), Some("afpa"));
    let expected = dates::http_date(1_600_000_000);
    assert_eq!(response.field("last-modified"), Some(expected.as_str()));
    let date = dates::parse(response.field("date").expect("a date")).expect("an HTTP date");
    let now = std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_secs();
    assert!(now.abs_diff(date) <= 2, "Date is {date}, now is {now}");
    let tag = response.field("etag").expect("an entity tag");
    assert!(tag.len() > 2 && tag.starts_with('"') && tag.ends_with('"'), "strong: {tag}");
}

#[test]
fn head_gives_the_fields_of_get_and_no_body() {
    let (_tree, server) = site();
    for target in ["/hello.txt", "/", "/empty.bin", "/none", "/bare/", "/bare"] {
        let mut client = server.connect();
        let get = client.get(target);
        let head = client.head_with(target, "");
        assert_eq!(head.status, get.status, "{target}");
        for field in ["content-type", "content-length", "etag", "last-modified", "location"] {
            assert_eq!(head.field(field), get.field(field), "{field} of {target}");
        }
        connection_keeps_its_word(&mut client, &head);
    }
}

#[test]
fn options_tells_the_methods() {
    let (_tree, server) = site();
    for target in ["*", "/hello.txt", "/none"] {
        let request = format!("OPTIONS {target} HTTP/1.1\r\nHost: h\r\n\r\n");
        let mut client = server.connect();
        let response = client.exchange(request);
        assert_eq!(response.status, 204, "{target}: {response:?}");
        for method in ["GET", "HEAD", "OPTIONS"] {
            assert!(response.lists("allow", method), "{target}: {response:?}");
        }
        client.assert_open("/hello.txt");
    }
}

#[test]
fn other_methods_are_told_what_is_allowed() {
    let (_tree, server) = site();
    for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE"] {
        let request = format!("{method} /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n");
        let response = refused(&server, &request, 405);
        assert!(["GET", "HEAD", "OPTIONS"].iter().all(|m| response.lists("allow", m)));
    }
    refused(&server, "CONNECT test:80 HTTP/1.1\r\nHost: test:80\r\n\r\n", 405);
    refused(&server, "BREW /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n", 501);
    refused(&server, "get /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n", 501);
}

#[test]
fn curl_gets_what_is_there() {
    let (tree, server) = site();
    let large = patterned(5_000_000);
    tree.file("large.bin", &large);
    let url = server.url();
    let Some(answer) = curl([format!("{url}/large.bin")]) else { skip!("no curl") };
    assert!(answer.exit == 0 && answer.output == large, "{}", answer.errors);

    let twice = curl(["--fail", &format!("{url}/hello.txt"), &format!("{url}/with%20space.txt")]);
    assert_eq!(twice.expect("curl").output, b"hellospace");

    let followed = curl(["--location", &format!("{url}/deep/er")]).expect("curl");
    assert_eq!(followed.output, b"deeper", "{}", followed.errors);

    let head = curl(["--head", &format!("{url}/hello.txt")]).expect("curl");
    assert!(head.output.starts_with(b"HTTP/1.1 200 OK\r\n"), "{}", head.errors);

    let missing = curl(["--fail", &format!("{url}/none")]).expect("curl");
    assert_eq!(missing.exit, 22, "curl saw an error status: {}", missing.errors);
}
