//! The program for QUIC: its ids, tokens and tags beside those of user mode, and packets in and out.

#[path = "../compiled/mod.rs"]
#[allow(unreachable_pub)]
mod compiled;
mod packets;
mod tokens;
