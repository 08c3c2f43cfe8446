//! Content codings and their negotiation (RFC 9110 sections 8.4.1 and 12.5.3).

use crate::{Known, Request, syntax};

/// The content codings AFPA stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// No coding.
    Identity,
    /// `gzip` (RFC 9110 section 8.4.1.3).
    Gzip,
    /// `br` (RFC 7932).
    Brotli,
    /// `zstd` (RFC 8878).
    Zstd,
}

impl Coding {
    /// Every coding, identity first, then in ascending order of preference at equal weight.
    pub const ALL: [Coding; 4] = [Coding::Identity, Coding::Gzip, Coding::Zstd, Coding::Brotli];

    /// The name in Content-Encoding and Accept-Encoding.
    pub const fn token(self) -> &'static str {
        match self {
            Coding::Identity => "identity",
            Coding::Gzip => "gzip",
            Coding::Brotli => "br",
            Coding::Zstd => "zstd",
        }
    }

    /// The suffix of the file name of a stored coding.
    pub const fn file_suffix(self) -> &'static str {
        match self {
            Coding::Identity => "",
            Coding::Gzip => ".gz",
            Coding::Brotli => ".br",
            Coding::Zstd => ".zst",
        }
    }

    /// Recognises a coding in any case; `x-gzip` is an old name of gzip (RFC 9110 section 8.4.1.3).
    pub fn recognise(token: &[u8]) -> Option<Coding> {
        if token.eq_ignore_ascii_case(b"x-gzip") {
            return Some(Coding::Gzip);
        }
        Coding::ALL.into_iter().find(|coding| token.eq_ignore_ascii_case(coding.token().as_bytes()))
    }
}

/// A set of codings; identity is always in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodingSet(u8);

impl CodingSet {
    /// Identity alone.
    pub const IDENTITY: CodingSet = CodingSet(1);

    /// The set with one more coding.
    pub const fn with(self, coding: Coding) -> CodingSet {
        CodingSet(self.0 | 1 << coding as u8)
    }

    /// The union of both sets.
    pub const fn union(self, other: CodingSet) -> CodingSet {
        CodingSet(self.0 | other.0)
    }

    /// Whether the coding is in the set.
    #[inline]
    pub const fn contains(self, coding: Coding) -> bool {
        self.0 & (1 << coding as u8) != 0
    }
}

impl Default for CodingSet {
    fn default() -> CodingSet {
        CodingSet::IDENTITY
    }
}

impl FromIterator<Coding> for CodingSet {
    fn from_iter<I: IntoIterator<Item = Coding>>(codings: I) -> CodingSet {
        codings.into_iter().fold(CodingSet::IDENTITY, CodingSet::with)
    }
}

/// Chooses the coding that the client prefers among those available (RFC 9110 section 12.5.3).
///
/// The highest weight wins; at equal weight br, zstd, gzip, identity. Identity that is not named
/// is acceptable but preferred least. If nothing is acceptable, identity is sent all the same: a page
/// is better than 406. Without Accept-Encoding the answer is identity. Members that are malformed
/// are ignored; of a coding named twice the last counts.
#[inline]
pub fn choose(request: &Request<'_, '_>, available: CodingSet) -> Coding {
    if available == CodingSet::IDENTITY || !request.has(Known::AcceptEncoding) {
        return Coding::Identity;
    }
    let mut weights = Weights::default();
    for line in request.values(Known::AcceptEncoding) {
        syntax::list(line).for_each(|member| weights.note(member));
    }
    weights.best(available)
}

/// The weights of one Accept-Encoding field, in thousandths.
#[derive(Default)]
struct Weights {
    named: [Option<u16>; Coding::ALL.len()],
    others: Option<u16>,
}

impl Weights {
    fn note(&mut self, member: &[u8]) {
        let mut parts = member.splitn(2, |&byte| byte == b';').map(syntax::trim);
        let token = parts.next().unwrap_or_default();
        let Some(weight) = parts.next().map_or(Some(1000), weight) else { return };
        if token == b"*" {
            self.others = Some(weight);
        } else if let Some(coding) = Coding::recognise(token) {
            self.named[coding as usize] = Some(weight);
        }
    }

    fn of(&self, coding: Coding) -> u16 {
        self.named[coding as usize].or(self.others).unwrap_or(0)
    }

    fn best(&self, available: CodingSet) -> Coding {
        let mut best = Coding::Identity;
        for coding in Coding::ALL {
            let weight = self.of(coding);
            if available.contains(coding) && weight > 0 && weight >= self.of(best) {
                best = coding;
            }
        }
        best
    }
}

