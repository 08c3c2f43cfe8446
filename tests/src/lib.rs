//! End-to-end tests of the afpa program; the tests themselves are in `tests/tests`.
//!
//! Here is what several of them share: a naive server made of rules alone, to compare with, and
//! decoders of the content codings, a client of HTTP/2, beds on which the fast path meets bad networks, and the servers
//! that stand behind the proxy, authorities and certificates for clients and servers of TLS,
//! and browsers.

pub mod allocations;
pub mod attach;
pub mod bpf_home;
pub mod bridge;
pub mod browser;
pub mod clock;
pub mod codings;
pub mod collector;
pub mod dates;
pub mod dns;
pub mod ferret;
pub mod h2;
mod library;
pub mod monitoring;
pub mod pebble;
pub mod proxy;
pub mod quic;
pub mod reference;
pub mod resolvers;
pub mod slots;
pub mod tcp;
pub mod tls;
pub mod way;
