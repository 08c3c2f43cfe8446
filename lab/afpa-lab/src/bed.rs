//! The beds that servers are measured on.

use std::process::{Command, Stdio};
use std::time::Duration;

use afpa_netlab::inject::{Impairment, Rules};
use afpa_netlab::{Bed, BedOptions, Offloads, Path, Steering, pin};
use anyhow::{Context, Result, anyhow, bail, ensure};

use crate::results::BedRecord;

/// The same for all servers: the timers of BBR's pacing cost a user-mode server twice its time
/// as soon as an answer has several segments.
pub(crate) const CONGESTION: &str = "cubic";
/// Behind the names of beds with a forwarder in the middle.
const IMPAIRED: &str = "-impaired";
/// The bed that all costs are from.
pub(crate) const STEERED: &str = "steered";
/// The bed of long frames.
pub(crate) const JUMBO: &str = "steered-jumbo";
const JUMBO_BYTES: &str = "9000";
/// Client addresses: non-persistent connections use up ports.
const SOURCES: u32 = 8;

/// A bed, before it is set up.
#[derive(Debug, Clone)]
pub struct BedPlan {
    /// Its name in the results.
    pub name: String,
    /// Where packets are processed.
    layout: Layout,
    /// Delay, loss and bandwidth on the way, if any.
    wire: Option<Wire>,
    /// The client acknowledges each segment at once.
    acknowledges_each: bool,
    /// Frames may have 9,000 bytes and not 1,500.
    has_long_frames: bool,
    /// Core of the server.
    pub server_core: usize,
    /// Core of the generator.
    pub client_core: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    Steered,
    Unsteered,
    OneCore,
}

/// The papers' dummynet: delay, loss and bandwidth between the two sides, in both directions.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Wire {
    /// Added to every packet.
    pub delay: Duration,
    /// Share of packets lost.
    pub loss: f64,
    /// Bits a second.
    pub rate: Option<u64>,
}

impl BedPlan {
    /// Names and descriptions of all beds.
    pub const ALL: [(&str, &str); 4] = [
        (JUMBO, "as steered, with frames of 9,000 bytes and not of 1,500"),
        (STEERED, "each side's packet work on its own core: the server's core holds all its work"),
        ("unsteered", "packet work on the core that sent the packet, as the kernel does it"),
        ("one-core", "server, client and all packet work on one core"),
    ];

    /// A bed by its name.
    ///
    /// # Errors
    ///
    /// When there is no such bed, or no such cores here.
    pub fn named(name: &str, cores: (usize, usize), wire: Option<Wire>) -> Result<Self> {
        let layout = match name {
            STEERED | JUMBO => Layout::Steered,
            "unsteered" => Layout::Unsteered,
            "one-core" => Layout::OneCore,
            _ => {
                bail!("no bed '{name}'; there are: {}", Self::ALL.map(|(name, _)| name).join(", "))
            }
        };
        let (server_core, client_core) = cores;
        let there = std::thread::available_parallelism()?.get();
        ensure!(server_core < there && client_core < there, "this machine has {there} cores");
        ensure!(server_core != client_core, "server and client need a core each");
        Ok(Self {
            name: format!("{name}{}", wire.map_or(String::new(), Wire::suffix)),
            layout,
            wire,
            acknowledges_each: false,
            has_long_frames: name == JUMBO,
            server_core,
            client_core: if layout == Layout::OneCore { server_core } else { client_core },
        })
    }

    /// Sets the bed up. Dropping it removes it; when this process is killed, the next run or
    /// `afpa-lab clean` removes it.
    ///
    /// # Errors
    ///
    /// When a step fails; the parts that were made until then are removed.
    pub fn create(&self) -> Result<Bed> {
        let make = || {
            // The forwarder, if there is one, stays on the core of the thread that makes it.
            if self.wire.is_some() {
                pin(self.client_core)?;
            }
            Bed::create(&self.options())
        };
        let made = std::thread::scope(|scope| scope.spawn(make).join());
        let bed = made.map_err(|_| anyhow!("the bed's set-up panicked"))??;
        if self.acknowledges_each {
            acknowledge_each(&bed)?;
        }
        if self.has_long_frames {
            lengthen_frames(&bed)?;
        }
        Ok(bed)
    }

    /// The same bed, whose client acknowledges each segment at once, as Kim and Rixner's did.
    pub fn acknowledging_each(self) -> Self {
        Self { acknowledges_each: true, ..self }
    }

    /// Client addresses of the bed.
    pub fn sources(&self) -> u32 {
        SOURCES
    }

    /// Packets are processed where they are sent, and nothing delays them.
    pub fn answers_at_once(&self) -> bool {
        self.layout != Layout::Steered && self.wire.is_none()
    }

    fn options(&self) -> BedOptions {
        let steering = match self.layout {
            Layout::Steered => {
                Steering::Cores { server: self.server_core, client: self.client_core }
            }
            Layout::Unsteered | Layout::OneCore => Steering::Unsteered,
        };
        let path = match self.wire {
            None => Path::Direct(Offloads::CARD),
            Some(wire) => Path::Through(Box::new(Rules::both(wire.impairment(), 1))),
        };
        BedOptions { path, steering, congestion: CONGESTION.into(), sources: SOURCES }
    }

