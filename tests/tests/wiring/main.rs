//! The fast path on hosts that are wired in every way: each segment is translated once each way, or it is not the fast
//! path's (E1 to E8 of `docs/rules`).

mod balancers;
mod chain;
mod changes;
mod containers;
mod fronts;
mod links;
mod loopback;
mod routed;
mod shapes;
mod socketless;
mod stacked;
mod support;
mod tunnel;
mod ways;
