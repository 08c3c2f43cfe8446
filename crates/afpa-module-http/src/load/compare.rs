//! Compares objects in use with their files, now and then.
//!
//! A watch does not hear every change: not a store through a shared mapping, nor a write through another name of the file. So
//! one thread of the lowest priority looks at the files of the objects that were used of late, also of those that the
//! kernel answers from, and drops those whose files are others by now. It takes a small part of a core, however
//! many they are.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use afpa_cache::root::has_other_bytes;
use afpa_cache::{Cache, Object, Payload};
use afpa_http::Coding;

use super::build::digest;
use super::filter::{Draft, Origin};
use super::find::{self, Found};
use super::sources::Sources;
use crate::doc_root::DocRoot;
use crate::header::{HttpHeader, Variant};

/// The thread that compares. It ends when this is dropped.
pub struct Comparer {
    /// Nothing is ever sent: its drop ends the thread.
    _ends: SyncSender<()>,
}

struct ComparerThread {
    cache: Weak<Cache<HttpHeader>>,
    roots: Vec<Weak<DocRoot>>,
    ended: Receiver<()>,
}

/// Time from the use of an object to the look at its file.
const PERIOD: Duration = Duration::from_secs(4);

/// It works for one part in this many of the time.
const SHARE: u32 = 20;

/// The thread runs only when no other thread wants the core.
const NICE: i32 = 19;

impl Comparer {
    /// Starts to compare the objects of these document roots, which share the cache.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(cache: &Arc<Cache<HttpHeader>>, roots: &[Arc<DocRoot>]) -> io::Result<Comparer> {
        let (ends, ended) = sync_channel(0);
        let roots = roots.iter().map(Arc::downgrade).collect();
        let thread = ComparerThread { cache: Arc::downgrade(cache), roots, ended };
        std::thread::Builder::new().name("afpa-compare".into()).spawn(move || thread.run())?;
        Ok(Comparer { _ends: ends })
    }
}

impl ComparerThread {
    fn run(self) {
        if let Err(error) = rustix::process::nice(NICE) {
            tracing::warn!(
                %error,
                "the priority of a thread cannot be lowered: files are compared at that of \
                 requests"
            );
        }
        while self.goes_on_after(PERIOD) {
            let Some(cache) = self.cache.upgrade() else { return };
            let mut goes_on = true;
            cache.compare_used(|object| {
                let begun = Instant::now();
                let is_current = !goes_on || is_current_in(&self.roots, object);
                goes_on = goes_on && self.goes_on_after(begun.elapsed() * (SHARE - 1));
                is_current
            });
        }
    }

    fn goes_on_after(&self, pause: Duration) -> bool {
        self.ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout)
    }
}

/// Whether the file system still holds the files that the object was made from.
fn is_current_in(roots: &[Weak<DocRoot>], object: &Object<HttpHeader>) -> bool {
    let site = object.key().site;
    let root = roots.iter().filter_map(Weak::upgrade).find(|root| root.key() == site);
    root.is_none_or(|root| is_current(&root, object))
}

pub(super) fn is_current(doc_root: &DocRoot, object: &Object<HttpHeader>) -> bool {
    let Found::File(mut sources) = find::find(doc_root, &object.key().path, &mut |_| {}) else {
        return false;
    };
    let header = object.header();
    match header.variant(Coding::Identity) {
        Some(Variant { digest: Some(made), .. }) => {
            // A page that shows the time would be another one, and a hint has said how long it is kept.
            object.end().is_some() || made_again(doc_root, &mut sources) == Some(*made)
        }
        _ => sources.are_those_of(header) && !has_other_content(object, &sources),
    }
}

/// Whether one of the files is seen to have other bytes than those that are pinned, though its size and times are the same.
fn has_other_content(object: &Object<HttpHeader>, sources: &Sources) -> bool {
    let file_of = |coding| match coding {
        Coding::Identity => Some(&sources.file),
        _ => sources.stored.iter().find(|(known, _)| *known == coding).map(|(_, file)| file),
    };
    object.header().variants().filter(|variant| variant.stored).any(|variant| {
        match (object.payloads().get(variant.payload), file_of(variant.coding)) {
            (Some(Payload::Pinned(bytes)), Some(file)) => has_other_bytes(&file.file, bytes),
            _ => false,
        }
    })
}

/// The digest of the content that the filters make of these files now.
fn made_again(doc_root: &DocRoot, sources: &mut Sources) -> Option<u128> {
    let mut draft = Draft::of(doc_root, sources);
    let mut origin = Origin { doc_root, depend: &|_| {}, tells: false, sources };
    doc_root.pipeline().run(&mut draft, &mut origin).ok()?;
    draft.content.as_deref().map(digest)
}

#[cfg(test)]
mod tests;
