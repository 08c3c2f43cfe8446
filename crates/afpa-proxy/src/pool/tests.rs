use std::future::poll_fn;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream as Peer;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use afpa_ring::{PreparedRing, Ring};
use tokio::net::UnixStream;

use super::socket::ServerSocket;
use super::*;
use crate::select::{Address, Tally, Wanted};

/// A connection, and the server's end of it.
fn pair() -> (ServerStream, Peer) {
    pair_of(&CoreRing::default())
}

fn pair_of(ring: &CoreRing) -> (ServerStream, Peer) {
    let (near, far) = Peer::pair().expect("a pair");
    near.set_nonblocking(true).expect("a setting");
    let near = UnixStream::from_std(near).expect("registered");
    (ServerStream::Plain(ServerSocket::of_unix(near, ring)), far)
}

/// Lets the event loop learn what has happened.
async fn look() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

/// A server that wants connections.
#[derive(Default)]
struct Wants(Wanted, Tally);

impl Wants {
    fn server(&self) -> Server<'_> {
        Server { id: 7, name: "app", wanted: &self.0, tally: &self.1 }
    }
}

#[tokio::test]
async fn the_connection_that_was_used_last_is_used_first() {
    let (pool, app) = (Pool::default(), Wants::default());
    let ((first, _a), (second, mut b)) = (pair(), pair());
    pool.keep(app.server(), first, (0, 1000), 9);
    pool.keep(app.server(), second, (10, 1010), 9);
    assert!(pool.take(8, 10, 1000).is_none(), "another server's");
    let mut taken = pool.take(7, 10, 1000).expect("one is idle");
    b.write_all(b"x").expect("sent");
    look().await;
    assert!(!taken.is_silent(), "it is the second");
    assert_eq!(pool.waiting(), (1, 0));
}

#[tokio::test]
async fn dead_talkative_and_old_connections_are_not_given_out() {
    let (pool, app) = (Pool::default(), Wants::default());
    let ((dead, a), (talkative, mut b)) = (pair(), pair());
    pool.keep(app.server(), dead, (0, 1000), 9);
    pool.keep(app.server(), talkative, (0, 1000), 9);
    drop(a);
    b.write_all(b"HTTP/1.1 408 Request Timeout\r\n").expect("sent");
    look().await;
    assert!(pool.take(7, 1, 1000).is_none());
    let (old, _c) = pair();
    pool.keep(app.server(), old, (0, 1000), 9);
    assert!(pool.take(7, 1000, 5000).is_none(), "idle for too long");
    assert!(pool.take(7, 300, 200).is_none(), "idle for longer than the caller wants");
    assert_eq!(pool.waiting(), (1, 0), "others may want it");
    assert!(pool.take(7, 300, 300).is_some());
}

/// A core with a ring that is used, and a pool on it.
fn by_completion() -> Option<(Ring, CoreRing, Pool)> {
    let prepared = PreparedRing::new(&afpa_ring::Settings { buffers: 8, ..Default::default() });
    let ring = match prepared {
        Ok(prepared) => prepared.enable().expect("this thread owns it"),
        Err(error) => {
            println!("SKIP: the kernel refuses io_uring: {error}");
            return None;
        }
    };
    let core = CoreRing::new(Some(ring.clone()));
    core.set_used(true);
    Some((ring, core.clone(), Pool::new(core)))
}

/// Turns the ring until `poll` is ready.
async fn until<T>(ring: &Ring, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
    let turning = poll_fn(|cx| {
        let polled = poll(cx);
        ring.turn().expect("a turn");
        cx.waker().wake_by_ref();
        polled
    });
    tokio::time::timeout(Duration::from_secs(5), turning).await.expect("in time")
}

/// One exchange: a question that arrives, and an answer that comes back.
async fn exchange(ring: &Ring, stream: &mut ServerStream, far: &mut Peer, size: usize) {
    let mut question = *b"question";
    let sent = until(ring, |cx| stream.poll_write(cx, &question)).await;
    assert_eq!(sent.expect("sent"), question.len());
    far.read_exact(&mut question).expect("read");
    assert_eq!(&question, b"question");
    let answer: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
    let (mut rest, mut received, mut room) = (&answer[..], Vec::new(), vec![0; 100_000]);
    far.set_nonblocking(true).expect("a setting");
    while received.len() < size {
        while let Ok(n @ 1..) = far.write(rest) {
            rest = &rest[n..];
        }
        let n = until(ring, |cx| stream.poll_read(cx, &mut room)).await.expect("received");
        received.extend_from_slice(&room[..n]);
    }
    far.set_nonblocking(false).expect("a setting");
    assert!(received == answer, "{size}");
}

