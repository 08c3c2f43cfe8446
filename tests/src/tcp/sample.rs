//! The objects that tests pin: marked samples, and nginx's own responses.

use afpa_bpf::{Coding, FastPath, Response, Variant};
use afpa_testkit::sample::{self, ETAG, LAST_MODIFIED, date_offset};

use super::lab::SITE;
use super::response::find;

/// An object that only the fast path has, so that its answers differ from nginx's.
pub struct Sample(sample::Sample);

impl Sample {
    /// With this content.
    pub fn new(body: impl AsRef<[u8]>) -> Self {
        Self(sample::Sample::new(body))
    }

    /// Answer GET of `path` with it.
    pub fn pin(&self, fast_path: &FastPath, path: &str) {
        let sample::Sample { head, not_modified, body } = &self.0;
        let variant = Variant {
            coding: Coding::Identity,
            closing: false,
            etag: ETAG.as_bytes(),
            last_modified: Some(LAST_MODIFIED),
            freshness: None,
            whole: Some(response(head.as_bytes(), body)),
            not_modified: Some(response(not_modified.as_bytes(), &[])),
        };
        fast_path.objects.pin(SITE, path.as_bytes(), &[variant]).expect("pinned");
    }
}

/// Pin what nginx itself answered, byte for byte.
pub fn pin_reply(fast_path: &FastPath, path: &str, whole: Option<&[u8]>, not_modified: &[u8]) {
    let last_modified = field(not_modified, "Last-Modified").as_bytes();
    let variant = Variant {
        coding: Coding::Identity,
        closing: false,
        etag: field(not_modified, "ETag").as_bytes(),
        last_modified: Some(last_modified.try_into().expect("an IMF-fixdate")),
        freshness: None,
        whole: whole.map(split),
        not_modified: Some(split(not_modified)),
    };
    fast_path.objects.pin(SITE, path.as_bytes(), &[variant]).expect("pinned");
}

/// The value of a field in the head of a response.
pub(crate) fn field<'r>(reply: &'r [u8], name: &str) -> &'r str {
    let end = find(reply, b"\r\n\r\n").expect("a whole head");
    let head = std::str::from_utf8(&reply[..end]).expect("ASCII");
    let value = head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    value.unwrap_or_else(|| panic!("no {name} in {head}"))
}

fn split(reply: &[u8]) -> Response<'_> {
    let (head, body) = reply.split_at(find(reply, b"\r\n\r\n").expect("a whole head") + 4);
    response(head, body)
}

fn response<'a>(head: &'a [u8], body: &'a [u8]) -> Response<'a> {
    Response { head, date_offset: date_offset(head), body }
}
