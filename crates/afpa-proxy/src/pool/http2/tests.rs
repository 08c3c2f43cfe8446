use std::time::Duration;

use afpa_h2::frame::{self, flag, kind, setting};
use afpa_ring::CoreRing;
use tokio::net::UnixStream;
use tokio::task::LocalSet;
use tokio::time::timeout;

use super::*;
use crate::pool::Pool;
use crate::pool::http2::silence::PATIENCE_MS;
use crate::pool::socket::ServerSocket;
use crate::select::Wanted;

const PING: [u8; 9] = [0, 0, 8, kind::PING, 0, 0, 0, 0, 0];
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection whose server has said SETTINGS, and the server's end of it.
async fn connected() -> (Rc<Http2Connection>, UnixStream) {
    let (near, far) = UnixStream::pair().expect("a pair");
    let limits = Limits::default();
    let below = Carrier::Plain(ServerSocket::of_unix(near, &CoreRing::default()));
    let state = RefCell::new(State::new(below, limits, None));
    let connection = Rc::new(Http2Connection { made_for: MadeFor { tls: None, limits }, state });
    tokio::task::spawn_local(drive(Rc::clone(&connection)));
    let mut hello = Vec::new();
    frame::put_settings(&mut hello, &[]);
    send(&far, &hello).await;
    let ready = poll_fn(|cx| connection.poll_ready(cx));
    timeout(PATIENCE, ready).await.expect("in time").expect("it speaks HTTP/2");
    (connection, far)
}

async fn send(far: &UnixStream, bytes: &[u8]) {
    far.writable().await.expect("it is open");
    assert_eq!(far.try_write(bytes).expect("sent"), bytes.len());
}

/// Reads until the server is asked whether it is there.
async fn is_asked(far: &UnixStream) {
    let (mut all, mut room) = (Vec::new(), [0; 4096]);
    let read = async {
        while !all.windows(PING.len()).any(|header| header == PING) {
            far.readable().await.expect("it is open");
            if let Ok(n) = far.try_read(&mut room) {
                assert!(n > 0, "the connection has ended");
                all.extend_from_slice(&room[..n]);
            }
        }
    };
    timeout(PATIENCE, read).await.expect("in time");
}

async fn answer(far: &UnixStream) {
    let mut ack = Vec::new();
    frame::put(&mut ack, kind::PING, flag::ACK, 0, b"present?");
    send(far, &ack).await;
}

/// Opens a stream for a request that the server is silent about.
async fn asked(connection: &Rc<Http2Connection>) -> Http2Stream {
    let mut stream = connection.stream().expect("room");
    let request = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    poll_fn(|cx| stream.poll_write(cx, request)).await.expect("written");
    stream
}

fn tick(connection: &Http2Connection, now_ms: u64) {
    connection.tick(now_ms, true, u64::MAX);
}

/// A connection with a request whose server was silent for so long that it was asked, and the time of the question.
async fn silent() -> (Rc<Http2Connection>, UnixStream, Http2Stream, u64) {
    let (connection, far) = connected().await;
    let stream = asked(&connection).await;
    let silent = steady_ms() + LONG_MS;
    tick(&connection, silent);
    is_asked(&far).await;
    (connection, far, stream, silent)
}

#[tokio::test]
async fn a_server_that_says_nothing_gets_no_more_requests_and_keeps_those_that_it_has() {
    let test = async {
        let (connection, _far, _stream, silent) = silent().await;
        tick(&connection, silent + PATIENCE_MS - 1);
        assert!(connection.is_good(), "it may still answer");
        tick(&connection, silent + PATIENCE_MS);
        assert!(!connection.is_good() && connection.stream().is_none());
        assert!(connection.state.borrow().below.is_some(), "its answer may come");
    };
    LocalSet::new().run_until(test).await;
}

#[tokio::test]
async fn a_server_that_only_thinks_is_asked_once() {
    let test = async {
        let (connection, far, _stream, silent) = silent().await;
        answer(&far).await;
        let heard = timeout(PATIENCE, poll_fn(|cx| connection.poll_heard(cx)));
        assert!(heard.await.expect("in time"));
        for later in 1..100 {
            tick(&connection, silent + later * LONG_MS);
            assert!(connection.is_good() && !connection.state.borrow().silence.is_asked());
        }
    };
    LocalSet::new().run_until(test).await;
}

#[tokio::test]
async fn an_idle_connection_is_asked_only_for_a_request() {
    let test = async {
        let (connection, far) = connected().await;
        tick(&connection, steady_ms() + 10 * LONG_MS);
        assert!(!connection.state.borrow().silence.is_asked());
        let (here, ()) = tokio::join!(connection.answers(), async {
            is_asked(&far).await;
            answer(&far).await;
        });
        assert!(here);
        let (here, ()) = tokio::join!(connection.answers(), async {
            is_asked(&far).await;
            drop(far);
        });
        assert!(!here, "it has ended");
    };
    LocalSet::new().run_until(test).await;
}

