//! From records to a zone, with the faults of each.

use crate::fault::Fault;
use crate::name::Name;
use crate::rtype;
use crate::zone::{Found, Record, Zone};

/// A zone of these records, in this order; `told` gets the fault and the place of the record in that order, or none of a
/// fault of the whole zone. `None`: it cannot be served.
pub fn build<'r>(
    apex: &Name,
    records: impl IntoIterator<Item = &'r Record>,
    mut told: impl FnMut(Option<usize>, Fault),
) -> Option<Zone> {
    let mut zone = Zone::new(apex.clone());
    let mut is_sound = true;
    for (index, record) in records.into_iter().enumerate() {
        if let Err(fault) = zone.add(record) {
            is_sound &= fault.is_harmless();
            told(Some(index), fault);
        }
    }
    zone.finish();
    let has = |rtype| zone.top().is_some_and(|top| top.set(rtype).is_some());
    for (rtype, fault) in [(rtype::SOA, Fault::NoSoa), (rtype::NS, Fault::NoNs)] {
        if !has(rtype) {
            is_sound = false;
            told(None, fault);
        }
    }
    if is_sound {
        check_targets(&zone, |fault| told(None, fault));
    }
    is_sound.then_some(zone)
}

fn check_targets(zone: &Zone, mut told: impl FnMut(Fault)) {
    // The type, the server, and whether it is within the zone that it serves.
    let mut names: Vec<(u16, Name, bool)> = Vec::new();
    let sets = zone.nodes().flat_map(|node| node.sets.iter().map(move |set| (node, set)));
    for (node, set) in sets.filter(|(_, set)| matches!(set.rtype, rtype::NS | rtype::MX)) {
        let Some(at) = rtype::target(set.rtype) else { continue };
        let targets = set.data.iter().filter_map(|data| Name::from_wire(data.get(at..)?));
        let target = |target: Name| {
            let is_own = target.is_within(node.owner.wire());
            (set.rtype, target.lower(), is_own)
        };
        names.extend(targets.map(target));
    }
    names.sort();
    names.dedup();
    names.retain(|(_, name, _)| name.is_within(zone.apex().wire()));
    for (rtype, name, is_own) in names {
        match zone.find(name.wire()) {
            Some(Found::Exact(node) | Found::Wildcard(node, _))
                if node.set(rtype::CNAME).is_some() =>
            {
                told(Fault::Alias(name));
            }
            Some(Found::Exact(node) | Found::Wildcard(node, _))
                if node.set(rtype::A).or(node.set(rtype::AAAA)).is_some() => {}
            // Glue stands below a cut. A name server of another zone below is that zone's affair.
            Some(Found::Cut(_)) if rtype != rtype::NS || !is_own || has_address(zone, &name) => {}
            Some(Found::Dname(_)) | None => {}
            _ if rtype == rtype::NS => told(Fault::NoAddress(name)),
            _ => {}
        }
    }
}

fn has_address(zone: &Zone, name: &Name) -> bool {
    let own = zone.node(name.wire());
    own.is_some_and(|node| node.set(rtype::A).or(node.set(rtype::AAAA)).is_some())
}
