//! Proofs of what is not there: which NSEC or NSEC3 records an answer needs (RFC 4035 section 3.1.3, RFC 5155 section 7.2).

use crate::name::Name;
use crate::nsec3::Nsec3;
use crate::zone::{Encloser, Node, Zone};

/// There is neither such a name nor a wildcard for it.
pub(crate) fn of_nothing<'z>(
    zone: &'z Zone,
    lower: &[u8],
    encloser: Encloser<'_>,
) -> Vec<&'z Node> {
    match zone.nsec3() {
        None => {
            let star = Name::star_below(encloser.closest.owner.lower().wire());
            let star = star.and_then(|star| zone.nsec(star.wire()));
            zone.nsec(lower).into_iter().chain(star).collect()
        }
        Some(nsec3) => {
            let Some((closest, next_closer)) = provable(zone, nsec3, lower, Some(encloser)) else {
                return Vec::new();
            };
            // The wildcard of the encloser that is proven, which with opt-out may be above the one that is there.
            let star = Name::star_below(closest);
            let star = star.and_then(|star| nsec3.covering(zone, star.wire()));
            let matching = nsec3.matching(zone, closest).into_iter();
            matching.chain(nsec3.covering(zone, next_closer)).chain(star).collect()
        }
    }
}

/// The name is not there, so that the wildcard's answer holds.
pub(crate) fn of_wildcard<'z>(
    zone: &'z Zone,
    lower: &[u8],
    encloser: Encloser<'_>,
) -> Vec<&'z Node> {
    let next_closer = lower.get(encloser.next_closer..).unwrap_or(lower);
    match zone.nsec3() {
        None => zone.nsec(lower).into_iter().collect(),
        Some(nsec3) => nsec3.covering(zone, next_closer).into_iter().collect(),
    }
}

/// The name is there, or its wildcard, and has no records of the type.
pub(crate) fn of_no_data<'z>(
    zone: &'z Zone,
    node: &Node,
    lower: &[u8],
    wildcard: Option<Encloser<'_>>,
) -> Vec<&'z Node> {
    let own = node.owner.lower();
    match (zone.nsec3(), wildcard) {
        (None, None) => zone.nsec(own.wire()).into_iter().collect(),
        (None, Some(_)) => zone.nsec(own.wire()).into_iter().chain(zone.nsec(lower)).collect(),
        (Some(nsec3), None) => match nsec3.matching(zone, own.wire()) {
            Some(node) => vec![node],
            // A name of an insecure cut, left out of the chain.
            None => closest_encloser(zone, nsec3, lower, None),
        },
        (Some(nsec3), Some(_)) => {
            let mut nodes = closest_encloser(zone, nsec3, lower, wildcard);
            nodes.extend(nsec3.matching(zone, own.wire()));
            nodes
        }
    }
}

/// The zone below is not signed.
pub(crate) fn of_no_ds<'z>(zone: &'z Zone, cut: &Node) -> Vec<&'z Node> {
    let lower = cut.owner.lower();
    match zone.nsec3() {
        None => zone.nsec(lower.wire()).into_iter().collect(),
        Some(nsec3) => match nsec3.matching(zone, lower.wire()) {
            Some(node) => vec![node],
            None => closest_encloser(zone, nsec3, lower.wire(), None),
        },
    }
}

/// The closest name above that is in the chain, and that the next closer one is not there.
fn closest_encloser<'z>(
    zone: &'z Zone,
    nsec3: &Nsec3,
    lower: &[u8],
    encloser: Option<Encloser<'_>>,
) -> Vec<&'z Node> {
    let Some((closest, next_closer)) = provable(zone, nsec3, lower, encloser) else {
        return Vec::new();
    };
    let matching = nsec3.matching(zone, closest);
    matching.into_iter().chain(nsec3.covering(zone, next_closer)).collect()
}

/// The closest name above that has a hash in the chain, and the name one label longer. The names between a missing one and its
/// `encloser` are missing as well: a client may ask for a hundred of them, and each would cost a hash.
fn provable<'n>(
    zone: &Zone,
    nsec3: &Nsec3,
    lower: &'n [u8],
    encloser: Option<Encloser<'_>>,
) -> Option<(&'n [u8], &'n [u8])> {
    let begin = encloser.map_or(0, |encloser| encloser.next_closer);
    nsec3.provable(zone, lower.get(begin..)?)
}
