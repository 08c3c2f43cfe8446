//! The state that all threads of control share.

use std::sync::Arc;

use anyhow::{Context, Result};

use crate::{Architecture, Content, Handler, Options, Without};

/// State that all threads of control of a server share.
#[derive(Debug)]
pub(crate) struct ServerContext {
    pub(crate) architecture: Architecture,
    pub(crate) gather: bool,
    pub(crate) pool: u32,
    pub(crate) helpers: u32,
    pub(crate) connections: u32,
    options: Options,
}

impl ServerContext {
    pub(crate) fn new(options: &Options) -> Result<Self> {
        Ok(Self {
            architecture: options.architecture()?,
            gather: options.has(Without::GatherWrite),
            pool: options.pool,
            helpers: options.helpers,
            connections: options.connections,
            options: options.clone(),
        })
    }

    /// The content, for one of so many processes.
    pub(crate) fn open(&self, processes: usize) -> Result<Arc<Content>> {
        let root = self.options.root.display();
        Content::open(&self.options, processes).with_context(|| format!("cannot serve {root}"))
    }

    /// A handler for one thread of control.
    pub(crate) fn handler(&self, content: &Arc<Content>) -> Handler {
        Handler::new(content, &self.options, self.architecture.closes)
    }
}
