//! The generator's eBPF program and its maps.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Instant;

use afpa_testkit::packet::MacPair;
use anyhow::{Context, Result, ensure};
use libbpf_rs::{Map, MapCore};

use super::exchange::Learned;
use super::options::{LoadOptions, total};
use super::{ports, request};
use crate::object::{Aligned, Attachment, Fields, Layout, Loaded, fetch, internet_sum, store, sum};

static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/generator.o")));

/// Client ports of one address, all of them.
const PORTS: u32 = 1 << 16;

/// The loaded program, attached to the client's interface.
pub(crate) struct Program {
    // Before the object: detached first.
    _attachment: Attachment,
    object: Loaded,
    pub(crate) flow: FlowLayout,
    pub(crate) states: States,
    counters: BTreeMap<u32, String>,
    first_source: u32,
}

/// Where the fields of `struct flow` lie.
pub(crate) struct FlowLayout {
    layout: Layout,
    pub(crate) sent_ns: usize,
    pub(crate) state: usize,
    pub(crate) seq: usize,
    pub(crate) ack: usize,
    pub(crate) got: usize,
    pub(crate) target: usize,
    pub(crate) cursor: usize,
    pub(crate) ts_recent: usize,
    pub(crate) ts_offset: usize,
    pub(crate) stamped: usize,
}

/// Values of `enum flow_state`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct States {
    pub(crate) kernel: u32,
    pub(crate) learn: u32,
    pub(crate) driven: u32,
    pub(crate) closed: u32,
    pub(crate) syn_sent: u32,
    pub(crate) asked: u32,
    pub(crate) done: u32,
}

/// Everything counted, at a moment.
pub(crate) struct Counted {
    pub(crate) taken: Instant,
    pub(crate) counts: BTreeMap<String, u64>,
}

impl Program {
    pub(crate) fn load(
        options: &LoadOptions,
        first_source: IpAddr,
        targets: &[Learned],
    ) -> Result<Self> {
        let weights: Vec<u32> = targets.iter().map(|learned| learned.target.weight).collect();
        let schedule = request::schedule(&weights)?;
        let sizes = [
            ("flows", PORTS * options.sources),
            ("ring", PORTS * options.sources),
            ("targets", targets.len() as u32),
            ("schedule", schedule.len() as u32),
            ("slots", options.connections),
        ];
        let object = Loaded::load("generator", &OBJECT.0, &sizes)?;
        let first_source = low_bits(first_source);
        write_targets(&object, targets)?;
        for (slot, target) in (0..).zip(&schedule) {
            store(&object.map("schedule")?, slot, &target.to_ne_bytes())?;
        }
        write_settings(&object, options, schedule.len() as u32 - 1, first_source)?;
        let program = if options.once { "generate_once" } else { "generate" };
        let attachment = object.attach(program, &options.interface)?;
        Ok(Self {
            flow: FlowLayout::of(&object)?,
            states: States::of(&object)?,
            counters: object.names("counter", "COUNT_")?,
            _attachment: attachment,
            object,
            first_source,
        })
    }

    /// No request follows a completed response from now on.
    pub(crate) fn stop(&self) -> Result<()> {
        let map = self.object.map("settings")?;
        let mut settings = fetch(&map, 0)?;
        settings.put_u32(self.object.layout("settings")?.field("run")?, 0);
        store(&map, 0, &settings)
    }

    /// Index of the flow of a client address and port.
    pub(crate) fn index(&self, address: IpAddr, port: u16) -> u32 {
        (low_bits(address).wrapping_sub(self.first_source)) << 16 | u32::from(port)
    }

    /// Lets the flow `next` ask when the response on `flow` is complete.
    pub(crate) fn follow(&self, flow: u32, next: u32) -> Result<()> {
        store(&self.object.map("ring")?, flow, &next.to_ne_bytes())
    }

