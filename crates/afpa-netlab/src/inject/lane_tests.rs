use super::*;
use crate::inject::{Burst, DropRule};

const MS: Duration = Duration::from_millis(1);

/// Sends `count` packets of 1,000 bytes, `gap` apart; gives back (number, time) as they leave.
fn pass(lane: &mut Lane, count: u32, gap: Duration) -> Vec<(u32, Duration)> {
    let mut out = Vec::new();
    for number in 0..count {
        let now = gap * number;
        drain(lane, now, &mut out);
        let mut frame = vec![0; 1000];
        frame[..4].copy_from_slice(&number.to_be_bytes());
        lane.admit(now, frame);
    }
    drain(lane, Duration::MAX, &mut out);
    out
}

fn drain(lane: &mut Lane, until: Duration, out: &mut Vec<(u32, Duration)>) {
    while let Some(due) = lane.next_due().filter(|due| *due <= until) {
        let frame = lane.release(due).unwrap();
        out.push((u32::from_be_bytes(*frame.first_chunk().unwrap()), due));
    }
}

#[test]
fn without_rules_everything_passes_at_once_and_in_order() {
    let mut lane = Lane::new(Impairment::default(), 1);
    let out = pass(&mut lane, 1000, MS);
    assert_eq!(out, (0..1000).map(|n| (n, MS * n)).collect::<Vec<_>>());
    assert_eq!(lane.counts(), Counts { received: 1000, sent: 1000, ..Counts::default() });
}

#[test]
fn rates_are_those_asked_for_and_add_up() {
    let impairment =
        Impairment { loss: 0.05, duplicate: 0.1, reorder: 0.2, ..Impairment::default() };
    let mut lane = Lane::new(impairment, 7);
    let out = pass(&mut lane, 100_000, MS / 10);
    let counts = lane.counts();
    let near = |count: u64, of: f64| (count as f64 - of).abs() < of * 0.1;
    assert!(near(counts.lost, 5_000.0), "{counts:?}");
    assert!(near(counts.duplicated, 9_500.0), "{counts:?}");
    assert!(near(counts.held, 20_900.0), "{counts:?}");
    assert!(counts.overtaken > 0 && counts.overtaken <= counts.held, "{counts:?}");
    assert_eq!(counts.received - counts.lost + counts.duplicated, counts.sent);
    assert_eq!(out.len() as u64, counts.sent);
}

#[test]
fn the_same_seed_deals_the_same_fates() {
    let impairment = Impairment { loss: 0.3, reorder: 0.3, jitter: MS, ..Impairment::default() };
    let run = |seed| pass(&mut Lane::new(impairment.clone(), seed), 500, MS);
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

#[test]
fn delay_and_jitter_keep_the_order() {
    let impairment = Impairment { delay: MS * 10, jitter: MS * 5, ..Impairment::default() };
    let mut lane = Lane::new(impairment, 1);
    let out = pass(&mut lane, 1000, MS / 2);
    for (index, (number, due)) in out.iter().enumerate() {
        assert_eq!(*number as usize, index);
        let delay = *due - MS / 2 * *number;
        assert!((MS * 10..=MS * 15).contains(&delay), "{delay:?}");
    }
    assert_eq!(lane.counts().overtaken, 0);
}

#[test]
fn a_held_packet_is_overtaken_by_those_behind_it() {
    let impairment = Impairment { reorder: 0.1, hold: MS * 3, ..Impairment::default() };
    let mut lane = Lane::new(impairment, 1);
    let out = pass(&mut lane, 1000, MS);
    let inversions = out.windows(2).filter(|pair| pair[0].0 > pair[1].0).count();
    assert!(inversions > 50, "{inversions}");
    assert!(lane.counts().overtaken >= inversions as u64);
}

#[test]
fn bursts_lose_so_many_in_a_row() {
    let burst = Some(Burst { start: 0.01, length: 5 });
    let mut lane = Lane::new(Impairment { burst, ..Impairment::default() }, 1);
    let out = pass(&mut lane, 10_000, MS);
    let gaps: Vec<u32> = out.windows(2).map(|pair| pair[1].0 - pair[0].0 - 1).collect();
    assert!(gaps.iter().filter(|gap| **gap > 0).all(|gap| gap.is_multiple_of(5)));
    assert!(lane.counts().burst_lost > 300);
}

#[test]
fn the_rate_limit_spaces_packets_and_drops_the_tail() {
    // 1,000 bytes at 8 Mbit/s take one millisecond; they come twice as fast.
    let impairment = Impairment { rate: Some(8_000_000), queue: 10, ..Impairment::default() };
    let mut lane = Lane::new(impairment, 1);
    let out = pass(&mut lane, 200, MS / 2);
    assert!(out.windows(2).all(|pair| pair[1].1 - pair[0].1 >= MS));
    let counts = lane.counts();
    assert!((85..=95).contains(&counts.queue_dropped), "{counts:?}");
    assert!(out.iter().all(|(number, due)| *due - MS / 2 * *number <= MS * 12));
}

#[test]
fn rules_do_not_touch_what_is_not_tcp() {
    let rule = DropRule::when(|_| true);
    let mut lane = Lane::new(Impairment { drop_rules: vec![rule], ..Impairment::default() }, 1);
    assert_eq!(pass(&mut lane, 10, MS).len(), 10);
    assert_eq!(lane.counts().rule_dropped, 0);
}
