//! How HTTP extends a cache object: validators, and the immutable header data of each coding.

use afpa_cache::Stamp;
use afpa_http::{Coding, CodingSet, EntityTag, Request, ResponseHead, Validators, coding};

/// Header data of a cache object.
#[derive(Debug)]
pub struct HttpHeader {
    /// Seconds since the Unix epoch.
    pub last_modified: u64,
    /// Media type of the decoded content.
    pub content_type: Box<str>,
    available: CodingSet,
    variants: [Option<Box<Variant>>; Coding::ALL.len()],
}

/// One coding of a representation.
#[derive(Debug)]
pub struct Variant {
    /// What this is.
    pub coding: Coding,
    /// Index of its payload in the cache object.
    pub payload: usize,
    /// Bytes of the payload.
    pub len: u64,
    /// The version of the file behind the payload: the sibling's, where a sibling is stored.
    pub stamp: Stamp,
    /// Whether it was found in the file system, not made here.
    pub stored: bool,
    /// Its own strong entity tag.
    pub etag: EntityTag,
    /// Head of a 200 answer, complete but for the date.
    pub ok: ResponseHead,
    /// Head of a 304 answer, likewise.
    pub not_modified: ResponseHead,
}

impl HttpHeader {
    /// Header data for an object with the given codings, of which identity is one.
    pub(crate) fn new(last_modified: u64, content_type: &str, codings: Vec<Variant>) -> Self {
        let available = codings.iter().map(|variant| variant.coding).collect();
        let mut variants: [Option<Box<Variant>>; Coding::ALL.len()] = Default::default();
        for variant in codings {
            let place = variant.coding as usize;
            variants[place] = Some(Box::new(variant));
        }
        debug_assert!(variants[Coding::Identity as usize].is_some(), "identity is always there");
        Self { last_modified, content_type: content_type.into(), available, variants }
    }

    /// The codings that were found beside the file, not made here.
    pub(crate) fn stored(&self) -> impl Iterator<Item = Coding> {
        let coded = self.variants.iter().flatten().filter(|variant| variant.stored);
        coded.map(|variant| variant.coding).filter(|coding| *coding != Coding::Identity)
    }

    /// The codings there are.
    pub fn available(&self) -> CodingSet {
        self.available
    }

    /// The variant in a coding.
    pub fn variant(&self, coding: Coding) -> Option<&Variant> {
        self.variants[coding as usize].as_deref()
    }

    /// The variant that the client likes best.
    pub(crate) fn choose(&self, request: &Request<'_, '_>) -> Option<&Variant> {
        self.variant(coding::choose(request, self.available))
    }

    pub(crate) fn validators<'a>(&self, variant: &'a Variant) -> Validators<'a> {
        Validators { etag: &variant.etag, last_modified: self.last_modified }
    }
}
