//! The reverse split-connection proxy (IBM paper, section 3): it passes a request on to a server of
//! a server group and conveys the response, over separate connections to client and server.
//!
//! Pure cores, which take bytes and a time and give back decisions:
//!
//! * [`end`]: where a response ends, by each of the ways HTTP has to end one;
#![forbid(unsafe_code)]

pub mod end;
mod fields;