#[tokio::test]
async fn by_completion_dead_and_talkative_connections_are_not_given_out() {
    let Some((ring, core, pool)) = by_completion() else { return };
    let app = Wants::default();
    let kept = async |dies: bool| {
        let (mut stream, mut far) = pair_of(&core);
        // It enters the ring with the second one.
        exchange(&ring, &mut stream, &mut far, 102).await;
        exchange(&ring, &mut stream, &mut far, 102).await;
        assert_eq!(ring.counts().under_way, 1, "a receive waits");
        pool.keep(app.server(), stream, (0, 1000), 9);
        match dies {
            true => drop(far),
            false => far.write_all(b"HTTP/1.1 408 Request Timeout\r\n").expect("sent"),
        }
    };
    for dies in [true, false] {
        kept(dies).await;
        ring.turn().expect("a turn");
        assert!(pool.take(7, 1, 1000).is_none(), "{dies}");
        until(&ring, |_| if ring.counts().sockets == 0 { Poll::Ready(()) } else { Poll::Pending })
            .await;
    }
}

#[tokio::test]
async fn a_kept_connection_follows_the_strategy_of_its_core() {
    let Some((ring, core, pool)) = by_completion() else { return };
    let app = Wants::default();
    let (mut stream, mut far) = pair_of(&core);
    for round in 0..6 {
        let used = round % 2 == 0;
        core.set_used(used);
        for _ in 0..3 {
            exchange(&ring, &mut stream, &mut far, 102).await;
            pool.keep(app.server(), stream, (0, 1000), 9);
            stream = pool.take(7, 1, 1000).expect("it is silent");
        }
        assert_eq!(ring.counts().sockets, usize::from(used), "{round}");
    }
}

/// The ring of this test has eight buffers of 4 KB.
#[tokio::test]
async fn without_buffers_and_held_back_an_exchange_goes_on_by_readiness() {
    let Some((ring, core, _)) = by_completion() else { return };
    let (mut stream, mut far) = pair_of(&core);
    let (mut other, mut other_far) = pair_of(&core);
    for _ in 0..2 {
        exchange(&ring, &mut stream, &mut far, 102).await;
        exchange(&ring, &mut other, &mut other_far, 102).await;
    }
    assert_eq!(ring.counts().sockets, 2);
    // It takes all buffers, because nobody reads.
    other_far.set_nonblocking(true).expect("a setting");
    while other_far.write(&[7; 10_000]).is_ok() {}
    ring.turn().expect("a turn");
    assert!(ring.counts().buffers >= 4, "{:?}", ring.counts());
    exchange(&ring, &mut stream, &mut far, 1_000_000).await;
    assert!(ring.counts().sockets <= 1, "it has left");
    // After some short ones it is back.
    drop((other, other_far));
    for _ in 0..10 {
        exchange(&ring, &mut stream, &mut far, 102).await;
    }
    assert_eq!(ring.counts().sockets, 1);
    exchange(&ring, &mut stream, &mut far, 1_000_000).await;
    assert_eq!(ring.counts().buffers, 0);
}

/// So many connections that were in use until `ms`, and the server's ends.
fn rush(pool: &Pool, app: &Wants, count: usize, ms: u64) -> Vec<Peer> {
    let keep = |_| {
        let (near, far) = pair();
        pool.keep(app.server(), near, (ms, ms + 60_000), 4);
        far
    };
    (0..count).map(keep).collect()
}

