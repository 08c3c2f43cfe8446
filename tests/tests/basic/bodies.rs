//! Requests that carry content, which nobody wants here.

use crate::{refused, refused_for_good, site};

#[test]
fn an_unwanted_body_is_skipped_and_the_next_request_found() {
    let (_tree, server) = site();
    let body = "GET /none HTTP/1.1\r\nHost: h\r\n\r\n";
    let by_length = format!(
        "POST /hello.txt HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let chunked = format!(
        "POST /hello.txt HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n\
         {:x};note=1\r\n{body}\r\n0\r\nTrailer: x\r\n\r\n",
        body.len()
    );
    for request in [by_length, chunked] {
        let mut client = server.connect();
        client.send(request.clone() + &request + "GET /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!(client.receive().status, 405);
        assert_eq!(client.receive().status, 405);
        assert_eq!(client.receive().text(), "hello");
    }
    // A body with GET means nothing, but it is there.
    let mut client = server.connect();
    client.send(format!(
        "GET /hello.txt HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc{}",
        "GET /empty.bin HTTP/1.1\r\nHost: h\r\n\r\n"
    ));
    assert_eq!(client.receive().text(), "hello");
    assert_eq!(client.receive().text(), "");
}

#[test]
fn a_body_beyond_the_limit_is_413() {
    let (_tree, server) = site();
    let request = "POST /hello.txt HTTP/1.1\r\nHost: h\r\nContent-Length: 2000000\r\n\r\n";
    refused_for_good(&server, request, 413);

    let mut client = server.connect();
    client.send("POST /hello.txt HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    for _ in 0..40 {
        // The server may have answered and closed already.
        if client.try_send(&chunk).is_err() {
            break;
        }
    }
    // The answer may have left before the body turned out too long; there is no second one.
    let response = client.receive();
    assert!(matches!(response.status, 405 | 413), "{response:?}");
    client.assert_closed();
}

#[test]
fn a_refusal_reaches_a_client_that_is_still_sending() {
    let (_tree, server) = site();
    let mut client = server.connect();
    client.send("POST /hello.txt HTTP/1.1\r\nHost: h\r\nContent-Length: 9000000\r\n\r\n");
    for _ in 0..64 {
        if client.try_send(vec![b'x'; 16 * 1024]).is_err() {
            break;
        }
    }
    assert_eq!(client.receive().status, 413, "not lost in a reset");
}

#[test]
fn an_expectation_other_than_continue_is_417() {
    let (_tree, server) = site();
    refused(&server, "GET /hello.txt HTTP/1.1\r\nHost: h\r\nExpect: tea\r\n\r\n", 417);
}

#[test]
fn a_client_waiting_for_100_continue_is_not_left_waiting() {
    let (_tree, server) = site();
    let mut client = server.connect();
    client.send(
        "POST /hello.txt HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\
                 Expect: 100-continue\r\n\r\n",
    );
    // The server may answer at once, which makes the body needless, or ask for the body first.
    let mut response = client.receive();
    if response.status == 100 {
        client.send("abc");
        response = client.receive();
    }
    assert_eq!(response.status, 405);
    if response.says_close() {
        client.assert_closed();
    }
}
