//! From a question to its answer (RFC 1034 section 4.3.2, and those that changed it).

mod sections;

use std::net::IpAddr;

use crate::cookie::{Secrets, WHOLE};
use crate::message::{Full, Section, Writer};
use crate::name::{LONGEST_NAME, Name};
use crate::proof;
use crate::query::{Parsed, Query, RD, Rcode};
use crate::rtype;
use crate::tsig::{Checked, Keys, Signer};
use crate::zone::{Encloser, Found, Node, RrSet, Zone};
use crate::zones::Zones;

const IN: u16 = 1;
const ANY_CLASS: u16 = 255;
const SMALLEST: u16 = 512;
/// Aliases that follow each other in one answer.
const MOST_ALIASES: usize = 16;
const AA: u8 = 0x04;
const TC: u8 = 0x02;
const QR: u8 = 0x80;
const DO: u32 = 0x8000;
const COOKIE: u16 = 10;

/// How a question came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// In a datagram, so that its sender may be forged and its answer has to be short.
    Udp,
    /// On a connection.
    Tcp,
}

/// The client of a question.
#[derive(Clone, Copy, Debug)]
pub struct Asker {
    /// Its address.
    pub address: IpAddr,
    /// How its question came.
    pub transport: Transport,
    /// Seconds since 1970, for cookies.
    pub now: u32,
}

/// The settings of answers.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The longest answer by UDP, and what is offered as EDNS's size.
    pub udp_size: u16,
    /// The secrets of cookies.
    pub secrets: Secrets,
    /// The keys of signed questions.
    pub keys: Keys,
}

impl Default for Settings {
    fn default() -> Self {
        Self { udp_size: 1232, secrets: Secrets::default(), keys: Keys::default() }
    }
}

/// An answer that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Its code.
    pub rcode: Rcode,
    /// The type that was asked for; 0 without a question.
    pub rtype: u16,
    /// It does not fit: the client is to ask by TCP.
    pub is_truncated: bool,
    /// The client's cookie proves that its address is its own.
    pub is_proven: bool,
}

/// Writes the answer to a question behind `out`.
pub fn answer(
    zones: &Zones,
    settings: &Settings,
    asker: Asker,
    query: &Query<'_>,
    out: &mut Vec<u8>,
) -> Answered {
    let mut answer = Answer::begin(settings, asker, query, out);
    let rcode = answer.derive(zones);
    answer.finish(rcode)
}

/// Writes an answer that has an error alone.
pub fn refuse(
    settings: &Settings,
    asker: Asker,
    query: &Query<'_>,
    rcode: Rcode,
    out: &mut Vec<u8>,
) -> Answered {
    Answer::begin(settings, asker, query, out).finish(rcode)
}

/// Writes an answer without records that has the client ask by TCP.
pub fn ask_by_tcp(
    settings: &Settings,
    asker: Asker,
    query: &Query<'_>,
    out: &mut Vec<u8>,
) -> Answered {
    let mut answer = Answer::begin(settings, asker, query, out);
    answer.flags |= TC;
    answer.finish(Rcode::NoError)
}

/// Reads a message and answers it; `None`: no answer is due.
pub fn respond(
    zones: &Zones,
    settings: &Settings,
    asker: Asker,
    message: &[u8],
    out: &mut Vec<u8>,
) -> Option<Answered> {
    let query = match Query::parse(message) {
        Parsed::Query(query) => query,
        Parsed::Wrong(query, rcode) => return Some(refuse(settings, asker, &query, rcode, out)),
        Parsed::Silence => return None,
    };
    let start = out.len();
    let (signer, wrong) = match check(settings, message, &query, asker.now.into()) {
        Ok(signer) => (signer, None),
        Err((rcode, signer)) => (signer, Some(rcode)),
    };
    let answered = match wrong {
        None => answer(zones, settings, asker, &query, out),
        Some(rcode) => refuse(settings, asker, &query, rcode, out),
    };
    if let Some(mut signer) = signer {
        signer.sign(out, start, asker.now.into());
    }
    Some(answered)
}

/// Checks the signature of a question, if it has one.
///
/// # Errors
/// With the code of the answer, if it is not right; that answer is to be signed as well, if there is a signer.
pub fn check(
    settings: &Settings,
    message: &[u8],
    query: &Query<'_>,
    now: u64,
) -> Result<Option<Signer>, (Rcode, Option<Signer>)> {
    let Some(signature) = query.signature else { return Ok(None) };
    match settings.keys.check(message, signature, now) {
        Checked::Good(signer) => Ok(Some(signer)),
        Checked::Bad(signer) => Err((Rcode::NotAuth, Some(signer))),
        Checked::Malformed => Err((Rcode::FormErr, None)),
    }
}

