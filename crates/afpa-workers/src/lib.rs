//! The code that runs for each request around the module: the loops of workers that serve HTTP, and the access log.
//!
//! The program's own crate is compiled for size, and this one for speed. A generic loop becomes code in the crate that names
//! its types first: here (`docs/decisions/size.md`).

pub mod access_log;

use afpa_module_http::Http;
use afpa_server::worker::WorkerContext;
use afpa_server::{Engine, EngineError, Rings, Settings};

/// Makes the module of a worker, on its thread.
pub type MakeModule = Box<dyn Fn(WorkerContext) -> Http + Send + Sync>;

/// Starts workers, as [`Engine::start_with_rings`] does.
///
/// # Errors
/// When a thread or its event loop cannot be made.
pub fn start(
    settings: &Settings,
    rings: Rings,
    largest_head: usize,
    module: MakeModule,
) -> Result<Engine<Http>, EngineError> {
    Engine::start_with_rings(settings, rings, largest_head, module)
}
