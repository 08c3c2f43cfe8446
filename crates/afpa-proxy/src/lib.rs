//! The reverse split-connection proxy (IBM paper, section 3): it passes a request on to a server of
//! a server group and conveys the response, over separate connections to client and server.
//!
//! Pure cores, which take bytes and a time and give back decisions:
//!
//! * [`end`]: where a response ends, by each of the ways HTTP has to end one;
//! * [`request`]: the request as the server gets it;
//! * [`response`]: the head of a response, as it is read and as the client gets it;
//! * [`health`]: when a server counts as unavailable, and when it is used again;
//! * [`limit`]: which requests pass under the limits of a site and its clients;
//! * [`forwarded`]: who the client is, when routers in front say so;
//! * [`select`]: which server of a group gets a request;
//! * [`observe`]: what is counted of servers and groups.
//!
//! What does I/O, on one core and without a lock:
//!
//! * [`exchange`]: one request and its response;
//! * [`pool`]: connections to servers that wait for something to do.
//!
//! And beside the cores:
//!
//! * [`probe`]: the thread that probes servers and looks up names;
//! * [`resolve`]: addresses of names, and how long these hold.
#![forbid(unsafe_code)]

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
pub mod resolve;
pub mod response;
pub mod select;