    /// For the results.
    pub fn record(&self) -> BedRecord {
        let named = Self::ALL.iter().find(|(name, _)| self.name.starts_with(name));
        let mut about = named.map_or(String::new(), |(_, about)| (*about).to_owned());
        if let Some(wire) = self.wire {
            about += &format!("; {}", wire.words());
        }
        let offloads = match self.wire {
            None => "as on a network card: checksums and segmentation, no merging",
            Some(_) => "none: every packet is what would be on the wire",
        };
        BedRecord {
            about,
            server_core: self.server_core,
            client_core: self.client_core,
            congestion: CONGESTION.into(),
            offloads: offloads.into(),
        }
    }
}

/// On both sides; every listener and connection of a measurement begins later.
fn lengthen_frames(bed: &Bed) -> Result<()> {
    for side in [bed.client(), bed.server()] {
        let mut command = side.command("ip");
        command.args(["link", "set", "dev", Bed::DEVICE, "mtu", JUMBO_BYTES]);
        run(command).context("frames of 9,000 bytes")?;
    }
    Ok(())
}

/// By the client's route to the server: a setting of a socket would have to be repeated after each answer.
fn acknowledge_each(bed: &Bed) -> Result<()> {
    let network =
        format!("{}.0.0/16", Bed::SERVER_V4.octets().map(|one| one.to_string())[..2].join("."));
    let mut command = bed.client().command("ip");
    command.args(["route", "change", &network, "dev", Bed::DEVICE, "quickack", "1"]);
    run(command).context("a route that acknowledges at once")
}

fn run(mut command: Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output().context("cannot start ip")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "ip: {}", said.trim());
    Ok(())
}

/// The delay each way on the bed of this name; `None` where no forwarder is in the middle.
pub fn delay_of(name: &str) -> Option<Duration> {
    let (_, delay) = name.strip_suffix(IMPAIRED)?.rsplit_once('-')?;
    let (number, unit) = delay.split_at_checked(delay.find(|c: char| !c.is_ascii_digit())?)?;
    let number: u64 = number.parse().ok()?;
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "us" => Some(Duration::from_micros(number)),
        _ => None,
    }
}

/// Does the bed of this name lose or delay packets?
pub fn is_impaired(name: &str) -> bool {
    name.ends_with(IMPAIRED)
}

/// Is all of the server's work, and nothing else, done on the server's core of this bed?
pub fn tells_cost(name: &str) -> bool {
    name.starts_with("steered")
}

impl Wire {
    /// `None` when nothing happens to packets.
    pub fn new(delay: Duration, loss: f64, rate: Option<u64>) -> Option<Self> {
        let wire = Self { delay, loss, rate };
        (wire != Self::default()).then_some(wire)
    }

    fn impairment(self) -> Impairment {
        Impairment { delay: self.delay, loss: self.loss, rate: self.rate, ..Impairment::default() }
    }

    /// Behind the bed's name: beds of different delays are different beds.
    fn suffix(self) -> String {
        match self.delay.as_micros() {
            0 => IMPAIRED.to_owned(),
            micros if micros % 1000 == 0 => format!("-{}ms{IMPAIRED}", micros / 1000),
            micros => format!("-{micros}us{IMPAIRED}"),
        }
    }

    fn words(self) -> String {
        let mut words = Vec::new();
        if !self.delay.is_zero() {
            words.push(format!("{:?} delay each way", self.delay));
        }
        if self.loss > 0.0 {
            words.push(format!("{} % of packets lost", self.loss * 100.0));
        }
        if let Some(rate) = self.rate {
            words.push(format!("{} Mbit/s", rate as f64 / 1e6));
        }
        words.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beds_are_known_by_name() {
        let steered = BedPlan::named("steered", (0, 1), None).unwrap();
        assert_eq!((steered.server_core, steered.client_core), (0, 1));
        let one = BedPlan::named("one-core", (0, 1), None).unwrap();
        assert_eq!((one.server_core, one.client_core), (0, 0));
        assert!(one.answers_at_once() && !steered.answers_at_once());
        let jumbo = BedPlan::named("steered-jumbo", (0, 1), None).unwrap();
        assert!(jumbo.record().about.contains("9,000 bytes") && tells_cost(&jumbo.name));
        assert!(!one.record().about.contains("9,000 bytes"));
        assert!(BedPlan::named("tilted", (0, 1), None).is_err());
        assert!(BedPlan::named("steered", (0, 0), None).is_err());
        assert!(BedPlan::named("steered", (0, 4096), None).is_err());
    }

    #[test]
    fn an_impaired_bed_says_how() {
        let wire = Wire::new(Duration::from_millis(10), 0.01, Some(20_000_000));
        let bed = BedPlan::named("steered", (0, 1), wire).unwrap();
        assert!(is_impaired(&bed.name) && !is_impaired("steered"));
        assert_eq!(bed.name, "steered-10ms-impaired");
        assert_eq!(delay_of(&bed.name), Some(Duration::from_millis(10)));
        assert_eq!(delay_of("steered-1us-impaired"), Some(Duration::from_micros(1)));
        assert_eq!([delay_of("steered"), delay_of("steered-impaired")], [None, None]);
        let about = bed.record().about;
        for part in ["10ms delay", "1 % of packets lost", "20 Mbit/s"] {
            assert!(about.contains(part), "{about}");
        }
        assert_eq!(Wire::new(Duration::ZERO, 0.0, None), None);
    }
}
