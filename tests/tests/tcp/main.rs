//! The fast path in front of an unmodified nginx, segment by segment, under the actions of clients and networks.

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
