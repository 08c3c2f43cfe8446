//! The part of its keys that a machine gives up because it has too much to do for the others.

/// The part, with feedback: while the load of this machine is above the bound, it gives up as much as is beyond it; below,
/// it takes back a little at a time, because each key that comes back is a miss.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shed(u8);

/// The bound on the load of one machine, as a part of the average.
const BOUND: f64 = 1.25;

/// From here on keys come back: a key that comes back must not be given up again at once.
const EASY: f64 = 1.1;

/// The parts, of 256, that come back in a second.
const BACK: u8 = 4;

/// A machine keeps a quarter of its keys, whatever it has to do: others have as little room for them.
const MOST: f64 = 192.0;

/// Loads below this are no burden.
const LEAST_A_SECOND: f64 = 100.0;

impl Shed {
    /// The parts of its keys, of 256, that it gives up from now on: once a second. `own`: its answers for the fleet in this
    /// second; `mean`: the average of all machines.
    pub fn read(&mut self, own: f64, mean: f64) -> u8 {
        if own > BOUND * mean && own > LEAST_A_SECOND {
            let kept = (256.0 - f64::from(self.0)) * BOUND * mean / own;
            self.0 = (256.0 - kept).clamp(f64::from(self.0), MOST) as u8;
        } else if own < EASY * mean || own <= LEAST_A_SECOND {
            self.0 = self.0.saturating_sub(BACK);
        }
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_with_too_much_to_do_gives_up_what_is_beyond_the_bound() {
        let mut shed = Shed::default();
        assert_eq!(shed.read(1_200.0, 1_000.0), 0);
        assert_eq!(shed.read(2_500.0, 1_000.0), 128);
        // It has half of its keys now, and half of the load.
        assert_eq!(shed.read(1_250.0, 1_000.0), 128);
        assert_eq!(shed.read(1_090.0, 1_000.0), 124, "some come back");
        for _ in 0..31 {
            shed.read(500.0, 1_000.0);
        }
        assert_eq!(shed.read(500.0, 1_000.0), 0);
    }

    #[test]
    fn it_never_gives_up_all_and_an_idle_fleet_nothing() {
        let mut shed = Shed::default();
        for _ in 0..50 {
            assert_eq!(shed.read(1e9, 1.0), 192);
        }
        assert_eq!(Shed::default().read(90.0, 1.0), 0);
        assert_eq!(Shed::default().read(f64::NAN, 0.0), 0);
    }
}
