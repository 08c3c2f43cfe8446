//! From open files to payloads, validators and heads.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use afpa_cache::root::{FileBody, OpenFile, VersionError, read_exact_version};
use afpa_cache::{Cache, Family, Hint, Keep, Object, Payload, Stamp, Ticket};
use afpa_framework::Priority;
use afpa_h2::FieldBlock;
use afpa_h3::Qpack;
use afpa_http::edits::Edits;
use afpa_http::{Coding, CodingSet, EntityTag, ResponseHead, Status};
use siphasher::sip128::SipHasher13;

use super::compress::Encode;
use super::fault::BuildError;
use super::filter::{Draft, Origin};
use super::page::PageInMemory;
use super::sources::Sources;
use crate::doc_root::DocRoot;
use crate::header::{HttpHeader, Variant};
use crate::settings::DocRootSettings;

/// The header data and payloads of an object, ready to be published.
pub(super) struct Content {
    pub(super) header: HttpHeader,
    /// Bytes that count besides the pinned ones: those behind the header, and pages in memory that are not pinned.
    pub(super) bytes: usize,
    pub(super) payloads: Vec<Payload>,
}

/// A coding that goes into the object.
struct Coded {
    coding: Coding,
    payload: Payload,
    stamp: Stamp,
    /// The digest of the decoded content, if a filter made it.
    digest: Option<u128>,
    made_here: bool,
}

/// Reads the files that are to be pinned, and generates the heads. Codings that are not stored are made later, so that
/// the first request does not wait for them.
pub(super) fn build(
    doc_root: &DocRoot,
    ticket: &mut Ticket<HttpHeader>,
    sources: &mut Sources,
) -> Result<Content, BuildError> {
    let mut draft = Draft::of(doc_root, sources);
    let depend = |place: &[u8]| ticket.depends_on(place);
    let mut origin = Origin { doc_root, depend: &depend, tells: true, sources };
    doc_root.pipeline().run(&mut draft, &mut origin)?;
    ticket.describe(Family::of(&draft.content_type), draft.hint);
    let kept = draft.hint.keep != Keep::Never;
    let (identity, last_modified) = match &draft.content {
        None => {
            let coded = payload_of(ticket, kept, Coding::Identity, &mut sources.file)?;
            (coded, modified(&sources.file.stamp))
        }
        Some(content) => {
            let (coded, for_one_response) =
                made(doc_root, ticket, kept, content, sources.file.stamp)?;
            if for_one_response {
                let hint = Hint { keep: Keep::Never, ..draft.hint };
                ticket.describe(Family::of(&draft.content_type), hint);
            }
            let last_modified = time_of(ticket, &coded);
            (coded, last_modified)
        }
    };
    let mut codings = vec![identity];
    for (coding, file) in &mut sources.stored {
        codings.push(payload_of(ticket, kept, *coding, file)?);
    }
    let about = About {
        content_type: &draft.content_type,
        fields: draft.fields.into(),
        priority: draft.priority,
        last_modified,
        edits: edits_of(doc_root, &ticket.key().path),
        http3: doc_root.settings().http3,
    };
    Ok(assemble(about, codings, draft.due))
}

/// Makes the due codings of an object, for the object that replaces it. Codings that save too little, or for
/// which the arena has no room, are left out: identity is always there.
pub(super) fn with_codings(
    settings: &DocRootSettings,
    cache: &Cache<HttpHeader>,
    object: &Object<HttpHeader>,
    encode: &Encode,
) -> Result<Content, BuildError> {
    let header = object.header();
    let mut codings: Vec<Coded> =
        header.variants().filter_map(|variant| Coded::again(object, variant)).collect();
    let content = content_of(&codings)?;
    let digest = codings.iter().find_map(|coded| coded.digest);
    // Codings are made of files alone.
    let stamp = object.stamp().copied().ok_or(BuildError::Changed)?;
    let mut made = Vec::new();
    for (coding, level) in wanted(settings, &codings) {
        if object.is_dropped() {
            return Err(BuildError::Changed);
        }
        let Some(bytes) = encode(coding, level, &content).map_err(BuildError::Io)? else {
            continue;
        };
        let Some(mut room) = cache.reserve(bytes.len()) else { continue };
        room.copy_from_slice(&bytes);
        let payload = Payload::Pinned(room.freeze());
        made.push(Coded { coding, payload, stamp, digest, made_here: true });
    }
    codings.extend(made);
    let about = About {
        content_type: &header.content_type,
        fields: Arc::clone(&header.fields),
        priority: header.priority,
        last_modified: header.last_modified,
        edits: Edits { rules: &settings.fields, mask: header.edits, origin: None, marks: None },
        http3: settings.http3,
    };
    Ok(assemble(about, codings, CodingSet::IDENTITY))
}

