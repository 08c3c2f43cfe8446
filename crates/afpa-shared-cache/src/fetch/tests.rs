use afpa_cache::{Arena, CacheSettings};
use afpa_framework::Now;

use super::*;
use crate::fetch::backlog::Held;
use crate::policy::CachePolicy;
use crate::store::responses::Responses;
use crate::store::stored::Circumstances;

fn draft() -> Arc<Draft> {
    let lines = [(&b"Cache-Control"[..], &b"max-age=60"[..])];
    let now = Now { unix_us: 1_700_000_000_000_000, steady_us: 5_000_000 };
    let policy = CachePolicy::default();
    let host = &b"host"[..];
    let about = Circumstances { policy: &policy, asked_at: now, now, host, rules: None };
    let draft = Draft::new(b"HTTP/1.1 200 OK", 200, lines.into_iter(), about);
    Arc::new(draft.expect("no star").0)
}

fn fetch() -> Arc<Fetch> {
    Fetch::new((b"key", 0), Moment::default())
}

fn context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// The next of an answer, if it is there.
fn next(fetch: &Fetch, seat: &mut Seat, draft: &Arc<Draft>, number: usize) -> Option<Vec<u8>> {
    match fetch.poll_chunk(&context(), seat, draft, number) {
        Poll::Ready(Next::Chunk(chunk)) => Some(chunk.to_vec()),
        Poll::Ready(Next::End) => Some(Vec::new()),
        Poll::Ready(Next::Broken) => Some(b"broken".to_vec()),
        Poll::Pending => None,
    }
}

#[test]
fn followers_see_what_arrives_each_at_its_own_pace() {
    let (fetch, draft) = (fetch(), draft());
    let (mut fast, mut slow) = (Seat::default(), Seat::default());
    assert!(fetch.poll_answer(&context(), &mut fast).is_pending());
    fetch.arrive((Arc::clone(&draft), (*b"key").into()), None, 0);
    assert!(matches!(fetch.poll_answer(&context(), &mut fast), Poll::Ready(Phase::Arriving(_))));
    assert_eq!(next(&fetch, &mut fast, &draft, 0), None);
    fetch.add(b"one");
    assert_eq!(next(&fetch, &mut fast, &draft, 0), Some(b"one".to_vec()));
    assert_eq!(next(&fetch, &mut fast, &draft, 1), None);
    fetch.add(b"two");
    assert!(fetch.is_open());
    fetch.complete(None);
    for (number, expected) in [b"one".to_vec(), b"two".to_vec(), Vec::new()].into_iter().enumerate()
    {
        assert_eq!(next(&fetch, &mut slow, &draft, number), Some(expected));
    }
    fetch.abandon();
    assert_eq!(next(&fetch, &mut slow, &draft, 1), Some(b"two".to_vec()), "what is whole stays");
}

#[test]
fn what_came_of_an_attempt_that_failed_is_not_mixed_with_the_next_one() {
    let (fetch, first, second) = (fetch(), draft(), draft());
    let mut seat = Seat::default();
    fetch.arrive((Arc::clone(&first), (*b"key").into()), None, 0);
    fetch.add(b"one");
    fetch.arrive((Arc::clone(&second), (*b"key").into()), None, 0);
    fetch.add(b"other");
    assert_eq!(next(&fetch, &mut seat, &first, 1), Some(b"broken".to_vec()));
    assert_eq!(next(&fetch, &mut seat, &second, 0), Some(b"other".to_vec()));
}

