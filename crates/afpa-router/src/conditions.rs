//! Conditions beyond the paper's hierarchy: methods, fields, cookies, the client's certificate.

use afpa_http::Method;

use crate::question::{Fields, Question};
use crate::steps::Steps;

/// Most content groups with conditions on one path: they are tried one by one.
pub const MAX_CONDITIONAL: usize = 64;

/// Conditions of a content group. All of them must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// One of these methods; GET includes HEAD. Empty: any method.
    pub methods: Vec<String>,
    /// Each of these fields.
    pub fields: Vec<FieldCondition>,
}

/// A field, cookie or subject that a request must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldCondition {
    /// The kind of the value.
    pub source: FieldSource,
    /// The name of the field, in any case; that of a cookie exactly.
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
    /// The subject of the client's certificate; the name is only for people.
    Subject,
}

/// A text with at most one star at either end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// `*`: there is one.
    Any,
    /// `text`
    Exact(String),
    /// `text*`
    Prefix(String),
    /// `*text`
    Suffix(String),
    /// `*text*`
    Contains(String),
}

impl Conditions {
    /// Whether there are no conditions.
    pub fn is_empty(&self) -> bool {
        self.methods.is_empty() && self.fields.is_empty()
    }

    /// Whether of two GET or HEAD requests for one host and path, one may meet them and the other not.
    pub(crate) fn doubtful(&self) -> bool {
        let (get, head) = (self.allows(Method::Get), self.allows(Method::Head));
        (get || head) && (get != head || !self.fields.is_empty())
    }

    pub(crate) fn allows(&self, method: Method<'_>) -> bool {
        let asked = method.as_str();
        self.methods.is_empty()
            || self
                .methods
                .iter()
                .any(|known| known == asked || (known == "GET" && asked == "HEAD"))
    }

    /// Whether a request meets them.
    pub(crate) fn hold<F: Fields>(
        &self,
        question: &Question<'_, F>,
        steps: &mut impl Steps,
    ) -> bool {
        if self.is_empty() {
            return true;
        }
        steps.step();
        self.allows(question.method) && self.failing(&question.fields, steps).is_none()
    }

    /// The first of its field conditions that a request does not meet.
    pub(crate) fn failing<F: Fields>(
        &self,
        fields: &F,
        steps: &mut impl Steps,
    ) -> Option<&FieldCondition> {
        self.fields.iter().find(|condition| {
            steps.step();
            !condition.holds(fields)
        })
    }
}

impl FieldCondition {
    fn holds<F: Fields>(&self, fields: &F) -> bool {
        match self.source {
            FieldSource::Field => fields.any(&self.name, &mut |value| self.value.fits(value)),
            FieldSource::Cookie => fields.any("Cookie", &mut |line| {
                cookies(line)
                    .any(|(name, value)| name == self.name.as_bytes() && self.value.fits(value))
            }),
            FieldSource::Subject => {
                fields.subject().is_some_and(|subject| self.value.fits(subject.as_bytes()))
            }
        }
    }
}

impl Pattern {
    /// Reads a pattern.
    pub fn new(text: &str) -> Self {
        match (text.strip_prefix('*'), text.strip_suffix('*')) {
            _ if text == "*" => Pattern::Any,
            (Some(rest), Some(_)) => {
                Pattern::Contains(rest.strip_suffix('*').unwrap_or(rest).to_owned())
            }
            (Some(suffix), None) => Pattern::Suffix(suffix.to_owned()),
            (None, Some(prefix)) => Pattern::Prefix(prefix.to_owned()),
            (None, None) => Pattern::Exact(text.to_owned()),
        }
    }

    /// Whether it matches a value; case matters.
    pub fn fits(&self, value: &[u8]) -> bool {
        match self {
            Pattern::Any => true,
            Pattern::Exact(text) => value == text.as_bytes(),
            Pattern::Prefix(text) => value.starts_with(text.as_bytes()),
            Pattern::Suffix(text) => value.ends_with(text.as_bytes()),
            Pattern::Contains(text) => memchr::memmem::find(value, text.as_bytes()).is_some(),
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
    fn patterns_have_stars_at_their_ends() {
        for (pattern, fits, differs) in [
            ("*", &["", "a"][..], &[][..]),
            ("a*", &["a", "ab"], &["ba", "A"]),
            ("*a", &["a", "ba"], &["ab"]),
            ("*a*", &["a", "bab"], &["b", ""]),
            ("a*b", &["a*b"], &["ab", "axb"]),
            ("", &[""], &["a"]),
            ("**", &["", "x"], &[]),
        ] {
            let pattern = Pattern::new(pattern);
            assert!(fits.iter().all(|value| pattern.fits(value.as_bytes())), "{pattern:?}");
            assert!(!differs.iter().any(|value| pattern.fits(value.as_bytes())), "{pattern:?}");
        }
    }

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
            fields: Vec::new(),
        };
        assert!(!of(&[]).doubtful() && !of(&["GET"]).doubtful() && !of(&["POST"]).doubtful());
        assert!(of(&["HEAD"]).doubtful());
        let value = Pattern::Any;
        let field = FieldCondition { source: FieldSource::Field, name: "A".into(), value };
        assert!(Conditions { methods: Vec::new(), fields: vec![field.clone()] }.doubtful());
        assert!(!Conditions { methods: vec!["PUT".into()], fields: vec![field] }.doubtful());
    }

    #[test]
    fn a_subject_is_that_of_the_certificate_and_of_no_field() {
        let (source, name) = (FieldSource::Subject, "Subject".to_owned());
        let condition = FieldCondition { source, name, value: Pattern::new("CN=a,*") };
        let claimed = [("Subject".to_owned(), "CN=a,O=b".to_owned())];
        let holds = |subject| condition.holds(&(&claimed[..], subject));
        assert!(holds(Some("CN=a,O=b")));
        assert!(!holds(Some("CN=b,O=CN=a,")) && !holds(Some("")) && !holds(None));
        assert!(!condition.holds(&&claimed[..]));
        assert!(Conditions { methods: Vec::new(), fields: vec![condition] }.doubtful());
    }
}
