//! The fast path in front of an unmodified nginx, segment by segment: what clients and networks do to a connection.

mod bypass;
mod ecn;
mod ends;
mod forgery;
mod hand_back;
mod links;
mod loss;
mod path;
mod requests;
mod windows;