    pub(crate) fn flows(&self) -> Result<Map<'_>> {
        self.object.map("flows")
    }

    /// Which flow each slot is at.
    pub(crate) fn slots(&self) -> Result<Map<'_>> {
        self.object.map("slots")
    }

    /// Link addresses (client's, server's) that were seen while learning.
    pub(crate) fn peer(&self) -> Result<MacPair> {
        let (peer, layout) = (fetch(&self.object.map("peer")?, 0)?, self.object.layout("peer")?);
        let mut macs = MacPair::default();
        for (field, half) in ["server", "client"].into_iter().zip(macs.chunks_mut(6)) {
            let bytes = peer.get(layout.field(field)?..).and_then(<[u8]>::first_chunk::<6>);
            half.copy_from_slice(bytes.context("a link address has six bytes")?);
        }
        Ok(macs)
    }

    pub(crate) fn count(&self) -> Result<Counted> {
        let (taken, counters) = (Instant::now(), self.object.map("counters")?);
        let named = |(index, name): (&u32, &String)| Ok((name.clone(), sum(&counters, *index)?));
        Ok(Counted { taken, counts: self.counters.iter().map(named).collect::<Result<_>>()? })
    }

    /// The buckets of the latency histogram.
    pub(crate) fn latency(&self) -> Result<Vec<u64>> {
        let latency = self.object.map("latency")?;
        (0..latency.max_entries()).map(|bucket| sum(&latency, bucket)).collect()
    }
}

impl FlowLayout {
    fn of(object: &Loaded) -> Result<Self> {
        let layout = object.layout("flow")?;
        Ok(Self {
            sent_ns: layout.field("sent_ns")?,
            state: layout.field("state")?,
            seq: layout.field("seq")?,
            ack: layout.field("ack")?,
            got: layout.field("got")?,
            target: layout.field("target")?,
            cursor: layout.field("cursor")?,
            ts_recent: layout.field("ts_recent")?,
            ts_offset: layout.field("ts_offset")?,
            stamped: layout.field("stamped")?,
            layout,
        })
    }

    /// A flow of which nothing is known.
    pub(crate) fn fresh(&self, state: u32) -> Vec<u8> {
        let mut flow = self.layout.zeroed();
        flow.put_u32(self.state, state);
        flow
    }
}

impl States {
    fn of(object: &Loaded) -> Result<Self> {
        let names = object.names("flow_state", "FLOW_")?;
        let value = |wanted: &str| {
            let found = names.iter().find(|(_, name)| *name == wanted);
            found.map(|(value, _)| *value).with_context(|| format!("no flow state {wanted}"))
        };
        Ok(Self {
            kernel: value("kernel")?,
            learn: value("learn")?,
            driven: value("driven")?,
            closed: value("closed")?,
            syn_sent: value("syn_sent")?,
            asked: value("asked")?,
            done: value("done")?,
        })
    }
}

fn write_targets(object: &Loaded, targets: &[Learned]) -> Result<()> {
    let layout = object.layout("target")?;
    let (map, room) = (object.map("targets")?, layout.field("request")?);
    for (index, learned) in (0..).zip(targets) {
        let mut target = layout.zeroed();
        let limit = target.len() - room;
        ensure!(learned.request.len() <= limit, "a request has more than {limit} bytes");
        target.put_u32(layout.field("request_length")?, learned.request.len() as u32);
        target.put_u32(layout.field("request_sum")?, internet_sum(&learned.request));
        target.put_u32(layout.field("response_length")?, learned.response_length as u32);
        if let Some(age) = &learned.age {
            target.put_u32(layout.field("age_at")?, age.start as u32);
            target.put_u32(layout.field("age_digits")?, age.len() as u32);
        }
        target.put(layout.field("status")?, format!("{} ", learned.target.status).as_bytes());
        target.put(room, &learned.request);
        store(&map, index, &target)?;
    }
    Ok(())
}

fn write_settings(
    object: &Loaded,
    options: &LoadOptions,
    schedule_mask: u32,
    first_source: u32,
) -> Result<()> {
    let layout = object.layout("settings")?;
    let mut settings = layout.zeroed();
    settings.put_u32(layout.field("server_port")?, options.to.port().into());
    settings.put_u32(layout.field("late_acks")?, options.late_acks.into());
    settings.put_u32(layout.field("run")?, 1);
    settings.put_u32(layout.field("schedule_mask")?, schedule_mask);
    settings.put_u32(layout.field("source_first")?, first_source);
    settings.put_u32(layout.field("sources")?, options.sources);
    settings.put_u32(layout.field("first_port")?, ports::FIRST_PORT);
    settings.put_u32(layout.field("ports")?, ports::PORTS);
    settings.put_u32(layout.field("slots")?, options.connections);
    settings.put_u32(layout.field("total")?, total(options));
    store(&object.map("settings")?, 0, &settings)
}

fn low_bits(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(address) => address.to_bits(),
        IpAddr::V6(address) => address.to_bits() as u32,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_histogram_has_the_program_s_buckets() {
        let header = include_str!("../../../../bpf/generator/abi.h");
        let bits = super::super::histogram::SUB.trailing_zeros();
        assert!(header.contains(&format!("#define HISTOGRAM_SUB_BITS {bits}\n")));
    }
}
