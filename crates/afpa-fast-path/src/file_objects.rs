//! Files as the kernel pins them: under every URL that host and path alone lead to, with all their codings.

use afpa_bpf::{ANSWER_MAX, Coding, ETAG_MAX, FastPath, NOT_MODIFIED_MAX, Response, Variant};
use afpa_cache::{Coverage, Key, Object, Payload};
use afpa_http::{Connection, HttpDate, ResponseHead, target};
use afpa_module_http::HttpHeader;

use crate::kernel_cache::{PinCopy, PinTarget, Pinnable};
use crate::scope::KernelScope;

/// The files of one configuration.
pub(crate) struct FileObjects {
    /// The kernel's numbers of its sites; 0: user mode answers for the site.
    pub(crate) sites: Vec<u32>,
    pub(crate) scope: KernelScope,
}

impl Pinnable<HttpHeader> for FileObjects {
    /// A file that is not watched must be compared again and again, and the kernel cannot do that.
    fn is_for_kernel(&self, _key: &Key, object: &Object<HttpHeader>) -> bool {
        object.coverage() == Coverage::Watched
    }

    /// Where more than host and path decides, there is no target: only user mode can tell.
    fn targets(&self, key: &Key, _object: &Object<HttpHeader>) -> Vec<PinTarget> {
        let urls = self.scope.urls(key).into_iter();
        let placed = urls.filter_map(|(site, url)| Some((*self.sites.get(site)?, url)));
        let placed = placed.filter(|(site, _)| *site != 0);
        let targets = placed.flat_map(|(site, url)| {
            let target = move |path: Vec<u8>| PinTarget {
                site,
                path: path.into(),
                codings: None,
                matter: 0,
            };
            spellings(&url).map(target)
        });
        targets.collect()
    }

    fn with_copy(
        &self,
        fast_path: &FastPath,
        (_, object): (&Key, &Object<HttpHeader>),
        pin: &mut dyn FnMut(&PinCopy<'_>),
    ) {
        let modified = HttpDate::new(object.header().last_modified);
        let longest = fast_path.objects.longest_answer();
        let open = variants(object, modified.as_bytes(), longest);
        let closing = fast_path.socketless.may_close();
        let closing = closing.then(|| EndingHeads::of(object, Connection::Close));
        let closed = closing.iter().flat_map(|heads| {
            open.iter().map(|variant| Variant { closing: true, ..ended(variant, heads, longest) })
        });
        let all: Vec<_> = open.iter().copied().chain(closed).collect();
        let old = gets_old_kept(fast_path).then(|| EndingHeads::of(object, Connection::KeepAlive));
        let old_kept: Vec<_> = old
            .iter()
            .flat_map(|heads| open.iter().map(|variant| ended(variant, heads, ANSWER_MAX)))
            .collect();
        pin(&PinCopy { variants: &all, old_kept: &old_kept, until: None });
    }

    fn is_wanted_anew(&self, fast_path: &FastPath) -> bool {
        fast_path.objects.wants_old_kept()
    }
}

/// A URL in the spelling of nearly all programs, and in that of apt where it differs: names of versions are full of `+` and `~`. A path
/// is decoded before anything is decided for a file (K4), so user mode gives both the same answer.
fn spellings(url: &[u8]) -> impl Iterator<Item = Vec<u8>> + use<> {
    let mut usual = Vec::with_capacity(url.len());
    target::encode(url, &mut usual);
    let escape = |byte: &u8| match byte {
        b'+' => b"%2b".to_vec(),
        b'~' => b"%7e".to_vec(),
        byte => vec![*byte],
    };
    let differs = usual.iter().any(|byte| matches!(byte, b'+' | b'~'));
    let other = differs.then(|| usual.iter().flat_map(escape).collect());
    std::iter::once(usual).chain(other)
}

/// Whether objects are pinned with answers to HTTP/1.0 that keeps its connection: once somebody has asked so, and while no more than
/// half of the room is taken, so that such clients put no object aside.
fn gets_old_kept(fast_path: &FastPath) -> bool {
    let objects = &fast_path.objects;
    objects.wants_old_kept() && objects.free_slots() * 2 > objects.room().0
}

/// The heads of an object's answers that say what becomes of the connection.
struct EndingHeads(Vec<(afpa_http::Coding, Vec<u8>, Vec<u8>)>);

impl EndingHeads {
    fn of(object: &Object<HttpHeader>, end: Connection) -> Self {
        let codings = afpa_http::Coding::ALL.into_iter();
        let made = codings.filter_map(|coding| object.header().variant(coding));
        let heads = made.map(|made| (made.coding, made.ok.with(end), made.not_modified.with(end)));
        Self(heads.collect())
    }