/// `q=` and a qvalue of at most three decimals (RFC 9110 section 12.4.2), in thousandths.
pub(crate) fn weight(parameter: &[u8]) -> Option<u16> {
    let [b'q' | b'Q', b'=', whole @ (b'0' | b'1'), rest @ ..] = parameter else { return None };
    let decimals = match rest {
        [] => b"",
        [b'.', decimals @ ..] if decimals.len() <= 3 => decimals,
        _ => return None,
    };
    let mut thousandths = u16::from(whole - b'0');
    for place in 0..3 {
        let digit = decimals.get(place).copied().unwrap_or(b'0');
        if !digit.is_ascii_digit() {
            return None;
        }
        thousandths = thousandths * 10 + u16::from(digit - b'0');
    }
    (thousandths <= 1000).then_some(thousandths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FieldSlots, RequestLimits, request};
    use proptest::prelude::*;

    fn all() -> CodingSet {
        Coding::ALL.into_iter().collect()
    }

    fn chosen(lines: &[&str], available: CodingSet) -> Coding {
        let mut head = String::from("GET / HTTP/1.1\r\nHost: a\r\n");
        for line in lines {
            head.push_str(&format!("Accept-Encoding: {line}\r\n"));
        }
        head.push_str("\r\n");
        let mut slots = FieldSlots::new();
        let request = request::parse(head.as_bytes(), &mut slots, &RequestLimits::default());
        choose(&request.unwrap().unwrap(), available)
    }

    #[test]
    fn what_clients_say_and_what_they_get() {
        use Coding::{Brotli, Gzip, Identity, Zstd};
        let gzip_only = CodingSet::IDENTITY.with(Gzip);
        for (line, available, expected) in [
            ("gzip, deflate, br, zstd", all(), Brotli),
            ("gzip, deflate, zstd", all(), Zstd),
            ("gzip, deflate, br, zstd", gzip_only, Gzip),
            ("GZIP", all(), Gzip),
            ("x-gzip", all(), Gzip),
            ("deflate", all(), Identity),
            ("", all(), Identity),
            ("*", all(), Brotli),
            ("*;q=0", all(), Identity),
            ("*, br;q=0", all(), Zstd),
            ("br;q=0.5, gzip;q=0.8", all(), Gzip),
            ("br; q=0.5 , gzip ; q=0.500", all(), Brotli),
            ("gzip;q=0", all(), Identity),
            ("gzip;q=0.001", all(), Gzip),
            ("gzip;q=0.5, identity", all(), Identity),
            ("gzip, identity", all(), Gzip),
            ("gzip;q=0.1, *;q=0.5", gzip_only, Identity),
            ("identity;q=0", gzip_only, Identity),
            ("identity;q=0, gzip;q=0.1", gzip_only, Gzip),
            ("gzip;q=2, br;q=1.001, zstd;q=0.1234", all(), Identity),
            ("gzip;q=, br;q=1., zstd;x=1", all(), Brotli),
            ("gzip, gzip;q=0", all(), Identity),
            ("gzip", CodingSet::IDENTITY, Identity),
        ] {
            assert_eq!(chosen(&[line], available), expected, "{line}");
        }
        assert_eq!(chosen(&[], all()), Identity);
        assert_eq!(chosen(&["gzip", "br"], all()), Brotli);
    }

    /// Weighs every candidate on its own and takes the greatest of (weight, preference).
    fn naive(members: &[(usize, u16)], available: CodingSet) -> Coding {
        let names = ["identity", "gzip", "zstd", "br", "*", "deflate"];
        let said = |name: &str| members.iter().rev().find(|(at, _)| names[*at] == name);
        Coding::ALL
            .into_iter()
            .enumerate()
            .filter(|(_, coding)| available.contains(*coding))
            .filter_map(|(rank, coding)| {
                let (_, weight) = said(coding.token()).or_else(|| said("*"))?;
                (*weight > 0).then_some((*weight, rank, coding))
            })
            .max_by_key(|(weight, rank, _)| (*weight, *rank))
            .map_or(Coding::Identity, |(_, _, coding)| coding)
    }

    proptest! {
        #[test]
        fn agrees_with_the_naive_choice(
            members in proptest::collection::vec((0usize..6, 0u16..=1000), 0..6),
            zstd: bool, gzip: bool, brotli: bool,
        ) {
            let names = ["identity", "gzip", "zstd", "br", "*", "deflate"];
            let line: Vec<_> = members.iter()
                .map(|(at, q)| format!("{};q={}.{:03}", names[*at], q / 1000, q % 1000))
                .collect();
            let offered = [(zstd, Coding::Zstd), (gzip, Coding::Gzip), (brotli, Coding::Brotli)];
            let available = offered.into_iter().filter(|(on, _)| *on).map(|(_, c)| c).collect();
            prop_assert_eq!(chosen(&[&line.join(", ")], available), naive(&members, available));
        }
    }
}
