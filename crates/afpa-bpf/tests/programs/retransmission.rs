//! Answers of one segment that get lost come back by time alone: W1 to W4 of `docs/rules`.

use std::time::{Duration, Instant};

use crate::support::lab::{Lab, SOON, begin, data, settings};
use crate::support::{ETAG, SITE, Sample};
use afpa_bpf::{Reason, Settings};
use afpa_testkit::packet::{ACK, FIN, PSH, RST, Segment};
use afpa_testkit::tcp::RawClient;

/// Longer than the first time-out of a path as short as this.
const ONCE: Duration = Duration::from_millis(320);
const PATIENCE: Duration = Duration::from_secs(2);

/// Ask, and lose the answer.
fn lose(client: &mut RawClient, request: &Segment) -> Segment {
    client.send(request);
    client.seq = request.seq.wrapping_add(request.payload.len() as u32);
    let mut answer = data(client.answers(SOON));
    assert_eq!(answer.len(), 1, "{answer:?}");
    answer.remove(0)
}

fn lose_one(client: &mut RawClient) -> Segment {
    let request = client.get("/kernel.html");
    lose(client, &request)
}

/// The first answer that comes by itself.
#[track_caller]
fn comes_back(lab: &Lab, client: &RawClient) -> Segment {
    let begin = Instant::now();
    loop {
        lab.service_timers(Duration::from_millis(5));
        let received = client.collect(Duration::from_millis(1));
        if let Some(answer) = received.into_iter().find(Segment::is_from_kernel) {
            return answer;
        }
        assert!(begin.elapsed() < PATIENCE, "{:?}", lab.fast_path.stats.counters());
    }
}

/// The segments with data that come by themselves within the time.
fn again(lab: &Lab, client: &RawClient, time: Duration) -> Vec<Segment> {
    lab.service_timers(time);
    data(client.collect(SOON))
}

/// The same bytes in the same place, although time passed and objects changed.
#[track_caller]
fn is_repetition(one: &Segment, lost: &Segment) {
    assert_eq!((one.seq, one.ack, &one.payload), (lost.seq, lost.ack, &lost.payload));
    assert_eq!(one.flags, ACK | PSH);
    assert!(one.checksum_holds, "{one:?}");
    for (now, then) in [(one.ts_value, lost.ts_value), (one.ts_echo, lost.ts_echo)] {
        assert!(now.wrapping_sub(then) < 1 << 31, "timestamps never run backwards");
    }
}

fn take(client: &mut RawClient, answer: &Segment) {
    client.accept(answer);
    client.send(&client.next());
}

#[test]
fn a_lost_answer_comes_back_by_time_alone() {
    let Some(lab) = Lab::new(settings()) else { return };
    let mut client = lab.connected();
    for turn in 1..=3 {
        lab.fast_path.clock.beat();
        let lost = lose_one(&mut client);
        let repeated = comes_back(&lab, &client);
        is_repetition(&repeated, &lost);
        take(&mut client, &repeated);
        assert!(again(&lab, &client, 2 * ONCE).is_empty(), "it has arrived");
        assert_eq!(lab.count(Reason::RtxRetransmitted), turn);
        lab.goes_on(&mut client);
    }
    assert_eq!(lab.count(Reason::AnsweredRetransmission) + lab.count(Reason::RtxGivenUp), 0);
}

#[test]
fn what_is_repeated_is_of_the_version_and_the_second_that_was_sent() {
    let Some(lab) = Lab::new(settings()) else { return };
    let mut client = lab.connected();
    let lost = lose_one(&mut client);
    Sample::new(b"another version, of another length").pin(&lab.fast_path, "/kernel.html");
    std::thread::sleep(Duration::from_millis(1100)); // another Date
    lab.fast_path.clock.beat();
    let repeated = comes_back(&lab, &client);
    is_repetition(&repeated, &lost);
    take(&mut client, &repeated);
    assert!(client.ask(&client.get("/kernel.html")).text().ends_with("of another length"));
}

#[test]
fn heads_and_not_modified_come_back_too() {
    let Some(lab) = Lab::new(settings()) else { return };
    let mut client = lab.connected();
    let ask = |method: &str, more: &str| {
        format!("{method} /kernel.html HTTP/1.1\r\nHost: server\r\n{more}\r\n")
    };
    let condition = format!("If-None-Match: {ETAG}\r\n");
    for text in [ask("HEAD", ""), ask("GET", &condition)] {
        lab.fast_path.clock.beat();
        let request = client.data(&text);
        let lost = lose(&mut client, &request);
        assert!(lost.is_from_kernel() && lost.payload.ends_with(b"\r\n\r\n"), "{}", lost.text());
        let repeated = comes_back(&lab, &client);
        is_repetition(&repeated, &lost);
        take(&mut client, &repeated);
    }
    lab.goes_on(&mut client);
}

