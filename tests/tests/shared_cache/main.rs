//! The shared cache: the program before servers that do what a test says.

mod collapsing;
mod faults;
mod isolation;
mod kernel;
#[path = "../fast_path/lab.rs"]
#[allow(dead_code)] // each program uses its part
mod lab;
mod memory;
mod methods;
mod model;
mod odd;
mod origin;
mod parts;
mod poisoning;
mod purging;
mod semantics;
mod snapshot;
mod suite;
