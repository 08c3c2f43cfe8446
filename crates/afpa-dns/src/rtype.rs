//! Types of records, by IANA's numbers, and what the server knows of each.

/// An IPv4 address.
pub const A: u16 = 1;
/// A name server of a zone.
pub const NS: u16 = 2;
/// Another name for this one.
pub const CNAME: u16 = 5;
/// The start of a zone's authority.
pub const SOA: u16 = 6;
/// The name of an address.
pub const PTR: u16 = 12;
/// A mail server.
pub const MX: u16 = 15;
/// Text.
pub const TXT: u16 = 16;
/// An IPv6 address.
pub const AAAA: u16 = 28;
/// A server of a service.
pub const SRV: u16 = 33;
/// Another name for all that is below this one (RFC 6672).
pub const DNAME: u16 = 39;
/// EDNS (RFC 6891).
pub const OPT: u16 = 41;
/// The digest of a key of the zone below.
pub const DS: u16 = 43;
/// A signature.
pub const RRSIG: u16 = 46;
/// The next name.
pub const NSEC: u16 = 47;
/// A key.
pub const DNSKEY: u16 = 48;
/// The next hash (RFC 5155).
pub const NSEC3: u16 = 50;
/// How names are hashed.
pub const NSEC3PARAM: u16 = 51;
/// How a service is reached (RFC 9460).
pub const SVCB: u16 = 64;
/// How an origin is reached by HTTP (RFC 9460).
pub const HTTPS: u16 = 65;
/// The signature of a message (RFC 8945).
pub const TSIG: u16 = 250;
/// A difference between two versions of a zone (RFC 1995).
pub const IXFR: u16 = 251;
/// A whole zone (RFC 5936).
pub const AXFR: u16 = 252;
/// Every type.
pub const ANY: u16 = 255;

/// The types that have a place of their own in statistics.
const NAMED: [(u16, &str); 19] = [
    (A, "A"),
    (NS, "NS"),
    (CNAME, "CNAME"),
    (SOA, "SOA"),
    (PTR, "PTR"),
    (MX, "MX"),
    (TXT, "TXT"),
    (AAAA, "AAAA"),
    (SRV, "SRV"),
    (DNAME, "DNAME"),
    (DS, "DS"),
    (DNSKEY, "DNSKEY"),
    (SVCB, "SVCB"),
    (HTTPS, "HTTPS"),
    (257, "CAA"),
    (52, "TLSA"),
    (IXFR, "IXFR"),
    (AXFR, "AXFR"),
    (ANY, "ANY"),
];

/// How many places types have in statistics: one for each that is named, and one for all others.
pub const PLACES: usize = NAMED.len() + 1;

/// The place of a type in statistics.
pub fn place(rtype: u16) -> usize {
    NAMED.iter().position(|(number, _)| *number == rtype).unwrap_or(NAMED.len())
}

/// The name of such a place.
pub fn name_of_place(place: usize) -> &'static str {
    NAMED.get(place).map_or("other", |(_, name)| name)
}

/// Whether it is of DNSSEC's own, which may stand beside a CNAME.
pub(crate) fn is_of_dnssec(rtype: u16) -> bool {
    matches!(rtype, RRSIG | NSEC | NSEC3)
}

/// Where names that may be compressed stand in the data (RFC 3597 section 4): bytes before them, and how many there are.
pub(crate) fn compressible(rtype: u16) -> Option<(usize, usize)> {
    match rtype {
        NS | 3 | 4 | CNAME | 7 | 8 | 9 | PTR => Some((0, 1)),
        SOA | 14 => Some((0, 2)),
        MX => Some((2, 1)),
        _ => None,
    }
}

/// The name in the data whose addresses belong to the additional section: its place.
pub(crate) fn target(rtype: u16) -> Option<usize> {
    match rtype {
        NS => Some(0),
        MX | SVCB | HTTPS => Some(2),
        SRV => Some(6),
        _ => None,
    }
}