#[test]
fn without_timestamps() {
    let Some(lab) = Lab::new(settings()) else { return };
    let mut client = lab.world.raw();
    client.habits.timestamps = false;
    client.connect();
    lab.fast_path.clock.beat();
    let lost = lose_one(&mut client);
    let repeated = comes_back(&lab, &client);
    is_repetition(&repeated, &lost);
    take(&mut client, &repeated);
    lab.goes_on(&mut client);
}

#[test]
fn nothing_is_sent_to_a_client_that_has_its_answer() {
    let Some(lab) = Lab::new(settings()) else { return };
    let (mut one, mut other) = (lab.connected(), lab.connected());
    for _ in 0..20 {
        lab.fast_path.clock.beat();
        let answer = lose_one(&mut one);
        take(&mut one, &answer);
        assert!(other.ask(&other.get("/kernel.html")).is_from_kernel()); // its next request says so
        assert!(again(&lab, &one, Duration::from_millis(20)).is_empty());
    }
    other.send(&other.next());
    assert!(again(&lab, &one, 2 * ONCE).is_empty());
    assert_eq!(lab.count(Reason::RtxRetransmitted), 0);
    let entered = lab.count(Reason::RtxArmed);
    assert!((2..=40).contains(&entered), "{entered} entries, not one for each of 40 answers");
}

/// Milliseconds by which the coarse clock of timers may be behind that of timestamps: a tick of 4, and the next one when
/// it is late on a busy processor.
const TICKS: u32 = 10;

/// An entry is made of an answer that arrives; the one that is lost comes while it waits.
#[test]
fn the_last_of_many_answers_is_the_one_that_comes_back() {
    let Some(lab) = Lab::new(settings()) else { return };
    let mut client = lab.connected();
    for _ in 0..10 {
        assert!(client.ask(&client.get("/kernel.html")).is_from_kernel());
    }
    assert_eq!(lab.count(Reason::RtxArmed), 1, "one entry for all of them");
    let lost = lose_one(&mut client);
    let repeated = comes_back(&lab, &client);
    is_repetition(&repeated, &lost);
    let time = repeated.ts_value.wrapping_sub(lost.ts_value); // milliseconds, by the server's clock
    assert!(time >= 200 - TICKS, "{time} ms: no sooner than its time-out");
    assert_eq!(lab.count(Reason::RtxArmed), 1);
}

#[test]
fn each_time_out_is_twice_as_long_as_the_one_before() {
    let Some(lab) = Lab::new(settings()) else { return };
    let mut client = lab.connected();
    let mut last = lose_one(&mut client).ts_value;
    let (mut gaps, begin) = (Vec::new(), Instant::now());
    while gaps.len() < 4 {
        lab.service_timers(Duration::from_millis(5));
        for repeated in data(client.collect(Duration::from_millis(1))) {
            gaps.push(repeated.ts_value.wrapping_sub(last)); // milliseconds, by the server's clock
            last = repeated.ts_value;
        }
        assert!(begin.elapsed() < Duration::from_secs(10), "{gaps:?}");
    }
    // A probe, a time-out, and two that are backed off.
    let least = [200, 200, 400, 800];
    assert!(gaps.iter().zip(least).all(|(gap, least)| *gap >= least - TICKS), "{gaps:?}");
}

#[test]
fn after_many_tries_it_is_left_to_the_client() {
    let Some(lab) = Lab::new(settings()) else { return };
    let mut client = lab.connected();
    let request = client.get("/kernel.html");
    let lost = lose(&mut client, &request);
    lab.fast_path.flows.exhaust_retransmissions().expect("written");
    assert!(again(&lab, &client, ONCE).is_empty());
    assert_eq!((lab.count(Reason::RtxGivenUp), lab.count(Reason::RtxRetransmitted)), (1, 0));
    client.send(&request);
    is_repetition(&data(client.answers(SOON))[0], &lost);
    client.ack = lost.seq.wrapping_add(lost.payload.len() as u32);
    client.send(&client.next());
    // So many losses make the way doubtful: the kernel shows it before the next answer (E4).
    assert!(client.ask(&client.get("/user.html")).text().ends_with("from nginx"));
    let lost = lose_one(&mut client); // the next one has a timer as if nothing had been
    is_repetition(&comes_back(&lab, &client), &lost);
}

