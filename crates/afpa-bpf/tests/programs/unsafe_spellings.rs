//! Unsafe requests as adversaries write and cut them: V5 of `docs/rules`.

use afpa_bpf::{FastPath, Reason, Settings, monotonic_ns};
use afpa_testkit::eventually;
use afpa_testkit::packet::Segment;
use afpa_testkit::tcp::RawClient;

use crate::support::World;
use crate::support::lab::settings;
use crate::support::socketless::Bench;
use crate::unsafe_requests::{await_answered, await_ended, is_answered, pin, request, text, world};
use crate::unsound::sum_ip;

/// The programs are not sure of it, and nginx keeps the connection: they lose count of its requests.
const ODD: &str = "GET /user.html HTTP/1.1\nHost: server\n\n";

/// Sends the segments on a connection of its own, which is as `before` has made it.
fn send(world: &World, fast_path: &FastPath, before: &[&str], pieces: &[&[u8]]) -> RawClient {
    let mut client = world.connected();
    for bytes in before {
        fast_path.clock.beat();
        client.ask(&text(&client, bytes));
    }
    for piece in pieces {
        fast_path.clock.beat();
        client.push(&Segment { payload: piece.to_vec(), ..client.get("/") });
    }
    client
}

/// Lines of requests that end the answers for the target `{}`, without the end of the line.
const LENIENT: [&str; 13] = [
    "post {} HTTP/1.1",
    "!odd {} HTTP/1.1",
    "9 {} HTTP/1.1",
    "POST\t{} HTTP/1.1",
    "POST {}\tHTTP/1.1",
    "POST {}",
    "\nPOST {} HTTP/1.0",
    "\r\n\r\n\n\n\n\n\n\n\n\n\n\nPOST   {} HTTP/1.0",
    "POST HTTP://SHOP.example{} HTTP/1.1",
    "POST hTTps://user:word@shop.example:80{} HTTP/1.1",
    "POST coap+tcp://shop.example{} HTTP/1.1",
    "POST http://a-name-that-is-much-longer-than-any-that-selects-a-site-here.shop.example{} HTTP/1.1",
    "PUT {} HTTP/3.7",
];

#[test]
fn what_some_server_takes_for_an_unsafe_request_is_noted() {
    let Some((world, fast_path)) = world() else { return };
    for (at, line) in LENIENT.iter().enumerate() {
        for (end, line_end) in ["\r\n", "\n"].iter().enumerate() {
            let path = format!("/{at}/{end}?x");
            pin(&fast_path, &path);
            await_answered(&world, &fast_path, &path);
            let (line, before) = (line.replace("{}", &path) + line_end, monotonic_ns());
            send(&world, &fast_path, &[], &[line.as_bytes()]);
            await_ended(&world, &fast_path, &path, before, &line);
        }
    }
}

#[test]
fn a_target_in_another_spelling_may_be_any() {
    let Some((world, fast_path)) = world() else { return };
    let long = format!("/{}/../answer", "x".repeat(400));
    let odd = [
        &long,
        "/%61nswer",
        "/%41nswer",
        "/%c3%b6",
        "/%zz",
        "//answer",
        "/./answer",
        "/x/../answer",
        "/x/%2E./answer",
        "/answer#",
        "/answer/.",
        "/x/..?x",
        "/\u{f6}",
        "http://shop.example",
        "http://shop.example:80?x",
        "http://shop.example/x/../answer",
        "http://shop.example//answer",
    ];
    for target in odd {
        pin(&fast_path, "/answer");
        let before = fast_path.reports.noted(b"/answer");
        send(&world, &fast_path, &[], &[request("POST", target).as_bytes()]);
        eventually(&format!("a note of {target}"), || fast_path.reports.noted(b"/answer") > before);
    }
    assert!(!is_answered(&world, &fast_path, "/answer"));
}

