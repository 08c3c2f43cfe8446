//! The shared cache: the program before servers that do what a test says.

mod collapsing;
mod faults;
mod isolation;
mod model;
mod origin;
mod poisoning;
mod purging;
mod semantics;
mod suite;
