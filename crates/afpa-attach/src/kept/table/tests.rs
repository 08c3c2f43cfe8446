use super::*;

const LEASE: Duration = Duration::from_secs(10);
const SECOND: Duration = Duration::from_secs(1);

/// A table with one target that is asked for.
fn asked(target: &[u8], now: Instant) -> (KeptTable, KeptJob) {
    let mut table = KeptTable::new(4, 3);
    (0..WORTH).for_each(|_| table.seen(target, 7, now));
    let Some(KeptWork::Ask(job)) = table.next(now) else { panic!("{table:?}") };
    (table, job)
}

fn kept(target: &[u8], now: Instant) -> (KeptTable, KeptJob) {
    let (mut table, job) = asked(target, now);
    assert!(table.keep(&job, now, LEASE));
    (table, job)
}

#[test]
fn only_what_is_asked_for_often_is_asked_for_here() {
    let now = Instant::now();
    let mut table = KeptTable::new(4, 3);
    for at in 0..4 * WORTH {
        table.seen(b"/slow", 7, now + 2 * SECOND * at);
    }
    assert_eq!(table.next(now + 1000 * SECOND), None);
    let (mut table, job) = asked(b"/often", now);
    assert_eq!((table.sizes(), table.is_busy()), ((1, 0), true));
    table.refuse(&job, now);
    (0..2 * WORTH).for_each(|_| table.seen(b"/often", 7, now + SECOND));
    assert_eq!(table.next(now + SECOND), None, "refused");
    (0..WORTH).for_each(|_| table.seen(b"/often", 7, now + FIRST_REST));
    assert!(table.next(now + FIRST_REST).is_some());
}

#[test]
fn new_targets_wait_for_each_other_and_kept_ones_go_first() {
    let now = Instant::now();
    let (mut table, _) = kept(b"/kept", now);
    for target in [b"/a", b"/b"] {
        (0..WORTH).for_each(|_| table.seen(target, 7, now));
    }
    assert_eq!(table.next(now), None, "not yet");
    assert_eq!(table.next_due(), Some(now + PACE));
    let later = now + LEASE / 2;
    assert!(matches!(table.next(later), Some(KeptWork::Confirm(_))));
    assert!(matches!(table.next(later), Some(KeptWork::Ask(_))));
    assert_eq!(table.next(later), None);
    assert!(matches!(table.next(later + PACE), Some(KeptWork::Ask(_))));
}

#[test]
fn whatever_ends_an_answer_ends_the_question_too() {
    let now = Instant::now();
    let ends: [fn(&mut KeptTable, Instant); 3] = [
        |table, now| assert!(table.purge(&Which::All, now).is_empty()),
        |table, now| assert!(!table.outdate(b"/a", now)),
        |table, now| assert!(table.everything_changed(now).is_empty()),
    ];
    for end in ends {
        let (mut table, job) = asked(b"/a", now);
        end(&mut table, now);
        assert!(!table.keep(&job, now, LEASE), "its answer may be from before");
        assert_eq!(table.next(now + PACE), None, "nobody asks for it");
        table.seen(b"/a", 7, now + PACE);
        assert!(matches!(table.next(now + PACE), Some(KeptWork::Ask(_))), "asked anew");
    }
}

#[test]
fn what_is_kept_is_confirmed_or_ends() {
    let now = Instant::now();
    let (mut table, _) = kept(b"/a", now);
    let Some(KeptWork::Confirm(job)) = table.next(now + LEASE / 2) else { panic!() };
    assert_eq!(table.next(now + LEASE / 2), None, "once");
    assert!(table.confirm(&job, now + LEASE / 2, LEASE));
    assert!(table.expired(now + LEASE).is_empty());
    assert_eq!(table.expired(now + LEASE * 3 / 2), [Target::from(&b"/a"[..])]);
    assert!(!table.confirm(&job, now, LEASE), "too late");
    let (mut table, _) = kept(b"/a", now);
    let Some(KeptWork::Confirm(job)) = table.next(now + LEASE / 2) else { panic!() };
    table.confirm_later(&job, now + LEASE / 2);
    let Some(KeptWork::Confirm(job)) = table.next(now + LEASE) else { panic!() };
    assert!(table.contradict(&job, now + LEASE) && !table.contradict(&job, now + LEASE));
    assert_eq!((table.sizes().1, table.counts().changed), (0, 1));
}

