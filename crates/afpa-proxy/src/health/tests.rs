//! The paper's rules, and ours, in virtual time.

use proptest::prelude::*;

use super::*;

const OK: AttemptOutcome = AttemptOutcome::Ok { status: 200, first_byte_us: 100, total_us: 200 };

fn paper() -> HealthSettings {
    HealthSettings::default()
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Feeds outcomes of today, one a millisecond from `now` on, and gives the changes.
fn feed(
    life: &mut Life,
    now: u64,
    outcomes: &[AttemptOutcome],
    rules: &HealthSettings,
) -> Vec<Change> {
    let each = outcomes.iter().enumerate();
    each.filter_map(|(n, outcome)| {
        let epoch = life.epoch();
        life.outcome(now + n as u64, epoch, *outcome, rules, true)
    })
    .collect()
}

#[test]
fn a_refused_connection_marks_it_unavailable_at_once() {
    let mut life = Life::new(0);
    let changes = feed(&mut life, 5, &[AttemptOutcome::ConnectRefused], &paper());
    assert_eq!(changes, [Change::Down(WhyDown::Refused)]);
    assert!(!life.is_up() && life.share(6, &paper()) == 0);
}

#[test]
fn a_server_without_room_stays_available() {
    let mut life = Life::new(0);
    assert_eq!(feed(&mut life, 5, &[AttemptOutcome::Overloaded; 100], &paper()), []);
    assert!(life.is_up());
}

#[test]
fn three_time_outs_in_a_row_do_and_an_answer_between_them_forgives() {
    let rules = paper();
    let mut life = Life::new(0);
    let slow = AttemptOutcome::ConnectTimeout;
    assert_eq!(feed(&mut life, 0, &[slow, slow, OK, slow, slow], &rules), []);
    assert_eq!(feed(&mut life, 9, &[slow], &rules), [Change::Down(WhyDown::ConnectTimeout)]);
}

#[test]
fn a_probe_every_ten_seconds_restores_it() {
    let rules = paper();
    let mut life = Life::new(0);
    feed(&mut life, 1000, &[AttemptOutcome::ConnectRefused], &rules);
    assert_eq!(life.next_probe(&rules), Some(11_000));
    assert_eq!(life.begin_probe(10_999, &rules), None);
    assert_eq!(life.begin_probe(11_000, &rules), Some(ProbeKind::Connect));
    assert_eq!(life.begin_probe(11_500, &rules), None, "one at a time");
    assert_eq!(life.probed(11_600, life.epoch(), false, &rules), None);
    assert_eq!(life.next_probe(&rules), Some(21_600));
    assert_eq!(life.begin_probe(21_600, &rules), Some(ProbeKind::Connect));
    assert_eq!(life.probed(21_601, life.epoch(), true, &rules), Some(Change::Up));
    assert!(life.is_up() && life.share(21_601, &rules) == 1000);
    assert_eq!(life.next_probe(&rules), None, "an available server is not probed");
}

#[test]
fn a_server_that_took_connections_without_answering_must_answer() {
    let rules = paper();
    let mut life = Life::new(0);
    feed(&mut life, 0, &[AttemptOutcome::FirstByteTimeout; 3], &rules);
    assert_eq!(life.why_down(), Some(WhyDown::FirstByteTimeout));
    assert_eq!(life.begin_probe(20_000, &rules), Some(ProbeKind::Answer));
}

#[test]
fn what_began_before_a_change_says_nothing_of_today() {
    let rules = paper();
    let mut life = Life::new(0);
    let old = life.epoch();
    feed(&mut life, 0, &[AttemptOutcome::ConnectRefused], &rules);
    assert_eq!(life.outcome(1, old, OK, &rules, true), None, "an old answer restores nothing");
    life.begin_probe(10_000, &rules);
    life.probed(10_001, life.epoch(), true, &rules);
    assert_eq!(life.outcome(10_002, old, AttemptOutcome::ConnectRefused, &rules, true), None);
    assert!(life.is_up());
}

#[test]
fn its_share_grows_during_slow_start() {
    let rules = HealthSettings { slow_start: seconds(20), ..paper() };
    let mut life = Life::new(0);
    assert_eq!(life.share(0, &rules), 1000, "not at the first start");
    feed(&mut life, 0, &[AttemptOutcome::ConnectRefused], &rules);
    life.begin_probe(10_000, &rules);
    life.probed(10_000, life.epoch(), true, &rules);
    let shares: Vec<_> = [0, 5, 10, 20, 99].map(|s| life.share(10_000 + s * 1000, &rules)).into();
    assert_eq!(shares, [1, 250, 500, 1000, 1000]);
}

#[test]
fn checks_mark_it_down_after_falls_and_up_after_rises() {
    let check = CheckSettings { every: seconds(2), fall: 3, rise: 2, ..CheckSettings::default() };
    let rules = HealthSettings { check: Some(check), ..paper() };
    let mut life = Life::new(0);
    let mut now = 0;
    let mut probe = |life: &mut Life, good| {
        assert_eq!(life.begin_probe(now, &rules), Some(ProbeKind::Check), "at {now}");
        let change = life.probed(now, life.epoch(), good, &rules);
        now += 2000;
        change
    };
    let got = [true, false, false, true, false, false, false].map(|good| probe(&mut life, good));
    assert_eq!(got.iter().flatten().count(), 1);
    assert_eq!(got[6], Some(Change::Down(WhyDown::Check)));
    let got = [true, false, true, true].map(|good| probe(&mut life, good));
    assert_eq!(got, [None, None, None, Some(Change::Up)]);
}

#[test]
fn too_many_errors_eject_it_longer_each_time() {
    let rules = paper();
    let mut life = Life::new(0);
    let mostly: Vec<_> =
        (0..20).map(|n| if n % 2 == 0 { AttemptOutcome::Reset } else { OK }).collect();
    let mut now = 0;
    for times in 1..=12_u64 {
        assert_eq!(feed(&mut life, now, &mostly, &rules), [Change::Down(WhyDown::Errors)]);
        now += 19;
        let back = now + times.min(10) * 10_000;
        assert_eq!(life.next_probe(&rules), Some(back));
        assert_eq!(life.begin_probe(back, &rules), Some(ProbeKind::Answer));
        assert_eq!(life.probed(back, life.epoch(), true, &rules), Some(Change::Up));
        now = back + 1;
    }
    assert_eq!(feed(&mut life, now, &[OK; 400], &rules), [], "good answers are forgiven for");
    assert_eq!(feed(&mut life, now + 400, &mostly, &rules).len(), 1);
    assert_eq!(life.next_probe(&rules), Some(now + 400 + 19 + 10_000), "like the first time");
}

#[test]
fn the_group_can_forbid_an_ejection_and_statuses_count_if_wanted() {
    let rules = paper();
    let mut life = Life::new(0);
    for n in 0..1000 {
        assert_eq!(life.outcome(n, 0, AttemptOutcome::BadResponse, &rules, false), None);
    }
    let failed = AttemptOutcome::Ok { status: 500, first_byte_us: 1, total_us: 1 };
    let mut life = Life::new(0);
    assert_eq!(feed(&mut life, 0, &[failed; 100], &rules), []);
    let errors = ErrorSettings { statuses: true, ..rules.errors };
    let rules = HealthSettings { errors, ..rules };
    assert_eq!(feed(&mut life, 100, &[failed; 20], &rules), [Change::Down(WhyDown::Errors)]);
}

#[test]
fn as_a_last_resort_one_request_a_second_is_a_probe() {
    let rules = paper();
    let mut life = Life::new(0);
    assert!(!life.last_resort(0, &rules), "it is available");
    feed(&mut life, 0, &[AttemptOutcome::ConnectRefused], &rules);
    assert!(!life.last_resort(999, &rules) && life.last_resort(1000, &rules));
    assert!(!life.last_resort(1999, &rules) && life.last_resort(2000, &rules));
    assert_eq!(feed(&mut life, 2001, &[AttemptOutcome::ConnectRefused, OK], &rules), [Change::Up]);
    let never = HealthSettings { last_resort: Duration::ZERO, ..paper() };
    feed(&mut life, 3000, &[AttemptOutcome::ConnectRefused], &never);
    assert!(!life.last_resort(1_000_000, &never));
}

fn any_outcome() -> impl Strategy<Value = AttemptOutcome> {
    prop_oneof![
        4 => (100_u16..600).prop_map(|status| AttemptOutcome::Ok { status, first_byte_us: 1, total_us: 2 }),
        1 => Just(AttemptOutcome::ConnectRefused),
        1 => Just(AttemptOutcome::ConnectFailed),
        2 => Just(AttemptOutcome::ConnectTimeout),
        2 => Just(AttemptOutcome::FirstByteTimeout),
        1 => Just(AttemptOutcome::IdleTimeout),
        1 => Just(AttemptOutcome::Reset),
        1 => Just(AttemptOutcome::BadResponse),
        1 => Just(AttemptOutcome::Truncated),
        1 => Just(AttemptOutcome::Overloaded),
    ]
}

proptest! {
    /// In every history changes alternate, the epoch counts them, an unavailable server has a
    /// probe ahead that is not further away than the rules say, and a good probe brings it back.
    #[test]
    fn it_always_comes_back(
        events in prop::collection::vec((0_u64..5000, any_outcome(), any::<bool>()), 1..300),
    ) {
        let rules = paper();
        let mut life = Life::new(0);
        let (mut now, mut up, mut changes) = (0, true, 0);
        for (pause, outcome, good) in events {
            now += pause;
            let mut seen = Vec::new();
            if life.begin_probe(now, &rules).is_some() {
                seen.extend(life.probed(now, life.epoch(), good, &rules));
            }
            seen.extend(life.outcome(now, life.epoch(), outcome, &rules, true));
            for change in seen {
                prop_assert_eq!(change == Change::Up, !up);
                up = !up;
                changes += 1;
            }
            prop_assert_eq!((life.is_up(), life.epoch()), (up, changes));
            if !up {
                let due = life.next_probe(&rules).expect("a probe ahead");
                prop_assert!(due <= now + 100_000);
            }
        }
        if !up {
            let due = life.next_probe(&rules).unwrap();
            prop_assert!(life.begin_probe(due, &rules).is_some());
            prop_assert_eq!(life.probed(due, life.epoch(), true, &rules), Some(Change::Up));
        }
    }
}
