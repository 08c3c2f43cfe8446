//! The files behind the servers: the document root and the cache before it.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use afpa_cache::root::{
    DocumentRoot, Entry, FileBody, OpenFile, ResolveError, RootSettings, VersionError,
    read_exact_version,
};
use afpa_cache::{
    Arena, Cache, CacheSettings, Coverage, Fill, Key, Object, Overtaken, Payload, Ticket, View,
};
use afpa_http::{Coding, EntityTag, ResponseHead, Status, media};
use bytes::Bytes;

use crate::{Options, clock};

/// The header data of an object: all that an answer needs.
#[derive(Debug)]
pub struct Header {
    /// Strong, of size, time and inode.
    pub etag: EntityTag,
    /// In seconds since the Unix epoch.
    pub last_modified: u64,
    /// By the file's extension.
    pub content_type: String,
    /// Length of the content.
    pub length: u64,
    /// The pinned content, as the answers share it.
    pub pinned: Option<Bytes>,
    /// The ready-made head of 200.
    pub ok: ResponseHead,
    /// The ready-made head of 304.
    pub not_modified: ResponseHead,
}

/// The result of a load.
pub type Loaded = Result<Arc<Object<Header>>, Status>;

/// The document root with its cache; all threads of a process share it.
#[derive(Debug)]
pub struct Content {
    root: DocumentRoot,
    cache: Arc<Cache<Header>>,
    /// Held for each look at the cache, where it has one lock.
    one_lock: Option<Mutex<()>>,
}

/// How often a load begins again because the file changed meanwhile.
const ATTEMPTS: u32 = 4;

impl Content {
    /// Opens the root, with an empty cache. `shares` processes share the memory.
    ///
    /// # Errors
    /// When the root cannot be opened, or the memory not be had.
    pub fn open(options: &Options, shares: usize) -> io::Result<Arc<Self>> {
        let settings = CacheSettings {
            pin_threshold: options.pin_threshold,
            max_age_unwatched: options.max_age(),
            largest_share: 2,
            open_files_limit: 16_384 / shares.max(1),
            ..CacheSettings::default()
        };
        let arena = Arena::new(options.pinned_limit / shares.max(1))?;
        let root = DocumentRoot::open(&options.root, RootSettings::default())?;
        let one_lock = options.one_lock.then(Mutex::default);
        Ok(Arc::new(Self { root, cache: Cache::new(settings, arena), one_lock }))
    }

    /// A look at the cache for one thread of control.
    pub fn view(&self) -> View<Header> {
        // Nothing is invalidated here: objects go by age, and a look finds that out.
        self.cache.view(Box::new(|| {}))
    }

