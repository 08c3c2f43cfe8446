//! The reverse split-connection proxy (IBM paper, section 3): it passes a request on to a server of
//! a server group and its response back, over separate connections to client and server.
//!
//! Pure cores, which take bytes and a time and return decisions:
//!
//! * [`end`]: where a response ends, for each way in which HTTP ends one;
//! * [`coding`]: which responses are compressed as they pass, and how;
//! * [`request`]: the request as the server gets it;
//! * [`response`]: the head of a response, as it is read and as the client gets it;
//! * [`health`]: when a server counts as unavailable, and when it is used again;
//! * [`limit`]: which requests the limits of a site and its clients let pass;
//! * [`forwarded`]: the client of a request that came through routers in front;
//! * [`select`]: which server of a group gets a request;
//! * [`observe`]: counters of servers and groups;
//! * `switch`: a server's answer to a request for another protocol;
//! * `trailers`: which fields of a trailer section are passed on;
//! * `websocket`: the part of its handshake that AFPA answers itself.
//!
//! With I/O, on one core and without a lock:
//!
//! * [`exchange`]: one request and its response;
//! * [`pool`]: idle connections to servers.
//!
//! In a thread beside the cores:
//!
//! * [`probe`]: the thread that probes servers and looks up names.
#![forbid(unsafe_code)]

pub mod client;
pub mod coding;
pub mod end;
pub mod exchange;
mod fields;
pub mod forwarded;
pub mod health;
pub mod limit;
pub mod observe;
pub mod pool;
pub mod probe;
pub mod request;
pub mod response;
pub mod select;
mod switch;
mod trailers;
mod websocket;
