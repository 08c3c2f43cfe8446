//! HTTP semantics without I/O: requests, targets, conditionals, ranges, codings, response heads.
//!
//! Everything here takes bytes (and, if needed, a time) and returns decisions. There is no socket, no clock
//! and no `unsafe`, so the engine, the fuzzers and the lab can use the same code. Hostile bytes never cause a
//! panic; they are refused with a reason.
//!
//! A request travels through the modules in this order:
//!
//! 1. [`request::parse`] turns the bytes of a connection into a [`Request`], or a [`Refusal`];
//! 2. [`target::normalise`] turns its path into the name of a cache object;
//! 3. [`coding::choose`] picks the stored variant of the object;
//! 4. [`conditional::evaluate`] and [`range::select`] decide between 200, 206, 304, 412 and 416;
//! 5. a [`ResponseHead`], built once per object, is written with the date of the second;
//! 6. [`body::BodySkipper`] finds the place where the next request begins.
#![forbid(unsafe_code)]

pub mod body;
pub mod caching;
pub mod chunked;
pub mod coding;
pub mod conditional;
pub mod date;
pub mod edits;
pub mod etag;
pub mod head;
pub mod marks;
pub mod media;
mod method;
pub mod multipart;
pub mod page;
pub mod problem;
pub mod range;
pub mod request;
mod status;
pub mod syntax;
pub mod target;
pub mod trace;

pub use coding::{Coding, CodingSet};
pub use conditional::{Precondition, Validators};
pub use date::HttpDate;
pub use etag::EntityTag;
pub use head::{Connection, ResponseHead};
pub use method::Method;
pub use range::Ranges;
pub use request::{
    BodyLength, FieldSlots, Host, Known, KnownSet, Refusal, Request, RequestLimits, Target, Version,
};
pub use status::Status;

/// Most fields of requests that an access log may ask for.
pub const MOST_CHOSEN: usize = 8;