#[tokio::test]
async fn what_a_rush_needed_is_there_in_the_next_one_and_given_up_slowly() {
    let (pool, app) = (Pool::default(), Wants::default());
    let _ends = rush(&pool, &app, 100, 0);
    assert_eq!(pool.waiting(), (100, 0), "whatever may rest");
    for _ in 0..3 {
        let all: Vec<_> = (0..100).filter_map(|_| pool.take(7, 1_000, u64::MAX)).collect();
        assert_eq!(all.len(), 100, "no connection has to be made");
        all.into_iter().for_each(|one| pool.keep(app.server(), one, (1_000, 61_000), 4));
    }
    pool.tick(1_000 + REST_MS - 1);
    assert_eq!(pool.waiting(), (100, 0), "the next rush may come");
    let mut left = 100;
    let mut steps = Vec::new();
    for second in 0..9 {
        pool.tick(1_000 + REST_MS + second * 1_000);
        steps.push(left - pool.waiting().0);
        left = pool.waiting().0;
    }
    assert_eq!(steps, [48, 24, 16, 8, 0, 0, 0, 0, 0], "half of those that are too many");
    assert_eq!(left, 4, "these may rest until their time is over");
    pool.tick(61_000);
    assert_eq!(pool.waiting(), (0, 0));
}

#[tokio::test]
async fn a_connection_that_was_needed_lately_is_not_given_up_for_others_that_were_not() {
    let (pool, app) = (Pool::default(), Wants::default());
    let _old = rush(&pool, &app, 20, 0);
    let _new = rush(&pool, &app, 20, 3_000);
    pool.tick(REST_MS);
    assert_eq!(pool.waiting(), (24, 0), "sixteen of the old ones");
    pool.tick(REST_MS + 1_000);
    assert_eq!(pool.waiting(), (20, 0), "the other four");
    pool.tick(REST_MS + 2_000);
    assert_eq!(pool.waiting(), (20, 0), "the new ones were in use");
}

#[tokio::test]
async fn with_none_that_may_wait_none_is_kept() {
    let (pool, app) = (Pool::default(), Wants::default());
    let (near, _far) = pair();
    pool.keep(app.server(), near, (0, 1000), 0);
    assert_eq!(pool.waiting(), (0, 0));
}

/// A connection over TCP, and the server's end of it.
async fn tcp_pair(pool: &Pool, app: &Wants) -> (ServerStream, std::net::TcpStream) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = Address::Tcp(listener.local_addr().expect("its address"));
    let to = To { address: &address, name: "app", sources: &[], preface: &[], tally: Some(&app.1) };
    let near = ServerStream::connect(pool.connector(), to, None).await.expect("connected");
    let (far, _) = listener.accept().expect("accepted");
    far.set_read_timeout(Some(Duration::from_secs(5))).expect("a setting");
    (near, far)
}

