//! From records to a zone, with the faults of each.

use thiserror::Error;

use crate::name::{Name, suffixes};
use crate::rtype;
use crate::zone::{Found, Record, Zone};

/// What is wrong with a zone, or only odd about it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// A record of another zone.
    #[error("the name is not within the zone")]
    Outside,
    /// An SOA that is not at the zone's name.
    #[error("an SOA stands below the name of the zone")]
    SoaBelow,
    /// Another record has the name of a CNAME.
    #[error("a CNAME and other records have the same name")]
    BesideCname,
    /// A second record where there can only be one.
    #[error("there is a second record, where a name can have only one of this type")]
    Second,
    /// The records of a set have several times to live.
    #[error("records of one name and type have different times to live; the shortest counts")]
    TtlDiffers,
    /// There is no SOA.
    #[error("the zone has no SOA")]
    NoSoa,
    /// There are no name servers.
    #[error("the zone has no NS at its name")]
    NoNs,
    /// A name server of the zone has a name within it that has no address.
    #[error("{0} is a name server, and has no address in this zone")]
    NoAddress(Name),
    /// A name that must not be an alias is one.
    #[error("{0} is the name of a server, and is an alias (CNAME)")]
    Alias(Name),
}

impl Fault {
    /// Whether the zone can be served all the same.
    pub fn is_harmless(&self) -> bool {
        matches!(self, Fault::TtlDiffers | Fault::NoAddress(_) | Fault::Alias(_))
    }

    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Fault::Outside => {
                "remove it, or end the name with the zone's, or leave the dot at its end out"
            }
            Fault::SoaBelow => "remove it: a zone below this one has a file of its own",
            Fault::BesideCname => {
                "remove one of them; at the zone's name use A and AAAA, or HTTPS with `0 target`"
            }
            Fault::Second => "remove one of them",
            Fault::TtlDiffers => "write the same TTL at each, or none and $TTL above them",
            Fault::NoSoa => "write for example: @ SOA ns1 hostmaster 1 1h 15m 4w 5m",
            Fault::NoNs => "write for example: @ NS ns1, and: ns1 A 192.0.2.1",
            Fault::NoAddress(_) => "give it an A or AAAA record here",
            Fault::Alias(_) => {
                "give it A and AAAA records in place of the CNAME (RFC 2181 section 10.3)"
            }
        }
    }
}

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
    let mut names: Vec<(u16, Name)> = Vec::new();
    let sets = zone.nodes().flat_map(|node| &node.sets);
    for set in sets.filter(|set| matches!(set.rtype, rtype::NS | rtype::MX)) {
        let Some(at) = rtype::target(set.rtype) else { continue };
        let targets = set.data.iter().filter_map(|data| Name::from_wire(data.get(at..)?));
        names.extend(targets.map(|target| (set.rtype, target.lower())));
    }
    names.sort();
    names.dedup();
    for (rtype, name) in names.into_iter().filter(|(_, name)| name.is_within(zone.apex().wire())) {
        match zone.find(name.wire()) {
            Some(Found::Exact(node) | Found::Wildcard(node, _))
                if node.set(rtype::CNAME).is_some() =>
            {
                told(Fault::Alias(name));
            }
            Some(Found::Exact(node) | Found::Wildcard(node, _))
                if node.set(rtype::A).or(node.set(rtype::AAAA)).is_some() => {}
            // Glue stands below a cut.
            Some(Found::Cut(_)) if rtype != rtype::NS || has_address(zone, &name) => {}
            Some(Found::Dname(_)) | None => {}
            _ if rtype == rtype::NS => told(Fault::NoAddress(name)),
            _ => {}
        }
    }
}

fn has_address(zone: &Zone, name: &Name) -> bool {
    // A name server of a zone below another cut is that zone's affair.
    let cuts = suffixes(name.wire()).filter_map(|suffix| zone.node(suffix));
    let cuts = cuts.filter(|node| node.set(rtype::NS).is_some());
    let own = zone.node(name.wire());
    own.is_some_and(|node| node.set(rtype::A).or(node.set(rtype::AAAA)).is_some())
        || cuts.count() > 1 && own.is_none()
}
