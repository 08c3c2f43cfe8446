//! The sites of a configuration as the router has them.

use std::sync::Arc;

use afpa_router::{Conflict, Router};

use crate::guarded::Guarded;
use crate::hierarchy::Hierarchy;
use crate::listeners::ListenerNumbers;
use crate::model::Config;

/// A configuration as the router sees it, with the names that people know. The checks of a configuration make it; the
/// server and all commands have it from there.
#[derive(Clone, Debug)]
pub struct Routes {
    /// The hierarchy with every default filled in.
    pub hierarchy: Hierarchy,
    /// Compiled. It has no site as long as there are conflicts.
    pub router: Arc<Router>,
    /// The parts that not everybody may use.
    pub guarded: Guarded,
    /// The numbers of listeners in it.
    pub listeners: ListenerNumbers,
}

impl Routes {
    /// The routes of a configuration, in which listeners have the numbers of `listeners` or new ones, and all conflicts.
    pub(crate) fn of(config: &Config, mut listeners: ListenerNumbers) -> (Self, Vec<Conflict>) {
        let hierarchy = listeners.hierarchy(config);
        let (router, mut conflicts) = match Router::compile(&hierarchy.table) {
            Ok(router) => (router, Vec::new()),
            Err(conflicts) => (Router::default(), conflicts),
        };
        let guarded = Guarded::of(config).unwrap_or_else(|more| {
            // The same paths stand in the hierarchy, where a conflict is named by its own place.
            if conflicts.is_empty() {
                conflicts = more;
            }
            Guarded::default()
        });
        (Routes { hierarchy, router: Arc::new(router), guarded, listeners }, conflicts)
    }
}
