//! The sections of an answer: sets of records with their signatures, referrals, proofs, and addresses that spare a question.

use super::{Answer, IN};
use crate::message::{Full, Section};
use crate::name::{Name, wire_length};
use crate::proof;
use crate::rtype;
use crate::zone::{Found, Node, RrSet, Zone, minimum_of};

impl Answer<'_, '_> {
    /// Signatures alone, as a client of type RRSIG wants them: those of the first set that has some.
    pub(super) fn signatures(
        &mut self,
        zone: &Zone,
        node: &Node,
        owner: &[u8],
    ) -> Result<(), Full> {
        let Some(set) = node.sets.iter().find(|set| !set.signatures.is_empty()) else {
            return self.negative(zone);
        };
        for data in &set.signatures {
            self.out.record(Section::Answer, owner, (rtype::RRSIG, IN, set.ttl), data)?;
        }
        Ok(())
    }

    /// Says that the name servers of a zone below have the answer.
    pub(super) fn refer(&mut self, zone: &Zone, cut: &Node, proofs: &[&Node]) -> Result<(), Full> {
        let Some(servers) = cut.set(rtype::NS) else { return Ok(()) };
        self.prove(zone, proofs)?;
        let owner = cut.owner.wire();
        for data in &servers.data {
            self.out.record(Section::Authority, owner, (rtype::NS, IN, servers.ttl), data)?;
        }
        if self.wants_signatures() {
            match cut.set(rtype::DS) {
                Some(set) => self.set(Section::Authority, owner, set)?,
                None => self.prove(zone, &proof::of_no_ds(zone, cut))?,
            }
        }
        self.note_targets(servers);
        // Without the addresses of servers below the cut nobody could go on (RFC 9471).
        let (below, others): (Vec<Name>, Vec<Name>) =
            self.targets.drain(..).partition(|target| target.is_within(owner));
        for target in below {
            self.addresses(zone, &target)?;
        }
        self.targets = others;
        self.additional(zone)
    }

    pub(super) fn note_targets(&mut self, set: &RrSet) {
        let Some(at) = rtype::target(set.rtype) else { return };
        for data in &set.data {
            let rest = data.get(at..).unwrap_or_default();
            let name = wire_length(rest).and_then(|length| rest.get(..length));
            // A dot stands for no server, or for the owner, which is in the answer.
            let Some(name) = name.filter(|name| name.len() > 1).and_then(Name::from_wire) else {
                continue;
            };
            if !self.targets.contains(&name) {
                self.targets.push(name);
            }
        }
    }

    /// Addresses that spare the client a question. They may be left out.
    pub(super) fn additional(&mut self, zone: &Zone) -> Result<(), Full> {
        for target in std::mem::take(&mut self.targets) {
            let mark = self.out.mark();
            if self.addresses(zone, &target).is_err() {
                self.out.go_back(mark);
            }
        }
        Ok(())
    }

    fn addresses(&mut self, zone: &Zone, target: &Name) -> Result<(), Full> {
        let lower = target.lower();
        if !lower.is_within(zone.apex().wire()) {
            return Ok(());
        }
        let node = match zone.find(lower.wire()) {
            Some(Found::Exact(node) | Found::Wildcard(node, _)) => Some(node),
            Some(Found::Cut(_)) => zone.node(lower.wire()),
            _ => None,
        };
        let sets = [rtype::A, rtype::AAAA];
        let sets =
            node.into_iter().flat_map(|node| sets.iter().filter_map(|rtype| node.set(*rtype)));
        for set in sets {
            self.set(Section::Additional, target.wire(), set)?;
        }
        Ok(())
    }

    /// The zone's SOA, which says for how long there is no such thing (RFC 2308 section 3).
    pub(super) fn negative(&mut self, zone: &Zone) -> Result<(), Full> {
        let Some(set) = zone.top().and_then(|top| top.set(rtype::SOA)) else { return Ok(()) };
        let minimum = set.data.first().and_then(|data| minimum_of(data)).unwrap_or(0);
        self.set_for(Section::Authority, zone.apex().wire(), set, set.ttl.min(minimum))
    }

    pub(super) fn prove(&mut self, zone: &Zone, nodes: &[&Node]) -> Result<(), Full> {
        if !self.wants_signatures() {
            return Ok(());
        }
        let kind = if zone.nsec3().is_some() { rtype::NSEC3 } else { rtype::NSEC };
        for (index, node) in nodes.iter().enumerate() {
            let is_there = nodes
                .get(..index)
                .is_some_and(|before| before.iter().any(|other| std::ptr::eq(*other, *node)));
            if let Some(set) = node.set(kind).filter(|_| !is_there) {
                self.set(Section::Authority, node.owner.wire(), set)?;
            }
        }
        Ok(())
    }

    pub(super) fn set(&mut self, section: Section, owner: &[u8], set: &RrSet) -> Result<(), Full> {
        self.set_for(section, owner, set, set.ttl)
    }

    fn set_for(
        &mut self,
        section: Section,
        owner: &[u8],
        set: &RrSet,
        ttl: u32,
    ) -> Result<(), Full> {
        for data in &set.data {
            self.out.record(section, owner, (set.rtype, IN, ttl), data)?;
        }
        if self.wants_signatures() {
            for data in &set.signatures {
                self.out.record(section, owner, (rtype::RRSIG, IN, ttl), data)?;
            }
        }
        Ok(())
    }

    fn wants_signatures(&self) -> bool {
        self.query.edns.is_some_and(|edns| edns.wants_signatures)
    }
}
