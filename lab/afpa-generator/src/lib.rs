//! Workloads of the papers, and generators that ask for them.