#[test]
fn a_request_line_may_be_cut_anywhere() {
    let Some((world, fast_path)) = world() else { return };
    let user = request("GET", "/user.html");
    let kinds: [&[&str]; 4] = [&[], &[&user], &[ODD], &[&user, ODD]];
    for (kind, before) in kinds.iter().enumerate() {
        for at in [1, 3, 6, 7, 8, 11, 15] {
            let path = format!("/{kind}/{at:02}");
            pin(&fast_path, &path);
            let whole = request("DELETE", &path);
            let (first, rest) = whole.as_bytes().split_at(at);
            let asked = monotonic_ns();
            send(&world, &fast_path, before, &[first, rest]);
            await_ended(&world, &fast_path, &path, asked, &format!("{before:?}, cut at {at}"));
        }
    }
}

/// A request in pieces that begins with GET is a safe one, not one of an unknown method.
#[test]
fn a_safe_request_may_be_cut_anywhere() {
    let Some((world, fast_path)) = world() else { return };
    let whole = request("GET", "/answer");
    for at in [1, 3, 4, 7, 11] {
        let (first, rest) = whole.as_bytes().split_at(at);
        send(&world, &fast_path, &[ODD], &[first, rest]).take_response(); // it has arrived
        assert_eq!(fast_path.reports.noted(b"/answer"), 0, "cut at {at}");
    }
}

/// The content of an unsafe request may look like one that is safe, or like another.
#[test]
fn the_response_is_known_whatever_the_content_looks_like() {
    let Some(mut world) = World::new() else { return };
    world.nginx("location /kept/ { dav_methods PUT; }"); // it reads the content before it answers
    world.await_server();
    let Some(fast_path) = world.fast_path(settings()) else { return };
    fast_path.reports.note_requests();
    for (path, content) in
        [("/kept/get", "GET /x HTTP/1.1\r\n"), ("/kept/put", "PUT /x HTTP/1.1\r\n")]
    {
        let mut client = world.connected();
        let length = content.len() + 1;
        let head = format!("PUT {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
        for piece in [&head[..], content] {
            fast_path.clock.beat();
            client.push(&text(&client, piece));
        }
        let asked = monotonic_ns();
        client.ask(&text(&client, "!"));
        let noted = fast_path.reports.noted(path.as_bytes());
        assert!(noted > asked, "{path}: the response came after the content");
    }
}

/// P1: without a connection nothing of it reaches a server.
#[test]
fn what_a_stranger_makes_up_is_not_noted() {
    let Some((world, fast_path)) = world() else { return };
    let client = world.raw();
    for line in [request("POST", "/answer"), request("POST", "//answer")] {
        client.send(&text(&client, &line));
    }
    // A request that comes later was sent later.
    send(&world, &fast_path, &[], &[request("POST", "/later").as_bytes()]);
    eventually("the later one is noted", || fast_path.reports.noted(b"/later") > 0);
    assert_eq!(fast_path.reports.noted(b"/answer"), 0);
}

/// In the first fragment of a packet, whose others have no ports.
#[test]
fn a_request_may_begin_in_a_fragment() {
    let Some((world, fast_path)) = world() else { return };
    let fragment = |line: &str| {
        let client = world.connected();
        fast_path.clock.beat();
        let mut frame = client.frame(&text(&client, line));
        frame[20] = 0x20; // more fragments follow
        sum_ip(&mut frame);
        client.send_frame(&frame);
    };
    fragment(&request("POST", "/answer"));
    eventually("it is noted", || fast_path.reports.noted(b"/answer") > 0);
    assert_eq!(fast_path.reports.noted(b"/other"), 0);
    fragment("POST /oth");
    eventually("it may be any", || fast_path.reports.noted(b"/other") > 0);
}

/// The kernel's TCP does not know it yet, and no program will.
#[test]
fn a_connection_for_which_there_was_no_room_is_read_too() {
    let Some(bench) = Bench::with(Settings { flows: 1, ..Settings::default() }) else { return };
    bench.fast_path.reports.note_requests();
    let mut client = bench.raw(); // the connection by which it is known has the place
    client.connect();
    client.ask(&text(&client, &request("POST", "/user.html")));
    assert_eq!(bench.count(Reason::SocketlessToKernel), 1);
    assert!(
        bench.fast_path.reports.noted(b"/user.html") > monotonic_ns(),
        "its response will not be known"
    );
}
