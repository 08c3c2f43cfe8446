//! Invalidation by unsafe requests (RFC 9111 section 4.4).

use std::sync::Arc;

use afpa_cache::Labels;
use afpa_framework::Now;
use afpa_http::caching::{fields, invalidates, same_origin_path};
use afpa_http::{Method, target};
use afpa_proxy::exchange::{Passing, Tap};
use afpa_proxy::response;

use crate::key::labels::{Purge, url_of};
use crate::key::{group_label, host_of};
use crate::store::responses::Responses;

/// The tap of a request with a method that is not safe: if the answer is no error, the stored responses for the URL are
/// dropped before the client has the answer.
#[derive(Debug)]
pub(crate) struct Invalidating {
    pub(crate) responses: Arc<Responses>,
    pub(crate) host: Vec<u8>,
    /// The labels of the request's URL, with all queries under which a response may be kept.
    pub(crate) labels: Vec<Vec<u8>>,
    /// How many purges it has made.
    pub(crate) purges: u64,
}

impl Invalidating {
    fn drop_all(&mut self, labels: &[Vec<u8>]) {
        for label in labels {
            self.purges += 1;
            self.responses.purge_labels(Labels::Is(label.as_slice().into()), false);
        }
    }

    /// The name in Host, as labels have it.
    fn name(&self) -> &[u8] {
        self.labels.first().map(|label| host_of(label)).unwrap_or_default()
    }
}

impl Tap for Invalidating {
    fn head(&mut self, response: &response::Response<'_, '_>, _: Now) -> Passing {
        // Only requests with unsafe methods have this tap.
        if !invalidates(Method::Post, response.status) {
            return Passing::On;
        }
        if let Some(url) = self.labels.first().and_then(|label| url_of(label)) {
            self.responses.invalidate_elsewhere(&url);
        }
        self.drop_all(&self.labels.clone());
        for (name, value) in response.end_to_end() {
            let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
            if is("location") || is("content-location") {
                let Some(path) = same_origin_path(value, &self.host) else { continue };
                let mut parts = path.splitn(2, |&byte| byte == b'?');
                let (path, query) = (parts.next().unwrap_or_default(), parts.next());
                let mut room = Vec::new();
                if let Ok(path) = target::spell(path, &mut room) {
                    let host = Some(self.name().to_vec());
                    let (path_there, query_there) = (path.to_vec(), query.map(<[u8]>::to_vec));
                    let url = Purge::Url { host, path: path_there, query: query_there };
                    self.responses.invalidate_elsewhere(&url);
                    let labels = self.responses.url_labels(self.name(), path, query);
                    self.drop_all(&labels);
                }
            } else if is("cache-group-invalidation") {
                for group in fields::groups(value) {
                    let (host, name) = (self.name().to_vec(), group.to_vec());
                    self.responses.invalidate_elsewhere(&Purge::Group { host, name });
                    let label = group_label(self.name(), group);
                    self.drop_all(&[label]);
                }
            }
        }
        Passing::On
    }

    fn put_fields(&self, _: &mut Vec<u8>) {}

    fn content(&mut self, _: &[u8]) {}

    fn whole(&mut self, _: Now) {}
}