impl Coded {
    /// Bytes of memory that are neither pinned nor a file's: those of a page for which the arena had no room.
    fn unpinned(&self) -> usize {
        match &self.payload {
            Payload::File(_, len) if self.digest.is_some() => {
                usize::try_from(*len).unwrap_or(usize::MAX)
            }
            _ => 0,
        }
    }

    /// A coding that is a file.
    fn stored(coding: Coding, payload: Payload, stamp: Stamp) -> Coded {
        Coded { coding, payload, stamp, digest: None, made_here: false }
    }

    /// A coding of an object, for the object that replaces it.
    fn again(object: &Object<HttpHeader>, variant: &Variant) -> Option<Coded> {
        let payload = object.payloads().get(variant.payload)?.clone();
        let Variant { coding, stamp, digest, stored, .. } = *variant;
        Some(Coded { coding, payload, stamp, digest, made_here: !stored })
    }
}

/// Pins a file, or keeps it open if it is too large, there is no room, it grows all the time, or the object is not
/// `kept`. If a file has grown since it was opened, its present version is taken.
fn payload_of(
    ticket: &Ticket<HttpHeader>,
    kept: bool,
    coding: Coding,
    file: &mut OpenFile,
) -> Result<Coded, BuildError> {
    for _ in 0..GROWTHS {
        match payload_of_version(ticket, kept, file) {
            Ok(payload) => return Ok(Coded::stored(coding, payload, file.stamp)),
            Err(VersionError::Grown) => {
                file.stamp = Stamp::from(&rustix::fs::fstat(&file.file).map_err(io::Error::from)?);
            }
            Err(error) => return Err(error.into()),
        }
    }
    let body = FileBody::growing(file.file.try_clone()?, file.stamp.size)?;
    let payload = Payload::File(Arc::new(body), file.stamp.size);
    Ok(Coded::stored(coding, payload, file.stamp))
}

/// How often a file may grow while it is loaded, until a version that may be growing is taken.
const GROWTHS: usize = 4;

fn payload_of_version(
    ticket: &Ticket<HttpHeader>,
    kept: bool,
    OpenFile { file, stamp, .. }: &OpenFile,
) -> Result<Payload, VersionError> {
    let size = usize::try_from(stamp.size).ok().filter(|_| kept);
    let Some(mut room) = size.and_then(|size| ticket.reserve(size)) else {
        let body = FileBody::of(file.try_clone()?, stamp)?;
        return Ok(Payload::File(Arc::new(body), stamp.size));
    };
    read_exact_version(file, stamp, &mut room)?;
    Ok(Payload::Pinned(room.freeze()))
}

/// Pins the result of a filter, or puts it into a file without a name if there is no room, or the object is not `kept`.
/// `of`: the version of the file that it was made from. Whether such files take so much room that it must not be kept.
fn made(
    doc_root: &DocRoot,
    ticket: &Ticket<HttpHeader>,
    kept: bool,
    content: &[u8],
    of: Stamp,
) -> Result<(Coded, bool), BuildError> {
    let digest = digest(content);
    let room = Some(content.len()).filter(|_| kept).and_then(|size| ticket.reserve(size));
    let (payload, stamp, for_one_response) = match room {
        Some(mut room) => {
            room.copy_from_slice(content);
            (Payload::Pinned(room.freeze()), of, false)
        }
        None => {
            let page = PageInMemory::of(doc_root.cache(), content)?;
            (Payload::File(page.file, page.len), page.stamp, page.for_one_response)
        }
    };
    let (coding, digest) = (Coding::Identity, Some(digest));
    Ok((Coded { coding, payload, stamp, digest, made_here: false }, for_one_response))
}

/// A digest by which contents that a filter has made are compared.
pub(super) fn digest(content: &[u8]) -> u128 {
    SipHasher13::new().hash(content).as_u128()
}

/// The time at which the result of a filter last changed: now, unless the object that it replaces was the same. The
/// times of its files do not show that, because a file that is gone, or is replaced by an older one, changes the page,
/// too.
fn time_of(ticket: &Ticket<HttpHeader>, made: &Coded) -> u64 {
    let before = ticket.suspect().map(|suspect| suspect.header());
    let same = before.filter(|header| {
        header.variant(Coding::Identity).is_some_and(|before| before.digest == made.digest)
    });
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    same.map_or_else(now, |header| header.last_modified)
}

/// The codings that are configured and missing, with their levels.
fn wanted(settings: &DocRootSettings, codings: &[Coded]) -> impl Iterator<Item = (Coding, u32)> {
    let configured = settings.compression.codings.iter().copied();
    configured.filter(|(coding, _)| codings.iter().all(|there| there.coding != *coding))
}

