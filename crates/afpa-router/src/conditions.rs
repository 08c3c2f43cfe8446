//! Conditions beyond the paper's hierarchy: methods, client addresses, parts of the path, the query, fields, cookies, the
//! client's certificate.

use std::net::IpAddr;

use afpa_http::Method;

use crate::ids::SiteId;
use crate::pattern::Pattern;
use crate::query;
use crate::question::{Fields, Question};
use crate::steps::Steps;

/// Most content groups with conditions on one path: they are tried one by one.
pub const MAX_CONDITIONAL: usize = 64;

/// Conditions of a content group. All of them must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// One of these methods; GET includes HEAD. Empty: any method.
    pub methods: Vec<String>,
    /// A client of one of these networks. Empty: any client.
    pub clients: Vec<ClientNetwork>,
    /// A path that fits one of these. Empty: any path.
    pub paths: Vec<Pattern>,
    /// Each of these fields.
    pub fields: Vec<FieldCondition>,
}

/// The addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientNetwork {
    /// An address of the network.
    pub address: IpAddr,
    /// The number of bits.
    pub bits: u8,
}

/// A field, cookie, parameter or subject that a request must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldCondition {
    /// The kind of the value.
    pub source: FieldSource,
    /// The name of the field, in any case; that of a cookie or parameter exactly.
    pub name: String,
    /// The pattern that its value must match.
    pub value: Pattern,
}

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldSource {
    /// The value of a whole field line.
    Field,
    /// A cookie in the Cookie field (RFC 6265 section 5.4).
    Cookie,
    /// A parameter of the query.
    Query,
    /// The subject of the client's certificate; the name is only for people.
    Subject,
}

/// The first condition that a request does not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmet<'c> {
    /// It has another method.
    Method,
    /// Its client is in none of the networks.
    Client,
    /// Its path fits none of the patterns.
    Path,
    /// The field, cookie, parameter or subject is not there, or differs.
    Field(&'c FieldCondition),
}

impl Conditions {
    /// Whether there are no conditions.
    pub fn is_empty(&self) -> bool {
        let Self { methods, clients, paths, fields } = self;
        methods.is_empty() && clients.is_empty() && paths.is_empty() && fields.is_empty()
    }

    /// Whether a GET or HEAD request may depend on them: of two for one host and path one may meet them and the other not,
    /// or the path is looked at beyond its prefix.
    pub(crate) fn doubtful(&self) -> bool {
        let (get, head) = (self.allows(Method::Get), self.allows(Method::Head));
        let Self { clients, paths, fields, .. } = self;
        let others = !(clients.is_empty() && paths.is_empty() && fields.is_empty());
        (get || head) && (get != head || others)
    }

    pub(crate) fn allows(&self, method: Method<'_>) -> bool {
        let asked = method.as_str();
        self.methods.is_empty()
            || self
                .methods
                .iter()
                .any(|known| known == asked || (known == "GET" && asked == "HEAD"))
    }

    /// Whether a request to a site meets them.
    pub(crate) fn hold<F: Fields>(
        &self,
        site: SiteId,
        question: &Question<'_, F>,
        steps: &mut impl Steps,
    ) -> bool {
        self.is_empty() || self.unmet(site, question, steps).is_none()
    }

    /// The first of them that a request to a site does not meet.
    pub(crate) fn unmet<F: Fields>(
        &self,
        site: SiteId,
        question: &Question<'_, F>,
        steps: &mut impl Steps,
    ) -> Option<Unmet<'_>> {
        steps.step();
        if !self.allows(question.method) {
            return Some(Unmet::Method);
        }
        if !self.clients.is_empty() {
            steps.step();
            let client = question.fields.client(site);
            let is_in = |client| self.clients.iter().any(|network| network.contains(client));
            if !client.is_some_and(is_in) {
                return Some(Unmet::Client);
            }
        }
        let fits = |pattern: &Pattern| {
            steps.step();
            pattern.fits(question.path)
        };
        if !self.paths.is_empty() && !self.paths.iter().any(fits) {
            return Some(Unmet::Path);
        }
        let mut fields = self.fields.iter();
        let failing = fields.find(|condition| {
            steps.step();
            !condition.holds(question)
        });
        failing.map(Unmet::Field)
    }
}