#[test]
fn nobody_is_asked_about_what_nobody_uses() {
    let now = Instant::now();
    let (mut table, _) = kept(b"/a", now);
    let mut questions = 0;
    for tenth in 50..100 {
        let then = now + SECOND / 10 * tenth;
        while let Some(work) = table.next(then) {
            let KeptWork::Confirm(job) = work else { panic!("{work:?}") };
            questions += u32::from(table.is_worth_confirming(&job, then));
        }
    }
    assert_eq!(questions, 0);
    assert_eq!(table.expired(now + LEASE), [Target::from(&b"/a"[..])]);
    assert_eq!(table.sizes(), (0, 0), "nothing is known of it");
    // A target that was used goes on.
    let (mut table, _) = kept(b"/a", now);
    table.used(b"/a", now + SECOND);
    let Some(KeptWork::Confirm(job)) = table.next(now + LEASE / 2) else { panic!() };
    assert!(table.is_worth_confirming(&job, now + LEASE / 2));
    assert!(table.confirm(&job, now + LEASE / 2, LEASE));
    let Some(KeptWork::Confirm(job)) = table.next(now + LEASE) else { panic!() };
    assert!(!table.is_worth_confirming(&job, now + LEASE), "not since");
    // A target that the server did not confirm in time is asked for anew, when a client asks for it.
    table.used(b"/a", now + LEASE);
    assert_eq!(table.expired(now + LEASE * 3 / 2).len(), 1);
    assert_eq!((table.next(now + LEASE * 2), table.next_due()), (None, None));
    table.seen(b"/a", 7, now + LEASE * 2);
    assert!(matches!(table.next(now + LEASE * 2), Some(KeptWork::Ask(_))));
}

#[test]
fn what_changes_before_it_is_confirmed_is_asked_for_less_and_less() {
    let (mut now, mut asked) = (Instant::now(), 0);
    let (mut table, mut job) = asked_for(now);
    let begin = now;
    while now < begin + 600 * SECOND {
        assert!(table.keep(&job, now, LEASE));
        asked += 1;
        now += LEASE / 2;
        assert!(table.contradict(&job, now));
        job = loop {
            table.seen(b"/a", 7, now);
            match table.next(now) {
                Some(KeptWork::Ask(job)) => break job,
                work => assert_eq!(work, None),
            }
            now += SECOND;
        };
    }
    assert!(asked < 12, "{asked}");
}

fn asked_for(now: Instant) -> (KeptTable, KeptJob) {
    asked(b"/a", now)
}

#[test]
fn a_query_is_asked_for_when_several_clients_have_asked_for_it() {
    let now = Instant::now();
    let mut table = KeptTable::new(256, 3);
    for query in 0..60 {
        let target = format!("/search?q={query}");
        (0..8 * WORTH).for_each(|_| table.seen(target.as_bytes(), 7, now));
        (0..8 * WORTH).for_each(|_| table.seen(target.as_bytes(), 8, now));
    }
    assert_eq!((table.next(now), table.next_due()), (None, None), "two clients");
    table.seen(b"/search?q=5", 9, now);
    assert!(matches!(table.next(now), Some(KeptWork::Ask(job)) if *job.target == *b"/search?q=5"));
    // Long ago does not count.
    table.seen(b"/search?q=6", 9, now + WINDOW);
    (0..WORTH).for_each(|_| table.seen(b"/search?q=6", 8, now + WINDOW));
    assert_eq!(table.next(now + WINDOW), None);
    // A path alone is not thought of so easily.
    (0..WORTH).for_each(|_| table.seen(b"/search", 7, now));
    assert!(table.next(now + PACE).is_some());
}

#[test]
fn an_unsafe_request_that_is_not_over_delays_the_question() {
    let now = Instant::now();
    let (mut table, _) = kept(b"/a", now);
    assert!(table.outdate(b"/a", now + LEASE));
    table.seen(b"/a", 7, now);
    assert_eq!(table.next(now + LEASE - SECOND), None);
    assert!(matches!(table.next(now + LEASE), Some(KeptWork::Ask(_))));
    assert_eq!(table.counts().outdated, 1);
}

#[test]
fn strangers_targets_give_way_and_kept_ones_do_not() {
    let now = Instant::now();
    let (mut table, _) = kept(b"/kept", now);
    for number in 0..1000u32 {
        table.begin_round();
        table.seen(format!("/{number}").as_bytes(), 7, now);
        assert!(table.sizes().0 <= 4 && table.sizes().1 == 1);
    }
    (0..WORTH).for_each(|_| table.seen(b"/hot", 7, now));
    assert!(matches!(table.next(now + PACE), Some(KeptWork::Ask(_))));
    (0..u32::MAX / 2).step_by(1 << 20).for_each(|number| {
        table.seen(format!("/other/{number}").as_bytes(), 7, now);
    });
    assert_eq!(table.may_give_way, 0, "no more in one round");
}
