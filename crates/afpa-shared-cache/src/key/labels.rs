//! The labels of a purge.

use std::sync::Arc;

use afpa_cache::Labels;

use crate::key::query::kept_query;
use crate::key::{END, group_label, tag_label, url_label};
use crate::policy::CachePolicy;

/// The target of a purge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purge {
    /// A host, a path, and a query. Without a host: any; without a query: with any.
    Url {
        /// As in a URL, without its port.
        host: Option<Vec<u8>>,
        /// As [`afpa_http::target::spell`] gives it.
        path: Vec<u8>,
        /// Without its question mark.
        query: Option<Vec<u8>>,
    },
    /// All below a path. Without a host: of any.
    Prefix {
        /// As in a URL, without its port.
        host: Option<Vec<u8>>,
        /// As [`afpa_http::target::spell`] gives it.
        path: Vec<u8>,
    },
    /// All responses of a host.
    Host(Vec<u8>),
    /// All responses with a tag.
    Tag(Vec<u8>),
    /// All responses of a host with a cache group (RFC 9875).
    Group {
        /// As in a URL, without its port.
        host: Vec<u8>,
        /// The group.
        name: Vec<u8>,
    },
    /// Everything.
    All,
}

/// The labels under which responses for exactly this URL may be stored: those of the query as it is, and of the
/// parameters that each policy keeps of it.
pub(crate) fn of_url(
    host: &[u8],
    path: &[u8],
    query: Option<&[u8]>,
    policies: &[Arc<CachePolicy>],
) -> Vec<Vec<u8>> {
    let mut labels = vec![url_label(host, path, query)];
    for policy in policies {
        let label = url_label(host, path, kept_query(policy, query).as_deref());
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    labels
}

/// The labels of the responses that a purge is about.
pub(crate) fn labels_of(what: &Purge, policies: &[Arc<CachePolicy>]) -> Vec<Labels> {
    let begin = |host: &[u8], path: &[u8]| {
        let mut label = url_label(host, path, None);
        label.pop();
        label
    };
    match what {
        Purge::Url { host: Some(host), path, query: Some(query) } => {
            let labels = of_url(host, path, Some(query), policies).into_iter();
            labels.map(|label| Labels::Is(label.into())).collect()
        }
        Purge::Url { host: Some(host), path, query: None } => {
            let with_query = [&begin(host, path)[..], b"?"].concat();
            vec![
                Labels::Is(url_label(host, path, None).into()),
                Labels::BeginWith(with_query.into()),
            ]
        }
        Purge::Prefix { host: Some(host), path } => {
            vec![Labels::BeginWith(begin(host, path).into())]
        }
        Purge::Host(host) => vec![Labels::BeginWith(begin(host, b"/").into())],
        Purge::Tag(tag) => vec![Labels::Is(tag_label(tag).into())],
        Purge::Group { host, name } => vec![Labels::Is(group_label(host, name).into())],
        Purge::All => vec![Labels::BeginWith((*b"u").into())],
        Purge::Prefix { host: None, path } => {
            let begin = begin(b"", path).split_off(1);
            vec![Labels::Fit(Arc::new(move |label| {
                below_host(label).is_some_and(|path| path.starts_with(&begin))
            }))]
        }
        Purge::Url { host: None, path, query: Some(query) } => {
            let labels = of_url(b"", path, Some(query), policies).into_iter();
            let exact: Vec<Vec<u8>> = labels.map(|mut label| label.split_off(1)).collect();
            vec![Labels::Fit(Arc::new(move |label| {
                below_host(label).is_some_and(|path| exact.iter().any(|exact| exact == path))
            }))]
        }
        Purge::Url { host: None, path, query: None } => {
            let bare = begin(b"", path).split_off(1);
            vec![Labels::Fit(Arc::new(move |label| {
                let rest = below_host(label).and_then(|path| path.strip_prefix(&bare[..]));
                rest.is_some_and(|rest| rest == [END] || rest.starts_with(b"?"))
            }))]
        }
    }
}

/// The URL of a label, with any query where it has none.
pub(crate) fn url_of(label: &[u8]) -> Option<Purge> {
    let url = label.strip_prefix(b"u")?.strip_suffix(&[END])?;
    let (host, target) = url.split_at_checked(url.iter().position(|&byte| byte == b'/')?)?;
    let mut parts = target.splitn(2, |&byte| byte == b'?');
    let path = parts.next()?.to_vec();
    let query = parts.next().map(<[u8]>::to_vec);
    Some(Purge::Url { host: Some(host.to_vec()), path, query })
}

/// Path and query of the label of a URL.
fn below_host(label: &[u8]) -> Option<&[u8]> {
    let rest = label.strip_prefix(b"u")?;
    rest.get(rest.iter().position(|&byte| byte == b'/')?..)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(what: &Purge, host: &[u8], path: &[u8], query: Option<&[u8]>) -> bool {
        let label = url_label(host, path, query);
        labels_of(what, &[]).iter().any(|labels| labels.fits(&label))
    }

    #[test]
    fn a_purge_means_what_it_names() {
        let some = |text: &[u8]| Some(text.to_vec());
        let url = |host, path: &[u8], query| Purge::Url { host, path: path.to_vec(), query };
        let one = url(some(b"A"), b"/x", None);
        assert!(meant(&one, b"a", b"/x", None) && meant(&one, b"a", b"/x", Some(b"q")));
        assert!(!meant(&one, b"a", b"/xy", None) && !meant(&one, b"b", b"/x", None));
        let query = url(some(b"a"), b"/x", some(b"q"));
        assert!(meant(&query, b"a", b"/x", Some(b"q")) && !meant(&query, b"a", b"/x", None));
        let any = url(None, b"/x", None);
        assert!(meant(&any, b"a", b"/x", None) && meant(&any, b"b", b"/x", Some(b"q")));
        assert!(!meant(&any, b"a", b"/xy", None));
        let below = Purge::Prefix { host: some(b"a"), path: b"/x/".to_vec() };
        assert!(meant(&below, b"a", b"/x/y", None) && !meant(&below, b"a", b"/x", None));
        let below = Purge::Prefix { host: None, path: b"/x/".to_vec() };
        assert!(meant(&below, b"b", b"/x/y", None) && !meant(&below, b"b", b"/x", None));
        let host = Purge::Host(b"a".to_vec());
        assert!(meant(&host, b"a", b"/", None) && !meant(&host, b"a.b", b"/", None));
        assert!(meant(&Purge::All, b"a", b"/", None));
        for query in [None, some(b"q?r")] {
            let url = Purge::Url { host: some(b"a"), path: b"/x".to_vec(), query: query.clone() };
            assert_eq!(url_of(&url_label(b"A", b"/x", query.as_deref())), Some(url));
        }
        assert_eq!(url_of(&tag_label(b"a")), None);
        let group = Purge::Group { host: b"a".to_vec(), name: b"g".to_vec() };
        assert!(labels_of(&group, &[]).iter().any(|labels| labels.fits(&group_label(b"A", b"g"))));
        assert!(!meant(&Purge::Tag(b"a".to_vec()), b"a", b"/", None));
    }
}