    /// The lock of the whole cache, if it has one: to be held while a view is looked at.
    pub fn lock(&self) -> Option<MutexGuard<'_, ()>> {
        self.one_lock.as_ref().map(|lock| lock.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Loads the file that `path` names, or waits for the thread that is loading it. Reads files.
    ///
    /// # Errors
    /// The status to answer with.
    pub fn load(self: &Arc<Self>, path: &[u8]) -> Loaded {
        let key = Key::new(0, path);
        for _ in 0..ATTEMPTS {
            match self.cache.begin(key.clone(), clock::now()) {
                Fill::Hit(object) => return Ok(object),
                Fill::Wait(waiter) => {
                    if let Some(object) = wait(waiter) {
                        return Ok(object);
                    }
                }
                Fill::Lead(ticket) => match self.lead(ticket, path) {
                    Err(Failure::Changed) => {}
                    Err(Failure::Status(status)) => return Err(status),
                    Ok(object) => return Ok(object),
                },
            }
        }
        Err(Status::SERVICE_UNAVAILABLE)
    }

    fn lead(&self, ticket: Ticket<Header>, path: &[u8]) -> Result<Arc<Object<Header>>, Failure> {
        let (path, file) = self.find(path)?;
        if ticket.suspect().is_some_and(|object| object.stamp() == Some(&file.stamp)) {
            return ticket.confirm().map_err(|_| Failure::Changed);
        }
        let stamp = file.stamp;
        let payload = payload(&ticket, file)?;
        let header = header(&path, &stamp, &payload);
        match ticket.publish(header, [payload], stamp, Coverage::Unwatched) {
            // The object was a whole version when it was read: good enough for requests since then.
            Ok(object) | Err(Overtaken(object)) => Ok(object),
        }
    }

    /// A file, or the index file of a directory.
    fn find(&self, path: &[u8]) -> Result<(Vec<u8>, OpenFile), Failure> {
        let index: &[u8] = if path.ends_with(b"/") { b"index.html" } else { b"" };
        let path = [path, index].concat();
        match self.root.resolve(&path) {
            Ok(Entry::File(file)) => Ok((path, file)),
            Ok(Entry::Directory(_)) | Err(ResolveError::NotFound | ResolveError::NotAFile) => {
                Err(Failure::Status(Status::NOT_FOUND))
            }
            Err(ResolveError::Forbidden | ResolveError::Denied) => {
                Err(Failure::Status(Status::FORBIDDEN))
            }
            Err(ResolveError::TooManyFiles) => Err(Failure::Status(Status::SERVICE_UNAVAILABLE)),
            Err(ResolveError::Io(_)) => Err(Failure::Status(Status::INTERNAL_SERVER_ERROR)),
        }
    }
}

enum Failure {
    Changed,
    Status(Status),
}

impl From<VersionError> for Failure {
    fn from(error: VersionError) -> Self {
        match error {
            VersionError::Changed | VersionError::Grown => Failure::Changed,
            VersionError::Io(_) => Failure::Status(Status::INTERNAL_SERVER_ERROR),
        }
    }
}

/// Pins the file, or keeps it open if it is too large or there is no room.
fn payload(ticket: &Ticket<Header>, opened: OpenFile) -> Result<Payload, Failure> {
    let OpenFile { file, stamp, .. } = opened;
    let room = usize::try_from(stamp.size).ok().and_then(|size| ticket.reserve(size));
    match room {
        Some(mut room) => {
            read_exact_version(&file, &stamp, &mut room)?;
            Ok(Payload::Pinned(room.freeze()))
        }
        None => Ok(Payload::File(Arc::new(FileBody::of(file, &stamp)?), stamp.size)),
    }
}

fn header(path: &[u8], stamp: &afpa_cache::Stamp, payload: &Payload) -> Header {
    let etag = EntityTag::from_stamp(stamp.size, stamp.mtime_ns, Some(stamp.ino), Coding::Identity);
    let content_type = media::content_type(path).into_owned();
    let (last_modified, length) = (stamp.modified(), payload.len());
    let ok = ok_head(&etag, last_modified, &content_type, length);
    let not_modified = not_modified_head(&etag, last_modified);
    let pinned = match payload {
        Payload::Pinned(bytes) => Some(Bytes::from_owner(bytes.clone())),
        Payload::File(..) => None,
    };
    Header { etag, last_modified, content_type, length, pinned, ok, not_modified }
}

impl Header {
    /// The head of 200, made anew.
    pub(crate) fn make_ok(&self) -> ResponseHead {
        ok_head(&self.etag, self.last_modified, &self.content_type, self.length)
    }

    /// The head of 304, made anew.
    pub(crate) fn make_not_modified(&self) -> ResponseHead {
        not_modified_head(&self.etag, self.last_modified)
    }
}

/// The file of an object that is not pinned.
pub(crate) fn file_of(object: &Object<Header>) -> Option<(Arc<FileBody>, u64)> {
    match object.payloads() {
        [Payload::File(file, length)] => Some((Arc::clone(file), *length)),
        _ => None,
    }
}

fn ok_head(etag: &EntityTag, modified: u64, content_type: &str, length: u64) -> ResponseHead {
    ResponseHead::build(Status::OK)
        .field("Content-Type", content_type)
        .content_length(length)
        .last_modified(modified)
        .field("ETag", etag.as_bytes())
        .finish()
}

fn not_modified_head(etag: &EntityTag, modified: u64) -> ResponseHead {
    ResponseHead::build(Status::NOT_MODIFIED)
        .last_modified(modified)
        .field("ETag", etag.as_bytes())
        .finish()
}

/// Blocks this thread until the load of another has ended.
fn wait<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(outcome) => return outcome,
            Poll::Pending => std::thread::park(),
        }
    }
}
