//! Answers with a client that nobody has met: acknowledgements in and out of order, holes, shrinking
//! windows, marks, nonsense, and long silences. One in four is plain: nothing of its segments is lost.

use afpa_send::{Ack, Begin, Flight, Micros, Path, Progress};

use super::step::{STATE, Step, progress, transmission};

/// Something that takes steps and says in which state it is then.
pub(crate) trait Engine {
    fn step(&mut self, now: Micros, step: &Step) -> Vec<u64>;
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 8) % limit.max(1)
    }
}

/// One answer; the number of steps that agreed. Panics at the first that does not.
pub(crate) fn play(engine: &mut impl Engine, seed: u64) -> u64 {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut now = 1_000_000 + random.below(1 << 34);
    let segment = [536, 1448, 1460, 9000][random.below(4) as usize];
    let length = 1 + random.below(70_000) as u32;
    let window = [1_000, 8_000, 65_535, 1 << 20][random.below(4) as usize];
    let begin = Begin { length, segment, window, path: Path::default() };
    let Some(mut model) = Flight::begin(now, &begin) else {
        let said = engine.step(now, &Step::Begin { length, segment, window });
        assert_eq!(said[0], 0, "seed {seed}: the engine takes what the model does not");
        return 1;
    };
    let mut compare = Comparison { engine, seed, steps: 0 };
    compare.hold(now, &Step::Begin { length, segment, window }, &model, 1, [0; 6]);
    for _ in 0..60 {
        let mut left = random.below(14);
        while left > 0 {
            let send = model.poll_send(now);
            compare.hold(now, &Step::Send, &model, send.is_some().into(), transmission(send));
            left = if send.is_some() { left - 1 } else { 0 };
        }
        now += [1, 90, 1_000, 30_000, 400_000][random.below(5) as usize] + random.below(50);
        if random.below(30) == 0 {
            model.on_narrowed(now);
            model.check_invariants();
            compare.hold(now, &Step::Narrowed, &model, 0, [0; 6]);
        }
        let (step, end) = if random.below(4) == 0 {
            if let Some(deadline) = model.deadline()
                && random.below(3) > 0
            {
                now = now.max(deadline);
            }
            (Step::Time, model.on_time(now))
        } else {
            let mut ack = acknowledgement(&mut random, &model, length, segment, now);
            if seed.is_multiple_of(4) {
                ack = Ack {
                    sack: [(0, 0); 4],
                    marked: false,
                    ack: ack.ack.max(model.acknowledged()),
                    ..ack
                };
            }
            (Step::Ack(ack), model.on_ack(now, &ack))
        };
        model.check_invariants();
        compare.hold(now, &step, &model, progress(end), [0; 6]);
        if matches!(end, Progress::Done | Progress::GivenUp) {
            break;
        }
    }
    compare.steps
}

struct Comparison<'e, E> {
    engine: &'e mut E,
    seed: u64,
    steps: u64,
}

impl<E: Engine> Comparison<'_, E> {
    fn hold(&mut self, now: Micros, step: &Step, model: &Flight, result: u64, sent: [u64; 6]) {
        let said = self.engine.step(now, step);
        let numbers = model.numbers();
        let expected: Vec<u64> = [result].into_iter().chain(sent).chain(numbers).collect();
        assert_eq!(expected.len(), STATE);
        assert_eq!(said, expected, "seed {}, step {}: {step:?}", self.seed, self.steps);
        self.steps += 1;
    }
}

fn acknowledgement(
    random: &mut Random,
    model: &Flight,
    length: u32,
    segment: u32,
    now: Micros,
) -> Ack {
    let una = model.acknowledged();
    let edge = |random: &mut Random| {
        let at = una + random.below(u64::from(12 * segment)) as u32;
        // Most clients acknowledge whole segments.
        if random.below(10) == 0 { at } else { (at / segment * segment).max(una) }.min(length)
    };
    let mut sack = [(0, 0); 4];
    for block in sack.iter_mut().take(random.below(5) as usize) {
        let (a, b) = (edge(random), edge(random));
        *block = (a.min(b), a.max(b));
        if random.below(12) == 0 {
            *block = (a / 2, b / 2); // told twice, or nonsense
        }
    }
    let ack = match random.below(8) {
        0 => una,
        1 => edge(random) / 2,
        2 if random.below(20) == 0 => u32::MAX,
        _ => edge(random),
    };
    let window = [0, 500, 4_000, 65_535, 1 << 20, u32::MAX][random.below(6) as usize];
    let echo = (random.below(3) > 0).then(|| (now / 1000 - random.below(100)) as u32);
    Ack { ack, window, sack, echo, marked: random.below(15) == 0, earlier: random.below(15) == 0 }
}
