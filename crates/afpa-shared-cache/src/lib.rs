//! The shared cache: answers of servers that other requests may have as well (RFC 9111).
//!
//! | step | file |
//! |---|---|
//! | the configuration | `policy` |
//! | the key of a request | `key`, with the parts of `key/query` and `key/cookies` that count |
//! | the labels of a purge | `key/labels` |
//! | a request as the cache sees it | `request` |
//! | *derive cached response*: look the key up, judge the object | `look_up` |
//! | how a server is asked, if it is | `plan` |
//! | write a stored response | `answer` |
//! | *derive remote response*: ask a server once for all requests that wait | `run`, over `lead` and `fetch` |
//! | a question to a server, and its outcome | `fetch/question` |
//! | judge and keep the server's answer, or a part of it | `fetch/tap`, `fetch/part` |
//! | effects of answers to HEAD, POST, other unsafe methods | `alone`, over `fetch/head`, `fetch/post`, `fetch/invalidate` |
//! | other machines that keep answers: how they are asked, and ask | `peers`, over `peer_head` and `fetch/peer` |
//! | a kept response, or parts of one | `store/stored`, `store/index`, `store/partial`, put there by `store/list`; its head as `store/text` |
//! | which answers save most | `store/top` |
//! | the responses that the kernel may send | `kernel` |
//! | a snapshot of the cache, from one process to the next | `store/save`, `store/restore` |
//!
//! The semantics are those of [`afpa_http::caching`], the objects and their limits those of [`afpa_cache`].
#![forbid(unsafe_code)]

mod alone;
mod answer;
mod background;
mod fetch;
mod kernel;
mod key;
mod lead;
mod look_up;
mod peer_head;
mod peers;
mod plan;
mod policy;
mod purge;
mod request;
mod run;
mod store;

pub use answer::{Answering, Recipient, Written};
pub use fetch::client::Nobody;
pub use kernel::{KernelCopy, KernelPlace, KernelRules, KernelTtl};
pub use key::KeyRoom;
pub use key::labels::Purge;
pub use lead::{Answer, Answered};
pub use look_up::{Found, look_up};
pub use peer_head::key_of as shared_key_of;
pub use peers::{FromPeer, NoQuestion, PeerClient, PeerEnd, PeerQuestion, Peers, ToPeer};
pub use plan::Plan;
pub use policy::{CachePolicy, Mode, QueryRule};
pub use request::{CacheRequest, ClientHead, SiteCache};
pub use run::run;
pub use store::responses::{Cause, PassOn, Responses, SharedStats};
pub use store::restore::{Present, Refused, Restored};
pub use store::stored::StoredResponse;
pub use store::top::Saver;
