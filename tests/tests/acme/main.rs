//! Certificates that come by themselves, from a real authority.

mod manager;
mod serve;
