//! `afpa serve` with its fast path, in a network namespace of its own, with clients in another one.
//!
//! Everything needs root and the kernel's eBPF: where they are missing, each test says SKIP.

mod answers;
mod changes;
mod clients;
mod http2;
mod http3_flood;
mod lab;
mod life;
mod long;
mod memory;
mod police;
mod self_check;
mod sites;
mod socketless;
mod start;
