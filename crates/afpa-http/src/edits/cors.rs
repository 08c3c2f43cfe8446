//! Cross-origin resource sharing.

use super::rule::{Change, FieldRule};
use crate::Method;
use crate::request::Request;

/// Cross-origin resource sharing (the Fetch standard, section 3.3).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cors {
    /// The origins that may read answers, `*` for all, or with `*.` before the host for those below it.
    pub origins: Vec<String>,
    /// Whether they may send cookies.
    pub credentials: bool,
    /// The value of Access-Control-Allow-Methods.
    pub methods: String,
    /// That of Access-Control-Allow-Headers; `None`: the fields that a preflight asks for.
    pub headers: Option<String>,
    /// That of Access-Control-Expose-Headers.
    pub expose: Option<String>,
    /// That of Access-Control-Max-Age.
    pub max_age: String,
}

impl Cors {
    /// The fields of which there are no others beside it.
    const OWN: [&str; 3] = [
        "Access-Control-Allow-Origin",
        "Access-Control-Allow-Credentials",
        "Access-Control-Expose-Headers",
    ];

    /// Whether it decides about a field of answers.
    pub fn writes(name: &str) -> bool {
        Self::OWN.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// Whether every origin may read answers, so that they are the same for all.
    pub fn is_for_all(&self) -> bool {
        self.origins.iter().any(|origin| origin == "*")
    }

    /// The changes that are the same for all origins. A server's own fields would contradict them, and caches have to
    /// know that answers differ.
    pub fn rule(&self) -> FieldRule {
        let own = Self::OWN.map(str::to_owned).to_vec();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let all = self.is_for_all().then(|| pair("Access-Control-Allow-Origin", "*"));
        let expose = self.expose.iter().map(|names| pair("Access-Control-Expose-Headers", names));
        let vary = (!self.is_for_all()).then(|| pair("Vary", "Origin"));
        let add = all.into_iter().chain(expose).chain(vary).collect();
        let answer = Change { remove: own, add, ..Change::default() };
        FieldRule { answer, ..FieldRule::default() }
    }

    /// Whether an origin may read answers.
    pub fn lets_in(&self, origin: &[u8]) -> bool {
        self.origins.iter().any(|known| match known.split_once("*.") {
            Some((scheme, host)) => is_below(origin, scheme.as_bytes(), host.as_bytes()),
            None => known == "*" || origin.eq_ignore_ascii_case(known.as_bytes()),
        })
    }

    /// The fields of the answer to a preflight, without Access-Control-Allow-Origin; none for an origin that is not let
    /// in. `None`: the request is no preflight.
    pub fn preflight<'a>(
        &'a self,
        request: &Request<'_, 'a>,
    ) -> Option<impl Iterator<Item = (&'static str, &'a [u8])>> {
        let origin = origin_of(request).filter(|_| request.method == Method::Options)?;
        value_of(request, "access-control-request-method")?;
        let asked = value_of(request, "access-control-request-headers");
        let headers = self.headers.as_deref().map(str::as_bytes).or(asked);
        let fields = [
            ("Access-Control-Allow-Methods", Some(self.methods.as_bytes())),
            ("Access-Control-Allow-Headers", headers),
            ("Access-Control-Max-Age", Some(self.max_age.as_bytes())),
        ];
        let lets_in = self.lets_in(origin);
        let fields = fields.into_iter().filter(move |_| lets_in);
        Some(
            fields
                .filter_map(|(name, value)| Some((name, value.filter(|value| !value.is_empty())?))),
        )
    }
}

/// The origin of a request (RFC 6454 section 7).
pub(super) fn origin_of<'b>(request: &Request<'_, 'b>) -> Option<&'b [u8]> {
    value_of(request, "origin")
}

fn value_of<'b>(request: &Request<'_, 'b>, wanted: &str) -> Option<&'b [u8]> {
    request.fields().find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value)
}

/// Whether an origin has this scheme, and a host with at least one label before `host`.
fn is_below(origin: &[u8], scheme: &[u8], host: &[u8]) -> bool {
    let Some((start, rest)) = origin.split_at_checked(scheme.len()) else { return false };
    let Some((labels, end)) =
        rest.len().checked_sub(host.len()).and_then(|at| rest.split_at_checked(at))
    else {
        return false;
    };
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let labels = labels.strip_suffix(b".").unwrap_or_default();
    start.eq_ignore_ascii_case(scheme)
        && end.eq_ignore_ascii_case(host)
        && !labels.is_empty()
        && labels.iter().all(is_name)
}
