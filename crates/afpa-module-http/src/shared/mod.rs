//! The shared cache: answers of servers that other requests may have as well (RFC 9111).
//!
//! | step | file |
//! |---|---|
//! | the configuration | [`policy`] |
//! | the key of a request, and its labels | [`key`], with the parts of [`query`] and [`cookies`] that count |
//! | the labels of a purge | [`labels`] |
//! | *derive cached response*: look the key up, judge the object | [`look_up`] |
//! | how a server is asked, if it is | [`plan`] |
//! | write a stored response | [`answer`] |
//! | *derive remote response*: ask a server once for all requests that wait | [`run`], over [`fetch`] |
//! | a question to a server, and its outcome | [`asking`] |
//! | judge and keep the server's answer | [`tap`] |
//! | parts of an answer | [`parts`] |
//! | effects of answers to HEAD, POST, other unsafe methods | [`alone`], over [`head`], [`post`], [`invalidate`] |
//! | a kept response | [`stored`], [`index`], put there by [`list`]; its head as [`text`] |
//! | which answers save most | [`top`] |
//! | the responses that the kernel may send | [`kernel`] |
//! | a snapshot of the cache, from one process to the next | [`save`], [`restore`] |
//!
//! The semantics are those of [`afpa_http::caching`], the objects and their limits those of [`afpa_cache`].

mod alone;
pub(crate) mod answer;
mod asking;
mod background;
mod backlog;
mod client;
mod cookies;
mod fetch;
mod follow;
mod head;
mod index;
mod invalidate;
mod kernel;
mod key;
mod labels;
mod list;
pub(crate) mod look_up;
mod parts;
mod passes;
mod plan;
mod policy;
mod post;
mod purge;
mod query;
mod responses;
mod restore;
pub(crate) mod run;
mod save;
mod send;
mod stored;
mod tap;
mod text;
mod top;

pub use kernel::{KernelCopy, KernelPlace, KernelRules, KernelTtl};
pub(crate) use key::KeyRoom;
pub use labels::Purge;
pub(crate) use look_up::Found;
pub(crate) use plan::Plan;
pub use policy::{CachePolicy, Mode, QueryRule};
pub use responses::{Responses, SharedStats};
pub use restore::{Present, Refused, Restored};
pub use stored::StoredResponse;
pub use top::Saver;
