//! Tests of the arena as its users see it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use proptest::prelude::*;

use super::*;

const SMALL: usize = if cfg!(miri) { 64 << 10 } else { 4 << 20 };

#[test]
fn bytes_stay_until_the_last_clone_goes() {
    let arena = Arena::new(SMALL).unwrap();
    let mut filling = arena.allocate(1000).unwrap();
    filling.fill(7);
    let first = filling.freeze();
    let second = first.clone();
    drop(first);
    assert!(second.iter().all(|&byte| byte == 7));
    assert_eq!(arena.usage().used, Arena::footprint(1000));
    drop(second);
    assert_eq!(arena.usage(), Usage { limit: SMALL, used: 0, objects: 0 });
}

#[test]
fn a_range_outlives_the_handle_to_its_arena() {
    let arena = Arena::new(SMALL).unwrap();
    let mut filling = arena.allocate(3).unwrap();
    filling.copy_from_slice(b"abc");
    drop(arena);
    assert_eq!(&*filling.freeze(), b"abc");
}

#[test]
fn a_filling_that_is_given_up_returns_its_range() {
    let arena = Arena::new(SMALL).unwrap();
    drop(arena.allocate(5000));
    assert_eq!(arena.usage().used, 0);
}

#[test]
fn the_limit_holds_and_a_freed_range_fits_one_of_its_size() {
    let arena = Arena::new(16 * UNIT).unwrap();
    let mut held: Vec<_> = std::iter::from_fn(|| arena.allocate(UNIT)).collect();
    assert_eq!(held.len(), 16);
    assert_eq!(arena.usage().used, 16 * UNIT);
    drop(held.swap_remove(5));
    assert!(arena.allocate(UNIT + 1).is_none());
    assert!(arena.allocate(UNIT).is_some());
}

#[test]
fn a_freed_range_fits_every_length_of_its_footprint() {
    let arena = Arena::new(SMALL).unwrap();
    let len = 17 * UNIT + 1;
    let held: Vec<_> = std::iter::from_fn(|| arena.allocate(len)).collect();
    let count = held.len();
    let mut held: Vec<_> = held.into_iter().map(Some).collect();
    // Neighbours stay in use: only the footprint itself is free.
    held[count / 2] = None;
    assert!(arena.allocate(Arena::footprint(len)).is_some());
}

#[test]
fn lengths_at_the_edges() {
    let empty = Arena::new(0).unwrap();
    assert!(empty.allocate(0).is_none());
    let arena = Arena::new(SMALL).unwrap();
    assert!(arena.allocate(0).unwrap().is_empty());
    assert!(arena.allocate(SMALL + 1).is_none());
    assert!(arena.allocate(usize::MAX).is_none());
    assert_eq!(arena.allocate(SMALL).unwrap().len(), SMALL);
    assert!(Arena::new(MAX_LIMIT + 1).is_err());
}

#[test]
fn waiting_for_space_ends_when_a_range_returns() {
    let arena = Arena::new(SMALL).unwrap();
    let held = arena.allocate(SMALL).unwrap();
    assert!(arena.allocate_within(1, Duration::from_millis(5)).is_none());
    thread::scope(|scope| {
        let waiter =
            scope.spawn(|| arena.allocate_within(SMALL, Duration::from_secs(60)).is_some());
        thread::sleep(Duration::from_millis(5));
        drop(held);
        assert!(waiter.join().unwrap());
    });
}

/// Threads allocate, fill, pass on, clone and drop ranges. A byte that another range overwrote, or
/// an address that two live ranges share, fails the test; all space is back at the end.
#[test]
fn threads_never_share_a_byte() {
    const THREADS: usize = if cfg!(miri) { 3 } else { 8 };
    const ROUNDS: usize = if cfg!(miri) { 40 } else { 4000 };
    let arena = Arena::new(SMALL).unwrap();
    let live = Mutex::new(BTreeMap::new());
    let refused = AtomicUsize::new(0);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (arena, live, refused) = (&arena, &live, &refused);
            scope.spawn(move || {
                let mut random = thread as u64 + 1;
                let mut held: Vec<(Pinned, u8)> = Vec::new();
                for round in 0..ROUNDS {
                    let len = next(&mut random) as usize % (SMALL / (4 * THREADS));
                    match arena.allocate(len) {
                        Some(filling) => held.push(fill(filling, round as u8, live)),
                        None => _ = refused.fetch_add(1, Ordering::Relaxed),
                    }
                    if held.len() > 1 + next(&mut random) as usize % 12 {
                        let index = next(&mut random) as usize % held.len();
                        let (pinned, mark) = held.swap_remove(index);
                        let clone = pinned.clone();
                        drop(pinned);
                        give_up(clone, mark, live);
                    }
                }
                held.into_iter().for_each(|(pinned, mark)| give_up(pinned, mark, live));
            });
        }
    });
    assert!(live.into_inner().unwrap().is_empty());
    assert_eq!(arena.usage().used, 0);
    assert_eq!(arena.usage().objects, 0);
    assert!(arena.allocate(SMALL).is_some(), "the free ranges did not join up again");
    assert!(refused.into_inner() > 0, "the test never filled the arena");
}

type Live = Mutex<BTreeMap<usize, usize>>;

fn fill(mut filling: PinnedMut, mark: u8, live: &Live) -> (Pinned, u8) {
    let start = filling.as_ptr() as usize;
    let end = start + Arena::footprint(filling.len());
    {
        let mut live = live.lock().unwrap();
        if let Some((_, &before)) = live.range(..end).next_back() {
            assert!(before <= start, "two live ranges overlap");
        }
        live.insert(start, end);
    }
    filling.fill(mark);
    (filling.freeze(), mark)
}

