//! The faults of records, and what to do about each.

use thiserror::Error;

use crate::name::Name;

/// A fault of a zone, or something that is only odd about it.
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

    /// How to mend it.
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