/// The decoded content: as pinned, or read for the encoders.
fn content_of(codings: &[Coded]) -> Result<Cow<'_, [u8]>, BuildError> {
    match codings.iter().find(|coded| coded.coding == Coding::Identity) {
        Some(Coded { payload: Payload::Pinned(bytes), .. }) => Ok(Cow::Borrowed(&bytes[..])),
        Some(Coded { payload: Payload::File(file, len), stamp, .. }) => {
            let len = usize::try_from(*len).map_err(|_| BuildError::Changed)?;
            let mut content = vec![0; len];
            read_exact_version(file, stamp, &mut content)?;
            Ok(Cow::Owned(content))
        }
        None => Err(BuildError::Changed),
    }
}

/// The fields that the heads of all variants share.
struct About<'a> {
    content_type: &'a str,
    fields: Arc<[(String, String)]>,
    priority: Priority,
    last_modified: u64,
    edits: Edits<'a>,
    /// Whether clients may come by HTTP/3.
    http3: bool,
}

/// The changes of the fields of answers with the object for a path.
fn edits_of<'a>(doc_root: &'a DocRoot, path: &[u8]) -> Edits<'a> {
    let DocRootSettings { fields, mount, .. } = doc_root.settings();
    let mask = match fields.has_prefixes() {
        true => fields.mask(&[mount.as_bytes(), path].concat()),
        false => fields.mask(path),
    };
    Edits { rules: fields, mask, origin: None, marks: None }
}

fn assemble(about: About<'_>, codings: Vec<Coded>, due: CodingSet) -> Content {
    let varies = codings.len() > 1 || due != CodingSet::IDENTITY;
    let unpinned: usize = codings.iter().map(Coded::unpinned).sum();
    let mut payloads = Vec::with_capacity(codings.len());
    let mut variants = Vec::with_capacity(codings.len());
    for (index, coded) in codings.into_iter().enumerate() {
        variants.push(Description { about: &about, varies }.variant(index, &coded));
        payloads.push(coded.payload);
    }
    let About { content_type, fields, priority, last_modified, edits, http3: _ } = about;
    let header = HttpHeader::new(last_modified, content_type, fields, variants, due);
    let header = header.with(priority, edits.mask);
    Content { bytes: header.bytes() + unpinned, header, payloads }
}

/// Last-Modified must not lie in the future (RFC 9110 section 8.8.2.1).
fn modified(stamp: &Stamp) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    stamp.modified().min(now)
}

/// The fields that the heads of all variants have in common.
struct Description<'a> {
    about: &'a About<'a>,
    varies: bool,
}

impl Description<'_> {
    fn variant(&self, payload: usize, coded: &Coded) -> Variant {
        let (etag, last_modified) = (entity_tag(coded), self.about.last_modified);
        let ok = ResponseHead::build(Status::OK)
            .field("Content-Type", self.about.content_type)
            .content_length(coded.payload.len())
            .last_modified(last_modified)
            .field("ETag", etag.as_bytes())
            .field("Accept-Ranges", "bytes");
        let not_modified = ResponseHead::build(Status::NOT_MODIFIED)
            .last_modified(last_modified)
            .field("ETag", etag.as_bytes());
        let coded_as = (coded.coding != Coding::Identity).then(|| coded.coding.token());
        let ok = self.common(ok.field_if("Content-Encoding", coded_as), Status::OK);
        Variant {
            coding: coded.coding,
            payload,
            len: coded.payload.len(),
            stamp: coded.stamp,
            digest: coded.digest,
            stored: !coded.made_here,
            ok_block: FieldBlock::of(&ok),
            ok_section: self.about.http3.then(|| FieldBlock::coded::<Qpack>(&ok)).flatten(),
            ok,
            not_modified: self.common(not_modified, Status::NOT_MODIFIED),
            etag,
        }
    }

    fn common(&self, head: afpa_http::head::HeadBuilder, status: Status) -> ResponseHead {
        let head = head.field_if("Vary", self.varies.then_some("Accept-Encoding"));
        let fields = self.about.fields.iter();
        let head = fields.fold(head, |head, (name, value)| head.field(name, value)).finish();
        head.edited(self.about.edits, status, self.about.content_type)
    }
}

/// The entity tag of the version of the file, or of the bytes themselves where a filter made them.
fn entity_tag(coded: &Coded) -> EntityTag {
    let Coded { stamp, coding, digest, .. } = coded;
    match digest {
        None => EntityTag::from_stamp(stamp.size, stamp.mtime_ns, Some(stamp.ino), *coding),
        Some(digest) => EntityTag::from_digest(*digest, *coding),
    }
}
