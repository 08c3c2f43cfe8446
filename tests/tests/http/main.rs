//! Requests as RFC 9110 to 9112 have them, and as they must not be.

mod codings;
mod conditionals;
mod escapes;
mod reference;
mod smuggling;
mod smuggling_proxied;
mod statuses;
mod targets;
