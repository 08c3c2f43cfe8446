//! From open files to payloads, validators and heads.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use afpa_cache::root::{OpenFile, VersionError, read_exact_version};
use afpa_cache::{Family, Keep, Object, Payload, Stamp, Ticket};
use afpa_http::{Coding, CodingSet, EntityTag, ResponseHead, Status, media};

use super::compress::Encode;
use super::find::Sources;
use crate::doc_root::DocRoot;
use crate::header::{HttpHeader, Variant};
use crate::settings::DocRootSettings;

/// Why an object could not be built.
#[derive(Debug)]
pub(super) enum BuildError {
    /// A file is no longer the version that was opened.
    Changed,
    /// A file cannot be read.
    Io(io::Error),
}

impl From<VersionError> for BuildError {
    fn from(error: VersionError) -> Self {
        match error {
            VersionError::Changed => BuildError::Changed,
            VersionError::Io(error) => BuildError::Io(error),
        }
    }
}

/// The header data and payloads of an object, ready to be published.
pub(super) struct Content {
    pub(super) header: HttpHeader,
    pub(super) payloads: Vec<Payload>,
}

/// One coding that goes into the object.
struct Coded {
    coding: Coding,
    payload: Payload,
    stamp: Stamp,
    made_here: bool,
}

/// Reads what is to be pinned, and generates the heads. Codings that are not stored are made later, so that
/// the first request does not wait for them.
pub(super) fn build(
    doc_root: &DocRoot,
    ticket: &mut Ticket<HttpHeader>,
    sources: &Sources,
) -> Result<Content, BuildError> {
    let content_type = doc_root.media().content_type(&sources.path).into_owned();
    let hint = doc_root.settings().hint(&sources.path);
    ticket.describe(Family::of(&content_type), hint);
    let kept = hint.keep != Keep::Never;
    let mut codings = vec![payload_of(ticket, kept, Coding::Identity, &sources.file)?];
    for (coding, file) in &sources.stored {
        codings.push(payload_of(ticket, kept, *coding, file)?);
    }
    let stamp = &sources.file.stamp;
    let due = match kept && is_compressed_here(doc_root.settings(), &content_type, stamp.size) {
        true => wanted(doc_root.settings(), &codings).map(|(coding, _)| coding).collect(),
        false => CodingSet::IDENTITY,
    };
    Ok(assemble(doc_root.settings(), &content_type, modified(stamp), codings, due))
}

/// Makes the due codings of an object, for the object that replaces it. Codings that save too little, or for
/// which the arena has no room, are left out: identity is always there.
pub(super) fn with_codings(
    doc_root: &DocRoot,
    object: &Object<HttpHeader>,
    encode: &Encode,
) -> Result<Content, BuildError> {
    let header = object.header();
    let mut codings: Vec<Coded> =
        header.variants().filter_map(|variant| Coded::again(object, variant)).collect();
    let content = content_of(&codings)?;
    let mut made = Vec::new();
    for (coding, level) in wanted(doc_root.settings(), &codings) {
        if object.is_dropped() {
            return Err(BuildError::Changed);
        }
        let Some(bytes) = encode(coding, level, &content).map_err(BuildError::Io)? else {
            continue;
        };
        let Some(mut room) = doc_root.cache().reserve(bytes.len()) else { continue };
        room.copy_from_slice(&bytes);
        let (payload, stamp) = (Payload::Pinned(room.freeze()), *object.stamp());
        made.push(Coded { coding, payload, stamp, made_here: true });
    }
    codings.extend(made);
    let (content_type, due) = (&header.content_type, CodingSet::IDENTITY);
    Ok(assemble(doc_root.settings(), content_type, header.last_modified, codings, due))
}

impl Coded {
    /// A coding of an object, for the object that replaces it.
    fn again(object: &Object<HttpHeader>, variant: &Variant) -> Option<Coded> {
        let payload = object.payloads().get(variant.payload)?.clone();
        let (coding, stamp, made_here) = (variant.coding, variant.stamp, !variant.stored);
        Some(Coded { coding, payload, stamp, made_here })
    }
}

/// Pins a file, or keeps it open if it is too large, there is no room, or the object is not `kept`.
fn payload_of(
    ticket: &Ticket<HttpHeader>,
    kept: bool,
    coding: Coding,
    file: &OpenFile,
) -> Result<Coded, BuildError> {
    let size = usize::try_from(file.stamp.size).ok().filter(|_| kept);
    let room = size.and_then(|size| ticket.reserve(size));
    let payload = match room {
        Some(mut room) => {
            read_exact_version(&file.file, &file.stamp, &mut room)?;
            Payload::Pinned(room.freeze())
        }
        None => {
            let file_again = file.file.try_clone().map_err(BuildError::Io)?;
            Payload::File(Arc::new(file_again), file.stamp.size)
        }
    };
    Ok(Coded { coding, payload, stamp: file.stamp, made_here: false })
}

fn is_compressed_here(settings: &DocRootSettings, content_type: &str, size: u64) -> bool {
    let compression = &settings.compression;
    let media = content_type.split(';').next().unwrap_or_default().trim();
    (compression.min_size..=compression.max_size).contains(&size)
        && (media::compressible(content_type)
            || compression.types.iter().any(|known| known.eq_ignore_ascii_case(media)))
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

fn assemble(
    settings: &DocRootSettings,
    content_type: &str,
    last_modified: u64,
    codings: Vec<Coded>,
    due: CodingSet,
) -> Content {
    let varies = codings.len() > 1 || due != CodingSet::IDENTITY;
    let mut payloads = Vec::with_capacity(codings.len());
    let mut variants = Vec::with_capacity(codings.len());
    for (index, coded) in codings.into_iter().enumerate() {
        let description = Description { settings, content_type, last_modified, varies };
        variants.push(description.variant(index, &coded));
        payloads.push(coded.payload);
    }
    Content { header: HttpHeader::new(last_modified, content_type, variants, due), payloads }
}

/// Last-Modified must not lie in the future (RFC 9110 section 8.8.2.1).
fn modified(stamp: &Stamp) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    stamp.modified().min(now)
}

/// The fields that the heads of all variants have in common.
struct Description<'a> {
    settings: &'a DocRootSettings,
    content_type: &'a str,
    last_modified: u64,
    varies: bool,
}

impl Description<'_> {
    fn variant(&self, payload: usize, coded: &Coded) -> Variant {
        let stamp = &coded.stamp;
        let etag = EntityTag::from_stamp(stamp.size, stamp.mtime_ns, Some(stamp.ino), coded.coding);
        let ok = ResponseHead::build(Status::OK)
            .field("Content-Type", self.content_type)
            .content_length(coded.payload.len())
            .last_modified(self.last_modified)
            .field("ETag", etag.as_bytes())
            .field("Accept-Ranges", "bytes");
        let not_modified = ResponseHead::build(Status::NOT_MODIFIED)
            .last_modified(self.last_modified)
            .field("ETag", etag.as_bytes());
        let coded_as = (coded.coding != Coding::Identity).then(|| coded.coding.token());
        Variant {
            coding: coded.coding,
            payload,
            len: coded.payload.len(),
            stamp: coded.stamp,
            stored: !coded.made_here,
            ok: self.common(ok.field_if("Content-Encoding", coded_as)),
            not_modified: self.common(not_modified),
            etag,
        }
    }

    fn common(&self, head: afpa_http::head::HeadBuilder) -> ResponseHead {
        let head = head.field_if("Vary", self.varies.then_some("Accept-Encoding"));
        let fields = self.settings.headers.iter();
        fields.fold(head, |head, (name, value)| head.field(name, value)).finish()
    }
}
