//! Requests through the engine, the router and the split connection to servers that a test controls.

mod answers;
mod failures;
mod requests;
mod rig;
mod streams;