/// A client that reads slowly holds the memory of an answer that others got long ago.
#[test]
fn what_followers_still_read_counts_until_the_last_one_has_gone() {
    let arena = Arena::new(1 << 20).expect("an arena");
    let responses = Responses::new(CacheSettings::default(), arena);
    let (fetch, draft) = (fetch(), draft());
    fetch.arrive((Arc::clone(&draft), (*b"key").into()), None, 0);
    fetch.add(b"one");
    fetch.complete(None);
    let follower = Arc::clone(&fetch);
    fetch.hold(Box::new(Held::of(&responses, 1000).expect("room")));
    assert_eq!(responses.buffered(), 1000);
    drop(fetch);
    assert_eq!(next(&follower, &mut Seat::default(), &draft, 0), Some(b"one".to_vec()));
    assert_eq!(responses.buffered(), 1000);
    drop(follower);
    assert_eq!(responses.buffered(), 0);

    assert!(Held::of(&responses, 2 << 20).is_none() && responses.buffered() == 0);
    let (fetch, draft) = (self::fetch(), self::draft());
    fetch.arrive((Arc::clone(&draft), (*b"key").into()), None, 0);
    fetch.add(b"one");
    fetch.complete(None);
    fetch.break_off();
    assert_eq!(next(&fetch, &mut Seat::default(), &draft, 1), Some(b"broken".to_vec()));
    assert!(fetch.chunks().is_empty());
}

/// Its bytes are there and count already, so that those who read on need no more room.
#[test]
fn followers_of_an_answer_that_has_come_need_no_room_for_it_again() {
    let arena = Arena::new(1 << 20).expect("an arena");
    let responses = Responses::new(CacheSettings::default(), arena);
    let bytes = 600_000;
    assert!(responses.buffer(bytes));
    assert!(Held::of(&responses, bytes).is_none(), "there is not twice as much");
    let fetch = fetch();
    fetch.hold(Box::new(Held::counted(&responses, bytes)));
    assert_eq!(responses.buffered(), bytes);
    drop(fetch);
    assert_eq!(responses.buffered(), 0);
}

/// Requests that follow and leave, again and again while an answer is on its way, must not fill the memory; no other
/// follower loses its place.
#[test]
fn those_who_go_leave_their_place_to_others() {
    let fetch = fetch();
    let mut stays = Seat::default();
    assert!(fetch.poll_answer(&context(), &mut stays).is_pending());
    for _ in 0..1000 {
        let mut goes = Seat::default();
        assert!(fetch.poll_answer(&context(), &mut goes).is_pending());
        fetch.stand_up(&mut goes);
    }
    assert_eq!(fetch.state().wakers.len(), 2);
    fetch.add(b"");
    // All were woken, and the one that stays has its place until it goes.
    let mut comes = Seat::default();
    assert!(fetch.poll_answer(&context(), &mut comes).is_pending());
    assert!(fetch.poll_answer(&context(), &mut stays).is_pending());
    assert_eq!(fetch.state().wakers.iter().flatten().count(), 2);
}

#[test]
fn who_leads_and_goes_leaves_nobody_waiting() {
    let mut seat = Seat::default();
    let waiting = fetch();
    assert!(waiting.poll_answer(&context(), &mut seat).is_pending());
    waiting.abandon();
    assert!(!waiting.is_open());
    assert!(matches!(waiting.poll_answer(&context(), &mut seat), Poll::Ready(Phase::Gone)));

    let passed = fetch();
    passed.end(Phase::Passed);
    passed.abandon();
    let ready = passed.poll_answer(&context(), &mut Seat::default());
    assert!(matches!(ready, Poll::Ready(Phase::Passed)), "what was decided stays");

    let (cut, draft) = (fetch(), draft());
    cut.arrive((Arc::clone(&draft), (*b"key").into()), None, 0);
    cut.add(b"half");
    cut.abandon();
    assert_eq!(next(&cut, &mut Seat::default(), &draft, 0), Some(b"broken".to_vec()));
}

#[test]
fn what_has_no_length_is_wanted_for_a_moment_and_then_by_those_who_wait() {
    let (fetch, draft) = (fetch(), draft());
    fetch.arrive((Arc::clone(&draft), (*b"key").into()), None, 1_000);
    assert!(fetch.is_wanted(1_000 + SOON_MS - 1) && !fetch.is_wanted(1_000 + SOON_MS));
    let mut seat = Seat::default();
    assert!(fetch.poll_whole(&context(), &mut seat).is_pending());
    assert!(fetch.is_wanted(1_000 + SOON_MS));
    fetch.stand_up(&mut seat);
    assert!(!fetch.is_wanted(1_000 + SOON_MS));
    fetch.arrive((draft, (*b"key").into()), Some(5), 1_000);
    assert!(fetch.is_wanted(u64::MAX), "what has a length ends");
}