fn give_up(pinned: Pinned, mark: u8, live: &Live) {
    assert!(pinned.iter().all(|&byte| byte == mark), "somebody else wrote into a live range");
    live.lock().unwrap().remove(&(pinned.as_ptr() as usize));
}

/// SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: if cfg!(miri) { 4 } else { 256 }, ..ProptestConfig::default() })]

    #[test]
    fn a_footprint_is_enough_and_not_wasteful(len in 0usize..1 << 30) {
        let footprint = Arena::footprint(len);
        prop_assert!(footprint >= len.max(1));
        prop_assert_eq!(footprint % UNIT, 0);
        prop_assert!(footprint - len <= UNIT.max(len / 8 + UNIT));
        prop_assert_eq!(Arena::footprint(footprint), footprint);
    }

    #[test]
    fn the_book_adds_up(lens in prop::collection::vec(0usize..40_000, 1..60), keep in any::<u64>()) {
        let arena = Arena::new(SMALL / 4).unwrap();
        let mut held = Vec::new();
        for (index, len) in lens.into_iter().enumerate() {
            held.extend(arena.allocate(len));
            if keep >> (index % 64) & 1 == 0 {
                held.pop();
            }
            let used: usize = held.iter().map(|range| Arena::footprint(range.len())).sum();
            let expected = Usage { limit: SMALL / 4, used, objects: held.len() };
            prop_assert_eq!(arena.usage(), expected);
            prop_assert!(used <= SMALL / 4);
        }
    }
}

#[test]
fn what_is_charged_leaves_less_room_and_gives_it_back() {
    let arena = Arena::new(1 << 20).unwrap();
    assert!(arena.charge(700 << 10), "there is room");
    assert!(!arena.charge(400 << 10), "that would be more than the limit");
    assert_eq!(arena.usage().objects, 0);
    assert!(arena.usage().used >= 700 << 10 && arena.allocate(512 << 10).is_none());
    let kept = arena.allocate(100 << 10).expect("there is room beside it");
    assert!(!arena.charge(300 << 10));
    arena.uncharge(700 << 10);
    assert!(arena.usage().used <= (100 << 10) + (192 << 10), "{:?}", arena.usage());
    drop(kept);
    assert!(arena.charge(800 << 10));
    arena.uncharge(800 << 10);
    // Bytes that are charged without room count all the same.
    assert!(arena.charge(900 << 10));
    arena.charge_anyway(300 << 10);
    arena.uncharge(300 << 10);
    assert!(!arena.charge(200 << 10));
    arena.uncharge(900 << 10);
    assert!(arena.charge(900 << 10));
}

/// A range that was filled, and then stands for bytes outside, holds no pages.
#[test]
#[cfg(not(miri))]
fn the_pages_that_stand_for_what_is_charged_go_back() {
    let arena = Arena::new(4 << 20).unwrap();
    let mut filled = arena.allocate(3 << 20).expect("room");
    filled.fill(7);
    drop(filled);
    assert!(arena.charge(3 << 20));
    arena.uncharge(3 << 20);
    let read = arena.allocate(3 << 20).expect("room again");
    let zeros = read.iter().filter(|byte| **byte == 0).count();
    assert!(zeros >= 2 << 20, "{zeros}");
}

/// Kilobytes of the process that are in memory and belong to mappings of more than 32 MiB.
#[cfg(not(miri))]
fn resident_of_large_mappings() -> usize {
    let maps = std::fs::read_to_string("/proc/self/smaps").expect("smaps");
    let (mut large, mut all) = (false, 0);
    for line in maps.lines() {
        let number = |rest: &str| rest.trim().trim_end_matches(" kB").parse::<usize>().ok();
        if let Some(size) = line.strip_prefix("Size:").and_then(number) {
            large = size == 48 << 10;
        }
        if let Some(resident) = line.strip_prefix("Rss:").and_then(number).filter(|_| large) {
            all += resident;
        }
    }
    all
}

#[test]
#[cfg(not(miri))]
fn memory_of_a_peak_goes_back_and_what_is_in_use_stays() {
    let arena = Arena::new(48 << 20).unwrap();
    let fill = |len: usize, byte: u8| {
        let mut filling = arena.allocate(len).expect("there is room");
        filling.fill(byte);
        filling.freeze()
    };
    let mut held: Vec<Pinned> = (0..320).map(|number| fill(100_000, number as u8)).collect();
    let peak = resident_of_large_mappings();
    assert!(peak > 30 << 10, "{peak} KiB");
    let (first, last) = (held.swap_remove(7), held.swap_remove(200));
    let (first_byte, last_byte) = (first[0], last[0]);
    drop(held);
    assert!(resident_of_large_mappings() > 30 << 10, "nothing is given back on the way");
    arena.give_back_memory();
    let left = resident_of_large_mappings();
    assert!((190..400).contains(&left), "{left} KiB");
    arena.give_back_memory();
    assert!(first.iter().all(|byte| *byte == first_byte));
    assert!(last.iter().all(|byte| *byte == last_byte));
    let whole: Vec<Pinned> = (0..200).map(|number| fill(200_000, number as u8)).collect();
    assert!(whole.iter().enumerate().all(|(number, one)| one.iter().all(|b| *b == number as u8)));
}