struct Answer<'a, 'b> {
    settings: &'a Settings,
    asker: Asker,
    query: &'a Query<'a>,
    out: Writer<'b>,
    empty: crate::message::Mark,
    /// Bytes that EDNS will take.
    opt: usize,
    flags: u8,
    /// Targets whose addresses belong to the additional section.
    targets: Vec<Name>,
}

impl<'a, 'b> Answer<'a, 'b> {
    fn begin(
        settings: &'a Settings,
        asker: Asker,
        query: &'a Query<'a>,
        out: &'b mut Vec<u8>,
    ) -> Self {
        let limit = match asker.transport {
            Transport::Tcp => usize::from(u16::MAX),
            Transport::Udp => {
                let asked = query.edns.map_or(SMALLEST, |edns| edns.size.max(SMALLEST));
                usize::from(asked.min(settings.udp_size.max(SMALLEST)))
            }
        };
        let mut out = Writer::new(out, limit);
        if !query.name.is_empty() {
            out.question(query.name, query.rtype, query.class);
        }
        let cookie = |edns: crate::query::Edns<'_>| {
            let cookie = edns.cookie.filter(|_| settings.secrets.is_there());
            11 + cookie.map_or(0, |_| 4 + WHOLE)
        };
        let opt = query.edns.map_or(0, cookie);
        out.reserve(opt + query.signature.map_or(0, |signature| signature.room));
        let empty = out.mark();
        Self { settings, asker, query, out, empty, opt, flags: 0, targets: Vec::new() }
    }

    fn derive(&mut self, zones: &Zones) -> Rcode {
        let Query { name, rtype, class, .. } = *self.query;
        if name.is_empty() {
            return Rcode::NoError;
        }
        match rtype {
            rtype::OPT | 0 => return Rcode::FormErr,
            rtype::AXFR if self.asker.transport == Transport::Udp => return Rcode::NotImp,
            // Transfers by TCP are decided elsewhere; here nobody gets one. IXFR by UDP is answered with the SOA, as RFC 1995 has it.
            rtype::AXFR => return Rcode::Refused,
            rtype::IXFR if self.asker.transport == Transport::Tcp => return Rcode::Refused,
            128..=250 | 253 | 254 => return Rcode::NotImp,
            _ => {}
        }
        if class != IN && class != ANY_CLASS {
            return Rcode::Refused;
        }
        let mut lower = [0; LONGEST_NAME];
        let Some(lower) = lower.get_mut(..name.len()) else { return Rcode::FormErr };
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        let Some(zone) = zones.of(lower, rtype) else { return Rcode::Refused };
        match self.within(zone, lower) {
            Ok(rcode) => rcode,
            Err(Full) => {
                self.out.go_back(self.empty);
                self.flags |= TC;
                Rcode::NoError
            }
        }
    }

    fn within(&mut self, zone: &Zone, lower: &[u8]) -> Result<Rcode, Full> {
        let query = *self.query;
        let rtype = if query.rtype == rtype::IXFR { rtype::SOA } else { query.rtype };
        // The name that is looked for, as it is written and in lower case; it changes with each alias.
        let mut alias: Option<(Name, Name)> = None;
        // Proofs belong to the authority, so they wait until the answer is whole.
        let mut proofs: Vec<&Node> = Vec::new();
        // The nodes of aliases that are in the answer: none is there twice, and one that comes again is a loop.
        let (mut passed, mut written_dnames): (Vec<&Node>, Vec<&Node>) = (Vec::new(), Vec::new());
        // The names that a wildcard has answered, for the same reason.
        let mut expanded: Vec<Name> = Vec::new();
        for _ in 0..MOST_ALIASES {
            let (written, sought) = match &alias {
                None => (query.name, lower),
                Some((written, lower)) => (written.wire(), lower.wire()),
            };
            let is_first = alias.is_none();
            let Some(found) = zone.find(sought) else { return Ok(Rcode::ServFail) };
            let next = match found {
                Found::Cut(node)
                    if !(rtype == rtype::DS && node.owner.wire().eq_ignore_ascii_case(sought)) =>
                {
                    if !is_first {
                        self.flags |= AA;
                    }
                    self.refer(zone, node, &proofs)?;
                    return Ok(Rcode::NoError);
                }
                Found::Exact(node) | Found::Cut(node) => {
                    self.flags |= AA;
                    if passed.iter().any(|other| std::ptr::eq(*other, node)) {
                        break;
                    }
                    passed.push(node);
                    match self.at_node(zone, (node, None), (written, sought), rtype, &mut proofs)? {
                        Some(next) => next,
                        None => return Ok(Rcode::NoError),
                    }
                }
                Found::Wildcard(node, encloser) => {
                    self.flags |= AA;
                    if node.set(rtype::CNAME).is_some() {
                        if expanded.iter().any(|other| other.wire() == sought) {
                            break;
                        }
                        expanded.extend(Name::from_wire(sought));
                    }
                    match self.at_node(
                        zone,
                        (node, Some(encloser)),
                        (written, sought),
                        rtype,
                        &mut proofs,
                    )? {
                        Some(next) => next,
                        None => return Ok(Rcode::NoError),
                    }
                }
                Found::Dname(node) => {
                    self.flags |= AA;
                    let Some(set) = node.set(rtype::DNAME) else { return Ok(Rcode::ServFail) };
                    if !written_dnames.iter().any(|other| std::ptr::eq(*other, node)) {
                        written_dnames.push(node);
                        self.set(Section::Answer, node.owner.wire(), set)?;
                    }
                    let Some(target) = below_dname(written, node, set) else {
                        return Ok(Rcode::YxDomain);
                    };
                    let head = (rtype::CNAME, IN, set.ttl);
                    self.out.record(Section::Answer, written, head, target.wire())?;
                    if rtype == rtype::CNAME {
                        self.prove(zone, &proofs)?;
                        return Ok(Rcode::NoError);
                    }
                    target
                }
                Found::Nothing(encloser) => {
                    self.flags |= AA;
                    proofs.extend(proof::of_nothing(zone, sought, encloser));
                    self.negative(zone)?;
                    self.prove(zone, &proofs)?;
                    return Ok(Rcode::NxDomain);
                }
            };
            let lower = next.lower();
            if !lower.is_within(zone.apex().wire()) {
                break;
            }
            alias = Some((next, lower));
        }
        self.prove(zone, &proofs)?;
        Ok(Rcode::NoError)
    }

    /// The answer of a name that is there, or whose wildcard is. `Some`: the name that it is an alias of.
    fn at_node<'z>(
        &mut self,
        zone: &'z Zone,
        (node, wildcard): (&'z Node, Option<Encloser<'z>>),
        (written, sought): (&[u8], &[u8]),
        rtype: u16,
        proofs: &mut Vec<&'z Node>,
    ) -> Result<Option<Name>, Full> {
        let set = match rtype {
            // RFC 8482 section 4.1: one set is enough.
            rtype::ANY => {
                node.sets.iter().find(|set| !set.data.is_empty() && !rtype::is_of_dnssec(set.rtype))
            }
            rtype::RRSIG => return self.signatures(zone, node, written).map(|()| None),
            rtype => node.set(rtype),
        };
        let alias = node.set(rtype::CNAME);
        let Some(found) = set.or(alias) else {
            proofs.extend(proof::of_no_data(zone, node, sought, wildcard));
            self.negative(zone)?;
            self.prove(zone, proofs)?;
            return Ok(None);
        };
        self.set(Section::Answer, written, found)?;
        if let Some(encloser) = wildcard {
            proofs.extend(proof::of_wildcard(zone, sought, encloser));
        }
        if set.is_none() {
            return Ok(found.data.first().and_then(|data| Name::from_wire(data)));
        }
        self.prove(zone, proofs)?;
        self.note_targets(found);
        self.additional(zone)?;
        Ok(None)
    }

    fn finish(mut self, rcode: Rcode) -> Answered {
        let query = *self.query;
        let is_proven = self.write_opt(rcode);
        let [first, second, opcode_and_rd, ..] = query.header;
        let flags = QR | opcode_and_rd & (0x78 | RD) | self.flags;
        let is_truncated = self.flags & TC != 0;
        self.out.finish([first, second], [flags, rcode as u8 & 15]);
        Answered { rcode, rtype: query.rtype, is_truncated, is_proven }
    }

    /// Writes EDNS, and says whether the client's cookie is one of ours.
    fn write_opt(&mut self, rcode: Rcode) -> bool {
        let Some(edns) = self.query.edns else { return false };
        let Asker { address, now, .. } = self.asker;
        let secrets = &self.settings.secrets;
        let cookie = edns.cookie.and_then(|cookie| secrets.renew(cookie, address, now));
        let mut data = Vec::new();
        if let Some(cookie) = cookie {
            data.reserve(4 + WHOLE);
            data.extend_from_slice(&COOKIE.to_be_bytes());
            data.extend_from_slice(&(WHOLE as u16).to_be_bytes());
            data.extend_from_slice(&cookie);
        }
        let flags = if edns.wants_signatures { DO } else { 0 };
        let ttl = (rcode as u32 >> 4) << 24 | flags;
        self.out.release(self.opt);
        let head = (rtype::OPT, self.settings.udp_size, ttl);
        // There is room: it was kept from the beginning.
        let _ = self.out.record(Section::Additional, &[0], head, &data);
        edns.cookie.is_some_and(|cookie| secrets.prove(cookie, address, now))
    }
}

/// The name that DNAME makes of one below it (RFC 6672); `None`: it is too long.
fn below_dname(name: &[u8], node: &Node, set: &RrSet) -> Option<Name> {
    let kept = name.len().checked_sub(node.owner.wire().len())?;
    let wire = [name.get(..kept)?, set.data.first()?].concat();
    Name::from_wire(&wire)
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
