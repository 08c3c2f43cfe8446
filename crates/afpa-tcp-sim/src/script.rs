//! A client that nobody has met: ACKs in and out of order, gaps, shrinking windows, marks, nonsense and long
//! silences. One in four is plain: it never SACKs.

use crate::oracle;
use crate::random::Random;
use crate::step::{Ack, Micros, Path, SenderState, Step, progress, timer};

/// One transfer with such a client. `take` takes a step and tells the state after it; returns how many there were.
pub fn play(seed: u64, mut take: impl FnMut(Micros, &Step) -> SenderState) -> u64 {
    let mut random = Random::new(seed ^ 0x5c21_97f0_0000_0000);
    let mut now = 1_000_000 + random.between(0, 1 << 34);
    let segment = random.pick(&[536, 1448, 1460, 9000]);
    let length = random.between(1, 70_001) as u32;
    let window = random.pick(&[1_000, 8_000, 65_535, 1 << 20]);
    let mut state = SenderState::default();
    let mut steps = 0;
    let mut step = |now: Micros, step: Step, state: &mut SenderState| {
        let after = take(now, &step);
        if let Err(broken) = oracle::check(state, now, &step, &after) {
            panic!("script {seed}: {broken}\nbefore {state:?}\nat {now} {step:?}\nafter {after:?}");
        }
        *state = after;
        steps += 1;
        after.result
    };
    if step(now, Step::Begin { length, segment, window, path: Path::default() }, &mut state) == 0 {
        return steps;
    }
    for _ in 0..60 {
        for _ in 0..random.between(0, 14) {
            if step(now, Step::Poll, &mut state) == 0 {
                break;
            }
        }
        now += random.pick(&[1, 90, 1_000, 30_000, 400_000]) + random.between(0, 50);
        if random.chance(3.0) {
            step(now, Step::MtuLowered, &mut state);
        }
        let ended = if random.chance(25.0) {
            if state.timer != timer::NONE && random.chance(66.0) {
                now = now.max(state.deadline);
            }
            step(now, Step::Timer, &mut state)
        } else {
            let mut ack = acknowledgement(&mut random, &state, length, segment, now);
            if seed.is_multiple_of(4) {
                let una = state.snd_una as u32;
                ack = Ack { sack: [(0, 0); 4], ece: false, ack: ack.ack.max(una), ..ack };
            }
            step(now, Step::Ack(ack), &mut state)
        };
        if ended == progress::DONE || ended == progress::GIVEN_UP {
            break;
        }
    }
    steps
}

fn acknowledgement(
    random: &mut Random,
    state: &SenderState,
    length: u32,
    segment: u32,
    now: Micros,
) -> Ack {
    let una = state.snd_una as u32;
    let edge = |random: &mut Random| {
        let at = una + random.between(0, u64::from(12 * segment)) as u32;
        // Most clients acknowledge whole segments.
        if random.chance(10.0) { at } else { (at / segment * segment).max(una) }.min(length)
    };
    let mut sack = [(0, 0); 4];
    let blocks = random.between(0, 5) as usize;
    for block in sack.iter_mut().take(blocks) {
        let (a, b) = (edge(random), edge(random));
        *block = (a.min(b), a.max(b));
        if random.chance(8.0) {
            *block = (a / 2, b / 2); // a DSACK, or nonsense
        }
    }
    let ack = match random.between(0, 8) {
        0 => una,
        1 => edge(random) / 2,
        2 if random.chance(5.0) => u32::MAX,
        _ => edge(random),
    };
    let wnd = random.pick(&[0, 500, 4_000, 65_535, 1 << 20, u32::MAX]);
    let tsecr = random.chance(66.0).then(|| (now / 1000 - random.between(0, 100)) as u32);
    Ack { ack, wnd, sack, tsecr, ece: random.chance(7.0), earlier_dsack: random.chance(7.0) }
}
