//! Requests as RFC 9110 to 9112 have them, and as they must not be.

mod codings;
mod conditionals;
mod escapes;
mod reference;
mod smuggling;
mod statuses;
mod targets;