/// Asks for a tunnel, once the server has said these settings, too.
async fn tunnel(
    connection: &Rc<Http2Connection>,
    far: &UnixStream,
    settings: &[(u16, u32)],
) -> Http2Stream {
    let (mut stream, mut frames) = (connection.stream().expect("room"), Vec::new());
    let settings = [settings, &[(setting::ENABLE_CONNECT_PROTOCOL, 1)]].concat();
    frame::put_settings(&mut frames, &settings);
    send(far, &frames).await;
    let offered = async {
        while !stream.takes_tunnels() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, offered).await.expect("in time");
    let request = b"GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: chat\r\n\r\n";
    poll_fn(|cx| stream.poll_write(cx, request)).await.expect("written");
    stream
}

#[tokio::test]
async fn what_a_server_has_said_is_read_though_it_hears_no_more() {
    let test = async {
        let (connection, far) = connected().await;
        let mut stream = tunnel(&connection, &far, &[]).await;
        let mut frames = Vec::new();
        // An answer of 200, content, its end, and RST_STREAM(NO_ERROR).
        frame::put(&mut frames, kind::HEADERS, flag::END_HEADERS, 1, b"\x88");
        frame::put(&mut frames, kind::DATA, flag::END_STREAM, 1, b"all");
        frame::put(&mut frames, kind::RST_STREAM, 0, 1, &[0; 4]);
        send(&far, &frames).await;
        let mut room = [0; 1000];
        let read = timeout(PATIENCE, poll_fn(|cx| stream.poll_read(cx, &mut room[..10])));
        assert_eq!(read.await.expect("in time").expect("a head"), 10);
        let write = poll_fn(|cx| stream.poll_write(cx, b"what nobody hears"));
        assert_eq!(write.await.expect("it stops nothing"), 17);
        poll_fn(|cx| stream.poll_shutdown(cx)).await.expect("there is nobody to tell");
        let rest = poll_fn(|cx| stream.poll_read(cx, &mut room)).await.expect("read");
        assert!(room[..rest].ends_with(b"\r\n\r\nall"));
        assert_eq!(poll_fn(|cx| stream.poll_read(cx, &mut room)).await.expect("its end"), 0);
    };
    LocalSet::new().run_until(test).await;
}

#[tokio::test]
async fn the_end_of_a_tunnel_waits_for_what_was_said_before() {
    let test = async {
        let (connection, far) = connected().await;
        let window = [(setting::INITIAL_WINDOW_SIZE, 3)];
        let mut stream = tunnel(&connection, &far, &window).await;
        poll_fn(|cx| stream.poll_write(cx, b"abcd")).await.expect("written");
        let ended = poll_fn(|cx| Poll::Ready(stream.poll_shutdown(cx).is_ready()));
        assert!(!ended.await, "one byte is still here");
        let mut frames = Vec::new();
        frame::put_window_update(&mut frames, 1, 1);
        send(&far, &frames).await;
        let ended = timeout(PATIENCE, poll_fn(|cx| stream.poll_shutdown(cx)));
        ended.await.expect("in time").expect("the server was told");
    };
    LocalSet::new().run_until(test).await;
}

#[tokio::test]
async fn connections_that_a_rush_needed_are_given_up_slowly() {
    let test = async {
        let (servers, wanted) = (Http2Servers::default(), Wanted::default());
        let mut all = Vec::new();
        for _ in 0..6 {
            let (connection, far) = connected().await;
            let connecting = servers.may_connect((7, &wanted), 1).expect("one more");
            let stream = connecting.made(&connection, Idle { ms: 60_000, most: 2 });
            drop(stream.expect("a stream"));
            all.push((connection, far));
        }
        let now = steady_ms();
        let mut left = Vec::new();
        for second in [1, 10, 11, 12, 13, 14] {
            servers.tick(now + second * 1_000);
            left.push(all.iter().filter(|(connection, _)| connection.is_good()).count());
        }
        assert_eq!(left, [6, 4, 3, 2, 2, 2], "half of those beyond two, when they have rested");
    };
    LocalSet::new().run_until(test).await;
}

#[tokio::test]
async fn connections_that_carry_nothing_give_way_when_descriptors_are_short() {
    let test = async {
        let (pool, wanted) = (Pool::default(), Wanted::default());
        let mut all = Vec::new();
        for is_used in [false, false, true] {
            let (connection, far) = connected().await;
            let connecting = pool.http2.may_connect((7, &wanted), 1).expect("one more");
            let stream = connecting.made(&connection, Idle { ms: 60_000, most: 4 });
            all.push((connection, far, stream.filter(|_| is_used)));
        }
        let there = || {
            let there = |connection: &Http2Connection| connection.state.borrow().below.is_some();
            all.iter().map(|(connection, ..)| there(connection)).collect::<Vec<_>>()
        };
        assert!(pool.relieve());
        assert_eq!(there().into_iter().filter(|is_there| *is_there).count(), 2);
        assert!(pool.relieve());
        assert_eq!(there(), [false, false, true], "a request has the last one");
        assert!(!pool.relieve());
    };
    LocalSet::new().run_until(test).await;
}
