//! Requests through the engine, the router and the split connection to servers that a test controls.

mod answers;
mod failures;
mod http2;
mod http2_failures;
mod http2_hostile;
mod http2_peer;
mod http2_silence;
mod http2_tunnels;
mod requests;
mod rig;
mod streams;
