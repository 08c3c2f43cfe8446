//! Another implementation as the client: the two understand each other's frames.

use std::pin::pin;

use afpa_h2::{Connection, Event, Limits, RequestHead, StreamId, hpack::encode};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// A server that answers each request with its own head and content: `x-head` has the length of the head, and the
/// content is the head and the client's content.
async fn echo(mut stream: DuplexStream, limits: Limits) {
    let (mut connection, mut head) = (Connection::new(limits), RequestHead::default());
    let mut answers: Vec<(StreamId, Vec<u8>, bool)> = Vec::new();
    let (mut input, mut room) = (Vec::new(), [0; 4096]);
    loop {
        loop {
            let (n, event) = connection.receive(&input, &mut head, 0).expect("no fatal error");
            let Some(event) = event else {
                input.drain(..n);
                break;
            };
            match event {
                Event::Request { id, end } => answers.push((id, head.text().to_vec(), end)),
                Event::Data { id, bytes, end } => {
                    let answer = answers.iter_mut().find(|answer| answer.0 == id).unwrap();
                    answer.1.extend_from_slice(bytes);
                    answer.2 |= end;
                    let length = bytes.len();
                    connection.read(id, length);
                }
                Event::Trailers { id } => {
                    let answer = answers.iter_mut().find(|answer| answer.0 == id).unwrap();
                    answer.1.extend_from_slice(head.text());
                    answer.2 = true;
                }
                Event::Reset { id } => answers.retain(|answer| answer.0 != id),
            }
            input.drain(..n);
        }
        for (id, content, whole) in &mut answers {
            if std::mem::take(whole) {
                connection.send_head(*id, false, |out| {
                    encode::put_status(out, 200);
                    encode::put_field(out, b"X-Length", content.len().to_string().as_bytes());
                });
                connection.set_pending(*id, Some(content.len() as u64));
            }
        }
        while let Some((id, room)) = connection.next_to_send() {
            let at = answers.iter().position(|answer| answer.0 == id).unwrap();
            let content = &mut answers[at].1;
            let n = room.min(content.len());
            let end = n == content.len();
            connection.send_data(id, &content[..n], end);
            content.drain(..n);
            connection.set_pending(id, Some(content.len() as u64));
            if end {
                answers.remove(at);
            }
        }
        let output = std::mem::take(connection.output());
        if stream.write_all(&output).await.is_err() {
            return;
        }
        match stream.read(&mut room).await {
            Ok(0) | Err(_) => return,
            Ok(n) => input.extend_from_slice(&room[..n]),
        }
    }
}

/// Sends each request with its content and trailers, all at the same time; returns the contents of the responses.
fn exchange(
    requests: Vec<(Request<()>, Vec<u8>, Option<HeaderMap>)>,
    (limits, window): (Limits, u32),
) -> Vec<Vec<u8>> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let (near, far) = tokio::io::duplex(1000);
        let server = tokio::spawn(echo(far, limits));
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(window).initial_connection_window_size(window);
        let (client, connection) = builder.handshake::<_, Bytes>(near).await.unwrap();
        let driver = tokio::spawn(connection);
        let mut tasks = Vec::new();
        for (request, content, trailers) in requests {
            let mut client = client.clone().ready().await.unwrap();
            tasks.push(tokio::spawn(async move {
                let ends = content.is_empty() && trailers.is_none();
                let (response, mut send) = client.send_request(request, ends).unwrap();
                if !content.is_empty() {
                    send.send_data(content.into(), trailers.is_none()).unwrap();
                }
                if let Some(trailers) = trailers {
                    send.send_trailers(trailers).unwrap();
                }
                let mut response = pin!(response.await.unwrap());
                let announced = response.headers()["x-length"].to_str().unwrap().to_owned();
                let mut got = Vec::new();
                while let Some(bytes) = response.body_mut().data().await {
                    let bytes = bytes.unwrap();
                    response.body_mut().flow_control().release_capacity(bytes.len()).unwrap();
                    got.extend_from_slice(&bytes);
                }
                assert_eq!(announced, got.len().to_string());
                got
            }));
        }
        let mut all = Vec::new();
        for task in tasks {
            all.push(task.await.unwrap());
        }
        drop(client);
        driver.abort();
        server.abort();
        all
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn heads_and_contents_arrive_as_they_were_sent(
        asked in proptest::collection::vec(
            (
                "/[a-zA-Z0-9._~%/-]{0,60}",
                proptest::collection::vec(("x-[a-z0-9]{1,12}", "[!-~]([ -~]{0,60}[!-~])?"), 0..8),
                prop_oneof![Just(0usize), 1usize..100, 1usize..40_000],
                any::<bool>(),
            ),
            1..12,
        ),
        stream_window in prop_oneof![Just(100u32), Just(65_535), Just(1 << 20)],
        window in prop_oneof![Just(65_535u32), Just(1 << 20)],
    ) {
        let mut requests = Vec::new();
        let mut expected = Vec::new();
        for (path, fields, length, trailers) in asked {
            let mut request = Request::post(format!("http://host.example{path}")).body(()).unwrap();
            let mut head = format!("POST {path} HTTP/1.1\r\nHost: host.example\r\n");
            for (name, value) in fields {
                let name = http::HeaderName::try_from(name).unwrap();
                if request.headers().contains_key(&name) {
                    continue;
                }
                head += &format!("{name}: {value}\r\n");
                request.headers_mut().insert(name, HeaderValue::try_from(value).unwrap());
            }
            let content: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let trailers = (trailers && length > 0).then(|| {
                HeaderMap::from_iter([("x-sum".parse().unwrap(), HeaderValue::from(7))])
            });
            if length > 0 {
                head += "Transfer-Encoding: chunked\r\n";
            }
            head += "\r\n";
            let mut whole = [head.as_bytes(), &content].concat();
            if trailers.is_some() {
                whole.extend_from_slice(b"x-sum: 7\r\n");
            }
            expected.push(whole);
            requests.push((request, content, trailers));
        }
        let limits = Limits { stream_window, ..Limits::default() };
        let got = exchange(requests, (limits, window));
        for (got, mut expected) in got.into_iter().zip(expected) {
            // Fields keep their order only among those of one name.
            let lines = |whole: &[u8]| {
                let mut lines: Vec<Vec<u8>> =
                    whole.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
                lines.sort();
                lines
            };
            prop_assert_eq!(lines(&got), lines(&std::mem::take(&mut expected)));
        }
    }
}