    /// `200` and `304`.
    fn heads(&self, coding: afpa_http::Coding) -> Option<(&[u8], &[u8])> {
        let heads = self.0.iter().find(|(made, ..)| *made == coding);
        heads.map(|(_, ok, not_modified)| (&ok[..], &not_modified[..]))
    }
}

/// All codings, including those that are too long to be answered and those that are still to be made: the
/// kernel chooses among them as a worker does, and passes the request up when it chooses one of these.
fn variants<'o>(
    object: &'o Object<HttpHeader>,
    last_modified: &'o [u8; HttpDate::LEN],
    longest: usize,
) -> Vec<Variant<'o>> {
    let header = object.header();
    let codings = afpa_http::Coding::ALL.into_iter();
    let is_due = |coding| header.due().contains(coding) && !header.available().contains(coding);
    let due = codings.clone().filter(|coding| is_due(*coding)).map(|coding| Variant {
        coding: coding_of(coding),
        closing: false,
        etag: b"",
        last_modified: None,
        freshness: None,
        whole: None,
        not_modified: None,
    });
    let made = codings.filter_map(|coding| header.variant(coding)).map(|variant| {
        let etag = variant.etag.as_bytes();
        let comparable = etag.len() <= ETAG_MAX;
        let body = match object.payloads().get(variant.payload) {
            Some(Payload::Pinned(bytes)) => Some(&bytes[..]),
            _ => None,
        };
        Variant {
            coding: coding_of(variant.coding),
            closing: false,
            etag: if comparable { etag } else { b"" },
            last_modified: Some(last_modified),
            freshness: None,
            whole: body
                .and_then(|body| response(&variant.ok, body, longest))
                .filter(|_| comparable),
            not_modified: response(&variant.not_modified, b"", NOT_MODIFIED_MAX)
                .filter(|_| comparable),
        }
    });
    made.chain(due).collect()
}

/// The variant `open` for requests whose answers have these heads.
fn ended<'o>(open: &Variant<'o>, heads: &'o EndingHeads, longest: usize) -> Variant<'o> {
    let coding =
        afpa_http::Coding::ALL.into_iter().find(|coding| coding_of(*coding) == open.coding);
    let heads = coding.and_then(|coding| heads.heads(coding));
    let with = |answer: Option<Response<'o>>, head: Option<&'o [u8]>, limit: usize| {
        let answer = Response { head: head?, ..answer? };
        (answer.head.len() + answer.body.len() <= limit).then_some(answer)
    };
    Variant {
        whole: with(open.whole, heads.map(|(ok, _)| ok), longest),
        not_modified: with(open.not_modified, heads.map(|(_, head)| head), NOT_MODIFIED_MAX),
        ..*open
    }
}

fn response<'o>(head: &'o ResponseHead, body: &'o [u8], limit: usize) -> Option<Response<'o>> {
    let fits = head.bytes().len() + body.len() <= limit;
    fits.then(|| Response { head: head.bytes(), date_offset: head.date_offset(), body })
}

fn coding_of(coding: afpa_http::Coding) -> Coding {
    match coding {
        afpa_http::Coding::Identity => Coding::Identity,
        afpa_http::Coding::Gzip => Coding::Gzip,
        afpa_http::Coding::Brotli => Coding::Brotli,
        afpa_http::Coding::Zstd => Coding::Zstd,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_versions_have_two_spellings() {
        let spelled = |url: &[u8]| {
            let all = spellings(url).map(|path| String::from_utf8(path).unwrap());
            all.collect::<Vec<_>>()
        };
        assert_eq!(spelled(b"/a b"), ["/a%20b"]);
        assert_eq!(spelled(b"/x++_1~2"), ["/x++_1~2", "/x%2b%2b_1%7e2"]);
        for url in [&b"/%+"[..], b"/a+b%2b~", b"/\xff~"] {
            for path in spellings(url) {
                assert_eq!(target::normalise(&path, &mut Vec::new()), Ok(url));
            }
        }
    }
}
