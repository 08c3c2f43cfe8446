//! How HTTP extends a cache object: validators, and the immutable header data of each coding.
//!
//! When an object is loaded, codings that are not stored beside the file are missing: they are *due*. The
//! object says so (`Vary`), and notes requests for them. When they have been made, an object that has them
//! replaces it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use afpa_cache::Stamp;
use afpa_framework::Priority;
use afpa_h2::FieldBlock;
use afpa_http::{Coding, CodingSet, EntityTag, Request, ResponseHead, Validators, Version, coding};

/// Header data of a cache object.
#[derive(Debug)]
pub struct HttpHeader {
    /// Seconds since the Unix epoch.
    pub last_modified: u64,
    /// Media type of the decoded content.
    pub content_type: Box<str>,
    /// Further fields of the answer.
    pub(crate) fields: Arc<[(String, String)]>,
    /// The rules for fields that its path fits.
    pub(crate) edits: u64,
    /// Among the long responses of a core that is behind.
    pub(crate) priority: Priority,
    available: CodingSet,
    due: CodingSet,
    demand: AtomicU8,
    variants: [Option<Box<Variant>>; Coding::ALL.len()],
}

/// One coding of a representation.
#[derive(Debug)]
pub struct Variant {
    /// The coding.
    pub coding: Coding,
    /// Index of its payload in the cache object.
    pub payload: usize,
    /// Bytes of the payload.
    pub len: u64,
    /// The version of the file behind the payload. For a stored coding, this is the version of that file.
    pub stamp: Stamp,
    /// The digest of the decoded content, if a filter made that content; `None`: it is the file's.
    pub digest: Option<u128>,
    /// Whether it was found in the file system, and not made by AFPA.
    pub stored: bool,
    /// Its own strong entity tag.
    pub etag: EntityTag,
    /// Head of a 200 answer, complete but for the date.
    pub ok: ResponseHead,
    /// The fields of that head for HTTP/2.
    pub(crate) ok_block: Option<FieldBlock>,
    /// The fields of that head for HTTP/3, where that is spoken.
    pub(crate) ok_section: Option<FieldBlock>,
    /// Head of a 304 answer, complete but for the date.
    pub not_modified: ResponseHead,
}

/// Bytes that a piece of memory takes up.
fn piece(len: usize) -> usize {
    len + 16
}

impl Variant {
    /// The head of a 200 answer as connections of this version send it, if they have streams.
    #[inline]
    pub(crate) fn block(&self, version: Version) -> Option<&FieldBlock> {
        match version {
            Version::Http2 => self.ok_block.as_ref(),
            Version::Http3 => self.ok_section.as_ref(),
            Version::Http10 | Version::Http11 => None,
        }
    }

    fn bytes(&self) -> usize {
        let blocks = [&self.ok_block, &self.ok_section].into_iter().flatten();
        let blocks: usize = blocks.map(|block| piece(block.size())).sum();
        let heads = piece(self.ok.bytes().len()) + piece(self.not_modified.bytes().len()) + blocks;
        piece(size_of::<Variant>()) + piece(self.etag.as_bytes().len()) + heads
    }
}

/// How far the codings that are due have got. The state only advances, except when the queue was full.
mod demand {
    /// No request was answered from the object yet.
    pub(super) const UNASKED: u8 = 0;
    /// One request was answered; the next one makes it an object that is asked for again.
    pub(super) const ASKED: u8 = 1;
    /// The object is in the compressor's queue, or being compressed.
    pub(super) const ORDERED: u8 = 2;
}

impl HttpHeader {
    /// Header data for an object with the given codings, of which identity is one, and with those that are
    /// still to be made.
    pub(crate) fn new(
        last_modified: u64,
        content_type: &str,
        fields: Arc<[(String, String)]>,
        codings: Vec<Variant>,
        due: CodingSet,
    ) -> Self {
        let available = codings.iter().map(|variant| variant.coding).collect();
        let mut variants: [Option<Box<Variant>>; Coding::ALL.len()] = Default::default();
        for variant in codings {
            let place = variant.coding as usize;
            variants[place] = Some(Box::new(variant));
        }
        debug_assert!(variants[Coding::Identity as usize].is_some(), "identity is always there");
        let demand = AtomicU8::new(demand::UNASKED);
        let (content_type, priority) = (content_type.into(), Priority::default());
        let edits = 0;
        Self {
            last_modified,
            content_type,
            fields,
            edits,
            priority,
            available,
            due,
            demand,
            variants,
        }
    }

    /// This header with another priority, and rules for fields.
    pub(crate) fn with(self, priority: Priority, edits: u64) -> Self {
        Self { priority, edits, ..self }
    }

    /// Bytes that it points at, with what the allocator adds to each piece.
    pub(crate) fn bytes(&self) -> usize {
        let fields = self.fields.iter().map(|(name, value)| {
            size_of::<(String, String)>() + piece(name.len()) + piece(value.len())
        });
        let fields = piece(fields.sum());
        piece(self.content_type.len()) + fields + self.variants().map(Variant::bytes).sum::<usize>()
    }

    /// The codings that were found beside the file, and not made by AFPA.
    pub(crate) fn stored(&self) -> impl Iterator<Item = Coding> {
        let coded = self.variants().filter(|variant| variant.stored);
        coded.map(|variant| variant.coding).filter(|coding| *coding != Coding::Identity)
    }

    /// The codings there are.
    pub fn available(&self) -> CodingSet {
        self.available
    }

    /// The codings that are still to be made, if they are worth it. (Identity is in every set, but never due.)
    pub fn due(&self) -> CodingSet {
        self.due
    }

    /// Whether an answer depends on Accept-Encoding, or will once the due codings are made.
    pub(crate) fn varies(&self) -> bool {
        self.available.union(self.due) != CodingSet::IDENTITY
    }

    /// Notes a request that is answered from this object. Returns `true`, once, if the due codings are to be
    /// made now: the object is asked for again, and the client accepts one of them.
    #[inline]
    pub(crate) fn wants_codings(&self, request: &Request<'_, '_>) -> bool {
        if self.due == CodingSet::IDENTITY {
            return false;
        }
        let step = |from, to| {
            self.demand.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        match self.demand.load(Ordering::Relaxed) {
            demand::UNASKED => {
                step(demand::UNASKED, demand::ASKED);
                false
            }
            demand::ASKED => {
                let liked = coding::choose(request, self.available.union(self.due));
                !self.available.contains(liked) && step(demand::ASKED, demand::ORDERED)
            }
            _ => false,
        }
    }

    /// The compressor's queue was full: a later request may try again.
    pub(crate) fn enqueue_failed(&self) {
        self.demand.store(demand::ASKED, Ordering::Relaxed);
    }

    /// Every variant, identity first.
    pub(crate) fn variants(&self) -> impl Iterator<Item = &Variant> {
        self.variants.iter().flatten().map(|variant| &**variant)
    }

    /// The variant in a coding.
    pub fn variant(&self, coding: Coding) -> Option<&Variant> {
        self.variants[coding as usize].as_deref()
    }

    /// The variant that the client prefers.
    pub(crate) fn choose(&self, request: &Request<'_, '_>) -> Option<&Variant> {
        self.variant(coding::choose(request, self.available))
    }

    pub(crate) fn validators<'a>(&self, variant: &'a Variant) -> Validators<'a> {
        Validators { etag: &variant.etag, last_modified: self.last_modified }
    }
}