impl ClientNetwork {
    /// Whether an address begins with the same bits. An IPv4 address in an IPv6 one is the IPv4 address.
    pub fn contains(&self, client: IpAddr) -> bool {
        let bits = u32::from(self.bits);
        match (self.address.to_canonical(), client.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(client)) => {
                let differ = u32::from(own) ^ u32::from(client);
                differ.checked_shr(32u32.saturating_sub(bits)).unwrap_or(0) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(client)) => {
                let differ = u128::from(own) ^ u128::from(client);
                differ.checked_shr(128u32.saturating_sub(bits)).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

impl FieldCondition {
    fn holds<F: Fields>(&self, question: &Question<'_, F>) -> bool {
        let fields = &question.fields;
        match self.source {
            FieldSource::Field => fields.any(&self.name, &mut |value| self.value.fits(value)),
            FieldSource::Cookie => fields.any("Cookie", &mut |line| {
                cookies(line)
                    .any(|(name, value)| name == self.name.as_bytes() && self.value.fits(value))
            }),
            FieldSource::Query => {
                let query = question.query.unwrap_or_default();
                query::any(query, self.name.as_bytes(), |value| self.value.fits(value))
            }
            FieldSource::Subject => {
                fields.subject().is_some_and(|subject| self.value.fits(subject.as_bytes()))
            }
        }
    }
}

/// Names and values of a Cookie field; quotes belong to the value (RFC 6265 section 5.2).
fn cookies(line: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    line.split(|&byte| byte == b';').filter_map(|pair| {
        let equals = memchr::memchr(b'=', pair)?;
        let (name, value) = pair.split_at(equals);
        Some((name.trim_ascii(), value.get(1..).unwrap_or_default().trim_ascii()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_found_by_their_exact_name() {
        let line = b"a=1; beta=yes;c = x=y ; d; =e";
        let found: Vec<_> = cookies(line).collect();
        let expected: &[(&[u8], &[u8])] =
            &[(b"a", b"1"), (b"beta", b"yes"), (b"c", b"x=y"), (b"", b"e")];
        assert_eq!(found, expected);
    }

    #[test]
    fn get_and_head_differ_only_where_something_tells_them_apart() {
        let of = |methods: &[&str]| Conditions {
            methods: methods.iter().map(|method| (*method).to_owned()).collect(),
            ..Conditions::default()
        };
        assert!(!of(&[]).doubtful() && !of(&["GET"]).doubtful() && !of(&["POST"]).doubtful());
        assert!(of(&["HEAD"]).doubtful());
        let value = Pattern::Any;
        let field = FieldCondition { source: FieldSource::Field, name: "A".into(), value };
        let with = |methods: &[&str]| Conditions { fields: vec![field.clone()], ..of(methods) };
        assert!(with(&[]).doubtful() && !with(&["PUT"]).doubtful());
        let paths = vec![Pattern::new("*.a")];
        assert!(Conditions { paths, ..of(&["GET"]) }.doubtful());
        let clients = vec![ClientNetwork { address: "::1".parse().unwrap(), bits: 128 }];
        assert!(Conditions { clients, ..of(&[]) }.doubtful());
    }

    #[test]
    fn a_subject_is_that_of_the_certificate_and_of_no_field() {
        let (source, name) = (FieldSource::Subject, "Subject".to_owned());
        let condition = FieldCondition { source, name, value: Pattern::new("CN=a,*") };
        let claimed = [("Subject".to_owned(), "CN=a,O=b".to_owned())];
        let question = crate::tests::build::ask("", "/");
        let of = |subject| (&claimed[..], subject);
        let holds = |subject| condition.holds(&question.with(of(subject)));
        assert!(holds(Some("CN=a,O=b")));
        assert!(!holds(Some("CN=b,O=CN=a,")) && !holds(Some("")) && !holds(None));
        assert!(!condition.holds(&question.with(&claimed[..])));
        assert!(Conditions { fields: vec![condition], ..Conditions::default() }.doubtful());
    }
    #[test]
    fn a_network_has_the_addresses_with_its_bits() {
        let has = |address: &str, bits, client: &str| {
            let address = address.parse().unwrap();
            ClientNetwork { address, bits }.contains(client.parse().unwrap())
        };
        assert!(has("10.0.0.0", 8, "10.255.0.1") && !has("10.0.0.0", 8, "11.0.0.0"));
        assert!(has("10.0.0.0", 8, "::ffff:10.1.1.1") && has("0.0.0.0", 0, "255.1.1.1"));
        assert!(has("10.0.0.1", 32, "10.0.0.1") && !has("10.0.0.1", 32, "10.0.0.0"));
        assert!(has("2001:db8::", 32, "2001:db8:ffff::1") && !has("2001:db8::", 32, "2001:db9::"));
        assert!(has("::", 0, "::1") && !has("::", 0, "127.0.0.1") && !has("0.0.0.0", 0, "::1"));
        assert!(has("::1", 128, "::1") && !has("::1", 128, "::2"));
    }
}