#[test]
fn one_of_two_that_repeat_at_once_stands_back() {
    let Some(lab) = Lab::new(settings()) else { return };
    let mut client = lab.connected();
    let request = client.get("/kernel.html");
    let lost = lose(&mut client, &request);
    let begin = Instant::now();
    while lab.count(Reason::RtxRetransmitted) == 0 {
        assert!(begin.elapsed() < Duration::from_secs(2));
        lab.service_timers(Duration::from_millis(1));
    }
    client.send(&request); // it left before ours arrived
    is_repetition(&data(client.collect(Duration::from_millis(20)))[0], &lost);
    assert_eq!((lab.count(Reason::RtxCrossed), lab.count(Reason::AnsweredRetransmission)), (1, 0));
    // The one that crossed it was lost, too, and the client asks again in its time: it is answered, and ours waits.
    std::thread::sleep(Duration::from_millis(150));
    client.send(&request);
    let answered = data(client.answers(SOON)).remove(0);
    is_repetition(&answered, &lost);
    assert_eq!(lab.count(Reason::AnsweredRetransmission), 1);
    let repeated = comes_back(&lab, &client);
    is_repetition(&repeated, &lost);
    assert!(repeated.ts_value.wrapping_sub(answered.ts_value) >= 195, "time began anew");
    client.ack = lost.seq.wrapping_add(lost.payload.len() as u32);
    client.send(&client.next());
    lab.goes_on(&mut client);
}

#[test]
fn a_version_that_is_gone_is_left_to_the_client() {
    let Some(lab) = Lab::new(Settings { retired_bytes: 0, ..settings() }) else { return };
    let mut client = lab.connected();
    let request = client.get("/kernel.html");
    lose(&mut client, &request);
    assert!(lab.fast_path.objects.unpin(SITE, b"/kernel.html").expect("unpinned"));
    std::thread::sleep(Duration::from_millis(1100));
    lab.fast_path.objects.reclaim().expect("reclaimed"); // no byte is kept longer than a second
    assert!(again(&lab, &client, 2 * ONCE).is_empty());
    assert_eq!((lab.count(Reason::RtxGivenUp), lab.count(Reason::RtxRetransmitted)), (1, 0));
    client.send(&request);
    assert!(client.collect(SOON).iter().all(|s| s.payload.is_empty()));
    assert_eq!(lab.count(Reason::ResetLostVersion), 1, "who asks is told that it is gone");
}

#[test]
fn a_full_queue_leaves_losses_to_the_client() {
    let Some(lab) = Lab::new(Settings { rtx_timers: 1, ..settings() }) else { return };
    let (mut one, mut other) = (lab.connected(), lab.connected());
    let lost = lose_one(&mut one);
    let request = other.get("/kernel.html");
    let without_timer = lose(&mut other, &request);
    assert_eq!(lab.count(Reason::RtxFull), 1);
    is_repetition(&comes_back(&lab, &one), &lost);
    assert!(data(other.collect(SOON)).is_empty());
    other.send(&request);
    is_repetition(&data(other.answers(SOON))[0], &without_timer);
}

#[test]
fn a_client_that_closed_its_side_still_gets_it_and_one_that_reset_does_not() {
    let Some(lab) = Lab::new(settings()) else { return };
    let (mut one, mut other) = (lab.connected(), lab.connected());
    let lost = lose_one(&mut one);
    one.send(&Segment { flags: FIN | ACK, ..one.next() });
    lose_one(&mut other);
    other.send(&Segment { flags: RST | ACK, ..other.next() });
    let repeated = comes_back(&lab, &one);
    is_repetition(&repeated, &lost);
    assert!(data(other.collect(SOON)).is_empty());
    assert_eq!(lab.count(Reason::RtxRetransmitted), 1);
}

#[test]
fn an_answer_that_was_lost_before_a_response_of_user_mode() {
    let Some(lab) = Lab::new(settings()) else { return };
    let mut client = lab.connected();
    let one = client.get("/kernel.html");
    let seq = one.seq.wrapping_add(one.payload.len() as u32);
    let two = Segment { seq, ..client.get("/user.html") };
    client.send(&one);
    client.send(&two);
    client.seq = two.seq.wrapping_add(two.payload.len() as u32);
    let segments = data(client.answers(SOON));
    let ends = segments.iter().map(|s| s.seq.wrapping_add(s.payload.len() as u32));
    let end = ends.max_by_key(|end| end.wrapping_sub(segments[0].seq)).expect("segments");
    client.send(&Segment { sack: vec![(segments[1].seq, end)], ..client.next() });
    let repeated = comes_back(&lab, &client);
    is_repetition(&repeated, &segments[0]);
    client.ack = end;
    client.send(&client.next());
    lab.goes_on(&mut client);
}

/// Transfers have timers of their own.
#[test]
fn an_answer_of_several_segments_ends_the_timer_of_one_before() {
    let Some(lab) = Lab::new(settings()) else { return };
    let mut client = lab.connected();
    assert!(client.ask(&client.get("/kernel.html")).is_from_kernel());
    let (_, segments) = begin(&mut client, "/some.html");
    assert_eq!(segments.len(), 4);
    lab.service_timers(ONCE);
    assert_eq!(lab.count(Reason::RtxRetransmitted) + lab.count(Reason::RtxGivenUp), 0);
    segments.iter().for_each(|segment| client.accept(segment));
    client.send(&client.next());
    lab.goes_on(&mut client);
}
