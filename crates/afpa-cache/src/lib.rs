//! The AFPA cache: objects, policies, coherency.
//!
//! One [`Cache`] holds the working set; each worker has a [`View`] of it:
//!
//! ```text
//!  worker --get--> View --hit--> &Object            loads only: no lock, no allocation, no RMW
//!                   | local miss: the table's lock, once for each object and worker
//!                   v
//!                 Table --miss--> Cache::begin --> Lead(Ticket): load, publish
//!                   ^                         \--> Wait(Waiter): another request is loading it
//!  watch --invalidate--> flag the object, tell the views that hold it
//! ```
//!
//! An object is *pinned* (its bytes in the arena) or a *file-system* object (an open descriptor), or
//! both in different codings (IBM paper, section 2). It carries header data `H` of the protocol
//! module, never changes once published, and is dropped as a whole when one of the paths it
//! [depends on](Ticket::depends_on) changes.
#![forbid(unsafe_code)]

mod cache;
mod chooser;
mod dependencies;
mod fill;
mod key;
mod labelled;
mod labels;
mod mailbox;
mod object;
mod overtaken;
mod pages;
pub mod policy;
mod residency;
pub mod root;
mod settings;
mod stamp;
mod table;
mod view;
pub mod watch;

pub use afpa_arena::{Arena, Heap, LockReport, Pinned, PinnedMut};
pub use cache::{Cache, Used};
pub use chooser::{PolicyReport, ShelfReport};
pub use fill::{Fill, Ticket, Waiter};
pub use key::Key;
pub use labels::{END, Label, LabelRule, Labelled, Labels, Moment, label_of};
pub use object::{Currency, Millis, Object, Payload, Payloads};
pub use overtaken::{Changed, Overtaken};
pub use pages::PageCharge;
pub use policy::{Family, Hint, Keep, ObjectId, PolicyKind, PolicySetting};
pub use residency::Residency;
pub use settings::{CacheSettings, CacheStats};
pub use stamp::{Coverage, Stamp};
pub use view::{Lookup, View};
