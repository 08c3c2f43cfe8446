//! HTTP as an AFPA protocol module: files, answers of servers, kept or not, and scripts. HTTP/2 and HTTP/3 bring their requests
//! in the form of HTTP/1.1.
//!
//! [`Http`] is the module: each core has one value, whose methods are the state functions of the diagram.
//! The files of the states:
//!
//! | state | file |
//! |---|---|
//! | derive request | `derive.rs` (over [`afpa_http::request`]) |
//! | derive cached response | `derive/cached.rs`, `route.rs` (over [`afpa_router`]), `auth.rs`, `respond.rs` |
//! | derive miss response | `derive/miss.rs`, `remote/prepared.rs` |
//! | derive uncached response | `uncached.rs`, `load/` |
//! | derive remote response | `remote.rs`, `remote/finish.rs` (over [`afpa_proxy::exchange`]) |
//! | send response | the engine, from the outbox that `respond.rs` filled |
//!
//! [`Global`] is the global data: router, document roots ([`DocRoot`]), server groups, shared by all
//! cores and replaced as a whole at a reload. LIFECYCLE.md in this crate has the states, and I1 to I19 of `docs/rules` are
//! the rules.
#![forbid(unsafe_code)]

mod access;
mod asked;
mod auth;
mod checks;
mod common;
mod consent;
mod control;
mod counters;
mod demand;
mod derive;
mod doc_root;
mod errors;
mod global;
mod guard;
mod header;
mod known_scripts;
mod learnt;
mod load;
mod marker;
mod mirror;
mod own_request;
mod path_rule;
mod preface;
mod push;
mod question;
mod rates;
mod readings;
mod remote;
mod respond;
mod route;
mod scope_stats;
mod script;
mod settings;
mod site;
mod uncached;

pub use access::{AccessRecord, AccessSink, AskedServer, ExchangeSpan, NoAccessLog, Span};
pub use auth::PasswordCheck;
pub use checks::PasswordChecks;
pub use common::Common;
pub use counters::HttpCounters;
pub use demand::{PasswordDemand, Reserved, ServerDemand, of_clients, reserved};
pub use derive::{Http, HttpConnection, HttpRequest, Missed};
pub use doc_root::{DocRoot, DocRootError};
pub use errors::{ErrorPages, ErrorRule, PageFile, PageServer, PageSource};
pub use global::{
    Challenges, Codings, ErrorTables, Exchanges, Fields, Global, PeerPlaces, ServerGroup,
};
pub use guard::{Guard, Guards, Places};
pub use header::{HttpHeader, Variant};
pub use learnt::CheckedRequest;
pub use load::{Comparer, Compressor, CompressorStats};
pub use mirror::{MIRROR_DROPS, MOST_MIRRORS, MirrorPlace, MirrorReport, MirrorStock, Mirrors};
pub use path_rule::PathRule;
pub use rates::{PlaceRates, RatePlace, RateStock, Rates};
pub use readings::{readings, separated, shut};
pub use remote::{ExchangedRequest, Remote, RemoteRequest};
pub use scope_stats::{ScopeReport, ScopeStats, ScopeTable};
pub use settings::{Charset, Compression, DocRootSettings, FileHint, FilterRule};
pub use site::{ClientDemand, Site};
pub use uncached::{LoadedRequest, Uncached, Work, Worked};
