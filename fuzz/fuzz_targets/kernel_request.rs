//! The request parser of the eBPF programs against that of afpa-http: user mode must answer each request
//! that the programs answer, in the same way.
//!
//! The C side is a child process, so coverage guides by the Rust side only; that is the stricter one.
#![no_main]

#[allow(unreachable_pub, missing_docs)]
#[path = "../../crates/afpa-bpf/tests/compiled/mod.rs"]
mod compiled;

#[allow(dead_code, unreachable_pub, missing_docs)]
#[path = "../../crates/afpa-bpf/tests/agree"]
mod agree {
    pub mod framing;
    pub mod property;
    pub mod unsafe_targets;
    pub mod user_space;
    pub mod world;
}

use std::sync::{LazyLock, Mutex};

use agree::user_space::Parser;
use agree::world::World;

static WORLD: LazyLock<World> = LazyLock::new(|| World::new([]));
static PARSER: LazyLock<Mutex<Parser>> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("afpa-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let parser = Parser::start(&folder, &WORLD).expect("a C compiler");
    let _ = std::fs::remove_dir_all(&folder); // the running program keeps what it needs
    Mutex::new(parser)
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if data.is_empty() || data.len() > 4096 {
        return; // the programs look at 2,560 bytes of a payload
    }
    let mut parser = PARSER.lock().expect("no earlier failure");
    for may_close in [true, false] {
        parser.let_close(may_close);
        let verdict = parser.judge(&[data])[0];
        if let Err(difference) = agree::property::agree(&WORLD, data, verdict) {
            panic!("without a socket: {may_close}; {difference}");
        }
    }
    let framings = parser.frame(&[data]);
    if let Err(difference) = agree::unsafe_targets::agree(data, parser.unsafe_targets(&[data])[0]) {
        panic!("{difference}");
    }
    if let Err(difference) = agree::framing::agree(data, &framings[0]) {
        panic!("{difference}");
    }
});
