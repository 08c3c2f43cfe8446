//! The TCP sender of the eBPF programs (`bpf/include/afpa/tcp`) in user space.
//!
//! The C is compiled with address and undefined-behaviour sanitizers into a [worker] process, which takes steps
//! and tells its whole state after each. Around it stand:
//!
//! - a [network] and a [client] in virtual time: seeded, so that a seed that fails replays exactly
//!   (`AFPA_SEED=n cargo test -p afpa-tcp-sim`);
//! - an [oracle], which holds the invariants S1 to S8 of `docs/rules` and the RFCs' rules after each step;
//! - [directed] cases with numbers that were computed by hand from the RFCs' formulas;
//! - a [script] of a client in no state to be believed, for the sanitizers, and for the comparison with the kernel;
//! - a table of [faults]: each is planted into a copy of the C, and the cases and networks have to find it.
//!
//! A test says what a TCP sender has to do. It never repeats how the C does it.

pub mod client;
pub mod compile;
pub mod directed;
pub mod faults;
pub mod network;
pub mod oracle;
pub mod random;
pub mod run;
pub mod script;
pub mod sender;
pub mod step;
pub mod worker;
