//! The shared cache: answers of servers that other requests may have as well (RFC 9111).
//!
//! | step | file |
//! |---|---|
//! | what the configuration says | [`policy`] |
//! | the key of a request, and its labels | [`key`], with what of its [`query`] and [`cookies`] counts |
//! | the labels that a purge means | [`labels`] |
//! | *derive cached response*: look the key up, judge what is there | [`look_up`] |
//! | how a server is asked, if it is | [`plan`] |
//! | write a stored response | [`answer`] |
//! | *derive remote response*: ask a server once for all who wait | [`run`], over [`fetch`] |
//! | what is asked, and what came of it | [`asking`] |
//! | judge and keep what the server sends | [`tap`] |
//! | parts of an answer | [`parts`] |
//! | what answers to HEAD, POST and other unsafe methods say | [`alone`], over [`head`], [`post`], [`invalidate`] |
//! | what is kept | [`stored`], [`index`], put there by [`list`]; its head as [`text`] |
//! | which answers save most | [`top`] |
//! | what the kernel may answer with | [`kernel`] |
//! | a snapshot of it, from one process to the next | [`save`], [`restore`] |
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
