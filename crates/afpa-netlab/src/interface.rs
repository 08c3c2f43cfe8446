//! Interfaces of a namespace: veth pairs, addresses, offloads, steering.

use anyhow::{Context, Result, anyhow, ensure};

use crate::namespace::Namespace;
use crate::tool;

/// The offloads by which a veth behaves like a network card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offloads {
    /// Checksums are left to the "card": packets carry the pseudo-header sum only.
    pub checksum: bool,
    /// TCP may send packets of many segments (TSO, GSO).
    pub segmentation: bool,
    /// Received segments are merged (GRO).
    pub merging: bool,
}

impl Offloads {
    /// As a veth has them by default and a server card in effect: all but merging.
    pub const CARD: Self = Self { checksum: true, segmentation: true, merging: false };
    /// Every packet is what would be on the wire; needed in front of an injector.
    pub const NONE: Self = Self { checksum: false, segmentation: false, merging: false };
    /// Wire-size packets, checksums left out.
    pub const CHECKSUM_ONLY: Self = Self { checksum: true, segmentation: false, merging: false };
}

/// Joins two namespaces by a veth pair; each end is a (namespace, interface name). Both go up.
///
/// # Errors
///
/// When an interface of that name exists, or `ip` fails.
pub fn connect(one: (&Namespace, &str), other: (&Namespace, &str)) -> Result<()> {
    tool::ip(&format!(
        "link add {} netns {} type veth peer name {} netns {}",
        one.1,
        one.0.name(),
        other.1,
        other.0.name()
    ))?;
    for (namespace, name) in [one, other] {
        namespace.interface(name).bring_up()?;
    }
    Ok(())
}

/// One interface inside a namespace.
#[derive(Debug, Clone, Copy)]
pub struct Interface<'n> {
    namespace: &'n Namespace,
    name: &'n str,
}

impl<'n> Interface<'n> {
    pub(crate) fn new(namespace: &'n Namespace, name: &'n str) -> Self {
        Self { namespace, name }
    }

    fn bring_up(&self) -> Result<()> {
        // Nothing but the test's own packets: no router solicitations, no duplicate detection.
        for setting in ["accept_ra=0", "accept_dad=0", "addr_gen_mode=1"] {
            let (key, value) = setting.split_once('=').context("a setting has a value")?;
            self.namespace_sysctl(&format!("net.ipv6.conf.{}.{key}", self.name), value)?;
        }
        self.ip(&format!("link set {} up", self.name))
    }

    /// Adds addresses, in the form ADDRESS/PREFIX, of either family.
    ///
    /// # Errors
    ///
    /// When `ip` refuses one of them.
    pub fn add_addresses<'a>(&self, addresses: impl IntoIterator<Item = &'a str>) -> Result<()> {
        let batch: String = addresses.into_iter().map(|a| self.address_line(a)).collect();
        let file = std::env::temp_dir().join(format!("{}.addresses", self.namespace.name()));
        std::fs::write(&file, batch)?;
        let done = self.ip(&format!("-batch {}", file.display()));
        std::fs::remove_file(&file)?;
        done
    }

    fn address_line(&self, address: &str) -> String {
        let nodad = if address.contains(':') { "nodad" } else { "" };
        format!("address add {address} dev {} {nodad}\n", self.name)
    }

    /// Sets the offloads and makes sure that they are what was asked for.
    ///
    /// # Errors
    ///
    /// When ethtool fails, or the driver kept another value.
    pub fn set_offloads(&self, offloads: Offloads) -> Result<()> {
        let word = |on: bool| if on { "on" } else { "off" };
        let (tx, many) = (word(offloads.checksum), word(offloads.segmentation));
        let wanted = format!(
            "-K {} tx {tx} tso {many} gso {many} gro {} ",
            self.name,
            word(offloads.merging)
        );
        tool::finish(self.namespace.command("ethtool").args(wanted.split_whitespace()))?;
        let found = self.offloads()?;
        ensure!(found == offloads, "{}: asked for {offloads:?}, got {found:?}", self.name);
        Ok(())
    }

    /// Its link address.
    ///
    /// # Errors
    ///
    /// When there is no such interface.
    pub fn mac(&self) -> Result<[u8; 6]> {
        let file = format!("/sys/class/net/{}/address", self.name);
        let text = tool::finish(self.namespace.command("cat").arg(file))?;
        let bytes = text.trim().split(':').map(|byte| u8::from_str_radix(byte, 16));
        let bytes: Vec<u8> = bytes.collect::<Result<_, _>>()?;
        bytes.try_into().map_err(|_| anyhow!("no link address: {text}"))
    }

    /// The offloads that are in force.
    ///
    /// # Errors
    ///
    /// When ethtool fails or prints something unknown.
    pub fn offloads(&self) -> Result<Offloads> {
        let text = tool::finish(self.namespace.command("ethtool").args(["-k", self.name]))?;
        let on = |feature: &str| -> Result<bool> {
            let line = text.lines().find_map(|line| line.trim().strip_prefix(feature));
            Ok(line.with_context(|| format!("ethtool names no {feature}"))?.starts_with(": on"))
        };
        Ok(Offloads {
            checksum: on("tx-checksumming")?,
            segmentation: on("tcp-segmentation-offload")? || on("generic-segmentation-offload")?,
            merging: on("generic-receive-offload")?,
        })
    }

    /// Has received packets processed on `core` (receive packet steering); `None`: on the core
    /// that sent them.
    ///
    /// # Errors
    ///
    /// When the kernel has no RPS.
    pub fn steer(&self, core: Option<usize>) -> Result<()> {
        let mask = core.map_or(0_u64, |core| 1 << core);
        let script = format!(
            "for queue in /sys/class/net/{}/queues/rx-*; do echo {mask:x} > $queue/rps_cpus; done",
            self.name
        );
        tool::finish(self.namespace.command("sh").args(["-ec", &script]))?;
        Ok(())
    }

    fn namespace_sysctl(&self, key: &str, value: &str) -> Result<()> {
        let assignment = format!("{key}={value}");
        tool::finish(self.namespace.command("sysctl").args(["-qw", &assignment]))?;
        Ok(())
    }

    fn ip(&self, words: &str) -> Result<()> {
        tool::ip(&format!("-n {} {words}", self.namespace.name()))?;
        Ok(())
    }
}
