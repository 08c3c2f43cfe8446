//! The reverse split-connection proxy (IBM paper, section 3): it passes a request on to a server of
//! a server group and conveys the response, over separate connections to client and server.
//!
//! Pure cores, which take bytes and a time and give back decisions:
//!
//! * [`end`]: where a response ends, by each of the ways HTTP has to end one;
//! * [`health`]: when a server counts as unavailable, and when it is used again;
//! * [`limit`]: which requests pass under the limits of a site and its clients;
//! * [`select`]: which server of a group gets a request.
#![forbid(unsafe_code)]

pub mod end;
mod fields;
pub mod health;
pub mod limit;
pub mod observe;
pub mod select;