/// Whether the server's end sees a reset, and not the end.
fn is_reset(far: &mut std::net::TcpStream) -> bool {
    match far.read(&mut [0]) {
        Ok(0) => false,
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => true,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn beyond_a_few_connections_that_we_close_leave_no_port_behind() {
    let (pool, app) = (Pool::default(), Wants::default());
    let count = MOST_COURTESIES as usize + 8;
    let mut ends = Vec::new();
    for _ in 0..count {
        let (near, far) = tcp_pair(&pool, &app).await;
        pool.keep(app.server(), near, (0, 60_000), 1_000);
        ends.push(far);
    }
    pool.clear();
    let resets = ends.iter_mut().filter_map(|far| is_reset(far).then_some(())).count();
    assert_eq!(resets, 8);
    let counts = app.1.counts();
    assert_eq!((counts.opened, counts.closed_by_us), (count as u64, count as u64));
    pool.tick(1_000);
    let (near, mut far) = tcp_pair(&pool, &app).await;
    pool.keep(app.server(), near, (0, 1_000), 1_000);
    pool.tick(2_000);
    assert!(!is_reset(&mut far), "a second later there is room for courtesy");
}

#[tokio::test]
async fn a_server_closes_first_where_it_can() {
    let (pool, app) = (Pool::default(), Wants::default());
    // It has closed already, or does so while others join the list.
    let (closed, far) = tcp_pair(&pool, &app).await;
    drop(far);
    look().await;
    pool.leave_to_server(closed, 0);
    assert_eq!(pool.waiting(), (0, 0));
    for _ in 0..40 {
        let (near, far) = tcp_pair(&pool, &app).await;
        pool.leave_to_server(near, 0);
        drop(far);
        look().await;
    }
    assert!(pool.waiting().1 <= 2, "{:?}", pool.waiting());
    pool.tick(10);
    let counts = app.1.counts();
    assert_eq!((counts.closed_by_us, counts.closed_by_server, counts.open()), (0, 41, 0));
    // One that does not close, although it said so.
    let (late, mut far) = tcp_pair(&pool, &app).await;
    pool.leave_to_server(late, 0);
    look().await;
    pool.tick(CLOSING_MS - 1);
    assert_eq!(pool.waiting(), (0, 1));
    pool.tick(CLOSING_MS);
    assert_eq!(pool.waiting(), (0, 0));
    assert!(is_reset(&mut far), "no port rests for that");
}

/// Nobody looks at the list meanwhile.
#[tokio::test]
async fn a_process_of_php_by_tcp_is_let_go_as_soon_as_it_has_ended() {
    let ends = async {
        let (pool, app) = (Pool::default(), Wants::default());
        let (near, mut far) = tcp_pair(&pool, &app).await;
        let ServerStream::Plain(socket) = near else { unreachable!("it is plain") };
        let stream = FastCgiStream::new(socket, "php", FastCgiTerms::default());
        pool.leave_to_server(ServerStream::FastCgi(Box::new(stream)), 0);
        look().await;
        assert_eq!(pool.waiting(), (0, 1));
        far.shutdown(std::net::Shutdown::Write).expect("its direction ends");
        while pool.waiting().1 > 0 {
            look().await;
        }
        assert_eq!(far.read(&mut [0]).expect("the end"), 0);
    };
    let all = tokio::task::LocalSet::new();
    let ended = tokio::time::timeout(Duration::from_secs(60), all.run_until(ends));
    ended.await.expect("its end is enough");
}

/// The script has announced its content, and works on behind it: a database must not lose what it writes then.
#[tokio::test]
async fn a_script_that_works_on_behind_its_content_is_not_broken_off() {
    for keeps in [false, true] {
        let all = tokio::task::LocalSet::new();
        let ended = all.run_until(work_on(keeps));
        tokio::time::timeout(Duration::from_secs(60), ended).await.expect("it ends");
    }
}

async fn work_on(keeps: bool) {
    let (pool, app) = (Pool::default(), Wants::default());
    let (near, mut far) = tcp_pair(&pool, &app).await;
    let ServerStream::Plain(socket) = near else { unreachable!("it is plain") };
    let terms = FastCgiTerms { keeps, head_limit: 1024, ..FastCgiTerms::default() };
    let mut stream = Box::new(FastCgiStream::new(socket, "php", terms));
    let asked = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    poll_fn(|cx| stream.poll_write(cx, asked)).await.expect("asked");
    let record = |kind: u8, content: &[u8]| {
        let header = [1, kind, 0, 1, 0, u8::try_from(content.len()).expect("short"), 0, 0];
        [&header[..], content].concat()
    };
    far.write_all(&record(6, b"Content-Length: 5\r\n\r\nhello")).expect("answered");
    let (mut got, mut room) = (Vec::new(), [0; 256]);
    while !got.ends_with(b"hello") {
        let n = poll_fn(|cx| stream.poll_read(cx, &mut room)).await.expect("an answer");
        got.extend_from_slice(&room[..n]);
    }
    let hour = Duration::from_secs(3600);
    pool.ending.end_with_server(stream, hour);
    let is_connected = |far: &mut std::net::TcpStream| {
        far.set_nonblocking(true).expect("a setting");
        let mut request = [0; 4096];
        let outcome = loop {
            match far.read(&mut request) {
                Ok(1..) => {}
                other => break other,
            }
        };
        far.set_nonblocking(false).expect("a setting");
        outcome.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    };
    for _ in 0..3 {
        far.write_all(&record(7, b"it works on\n")).expect("a message");
        look().await;
        assert_eq!(pool.waiting(), (0, 1));
        assert!(is_connected(&mut far));
    }
    far.write_all(&record(3, &[0; 8])).expect("the end of the request");
    if !keeps {
        look().await;
        assert!(is_connected(&mut far), "the server ends it first");
        far.shutdown(std::net::Shutdown::Write).expect("its direction ends");
    }
    while pool.waiting().1 > 0 {
        look().await;
    }
    assert_eq!(is_reset(&mut far), keeps, "a connection that ends first here leaves no port");
}

/// Its content is held, and counted, where it was gathered.
#[tokio::test]
async fn a_connection_of_php_that_takes_nothing_holds_little_of_a_long_request() {
    let (near, _far) = pair();
    let ServerStream::Plain(socket) = near else { unreachable!("it is plain") };
    let mut stream = FastCgiStream::new(socket, "php", FastCgiTerms::default());
    let head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8388608\r\n\r\n";
    let content = vec![b'x'; 8 << 20];
    let request = [&head[..], &content[..]].concat();
    let (mut cx, mut taken) = (Context::from_waker(Waker::noop()), 0);
    while let Poll::Ready(n) = stream.poll_write(&mut cx, &request[taken..]) {
        taken += n.expect("the server is there");
    }
    assert!(taken < 1 << 20, "{taken} B");
}

#[tokio::test]
async fn one_connection_that_was_closed_brings_only_old_ones_under_suspicion() {
    let (pool, app) = (Pool::default(), Wants::default());
    let _old = rush(&pool, &app, 3, 0);
    let _new = rush(&pool, &app, 5, 900);
    pool.forget(7, 1_500);
    assert_eq!(pool.waiting(), (5, 3), "the old ones are left to the server");
}

#[tokio::test]
async fn what_nobody_uses_gives_way_when_descriptors_are_short() {
    let (pool, app) = (Pool::default(), Wants::default());
    assert!(!pool.relieve());
    let _ends = rush(&pool, &app, 5, 0);
    let (near, _far) = pair();
    pool.leave_to_server(near, 0);
    assert!(pool.relieve());
    assert_eq!(pool.waiting(), (2, 0));
    // Another core has no port.
    app.1.lacked(crate::select::Lack::Ports, 500);
    pool.tick(999);
    assert_eq!(pool.waiting(), (2, 0), "they were in use a moment ago");
    pool.tick(1_000);
    assert_eq!(pool.waiting(), (0, 0));
}

/// A script may work on behind its content, so they are the last.
#[tokio::test]
async fn connections_of_php_that_end_give_way_where_nothing_else_can() {
    tokio::task::LocalSet::new().run_until(give_way_at_last()).await;
}

async fn give_way_at_last() {
    let (pool, app) = (Pool::default(), Wants::default());
    let mut ends = Vec::new();
    for _ in 0..3 {
        let (near, far) = tcp_pair(&pool, &app).await;
        let ServerStream::Plain(socket) = near else { unreachable!("it is plain") };
        let stream = FastCgiStream::new(socket, "php", FastCgiTerms::default());
        pool.leave_to_server(ServerStream::FastCgi(Box::new(stream)), 0);
        ends.push(far);
    }
    let (other, _far) = pair();
    pool.leave_to_server(other, 0);
    look().await;
    assert_eq!(pool.waiting(), (0, 4));
    assert!(pool.relieve());
    assert_eq!(pool.waiting(), (0, 3), "there was another one");
    assert!(pool.relieve());
    assert_eq!(pool.waiting(), (0, 1));
    assert!(ends.iter_mut().take(2).all(is_reset), "the longest awaited go first");
    pool.clear();
    assert_eq!(pool.waiting(), (0, 1), "a drain breaks no script off");
    assert!(pool.relieve());
    assert_eq!(pool.waiting(), (0, 0));
    assert!(is_reset(&mut ends[2]));
    assert!(!pool.relieve());
}

#[tokio::test]
async fn connections_to_a_server_that_gets_no_more_requests_are_closed() {
    let (pool, app) = (Pool::default(), Wants::default());
    let ((before, mut seen), (after, mut other)) = (pair(), pair());
    pool.keep(app.server(), before, (0, 1000), 9);
    pool.tick(1);
    assert_eq!(pool.waiting(), (1, 0));
    app.0.set(false);
    pool.tick(2);
    pool.keep(app.server(), after, (2, 1002), 9);
    assert_eq!(pool.waiting(), (0, 0));
    for end in [&mut seen, &mut other] {
        end.set_read_timeout(Some(Duration::from_secs(5))).expect("a setting");
        assert_eq!(end.read(&mut [0]).expect("the end"), 0);
    }
}
