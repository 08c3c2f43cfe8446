//! `afpa-lab`: the papers' experiments by one command.

fn main() {}
