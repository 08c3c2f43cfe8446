//! One measured point.

use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use super::fixed;
use super::order::{Order, Steps};
use super::request::{Object, Request};
use crate::files;

/// One measured point: a set of files and a sequence of requests for them.
#[derive(Debug, Clone, Serialize)]
pub struct Workload {
    /// Of this point, good as a file's name: `webstone-512`.
    pub name: String,
    /// The family it belongs to: one figure each.
    pub family: String,
    /// For people.
    pub title: String,
    /// Where it stands on the family's axis: a file's size in bytes, a rate, or connections.
    pub point: Option<f64>,
    /// A description, with the source and the approximations.
    pub about: String,
    #[serde(skip)]
    pub(super) objects: Vec<Object>,
    #[serde(skip)]
    pub(super) requests: Vec<Request>,
    #[serde(skip)]
    pub(super) order: Order,
}

impl Workload {
    /// Files of the caller's choice, asked for independently of each other in proportion to their weights.
    pub fn given(parts: Vec<(u32, Object)>) -> Self {
        fixed::given(parts)
    }

    /// Makes the files below `root`. Files that are there already are kept.
    ///
    /// # Errors
    ///
    /// When a file cannot be written.
    pub fn make_files(&self, root: &Path) -> Result<()> {
        files::make(&self.objects, root)
    }

    /// The files that a server has to serve.
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// Bytes of all files: the memory that the working set takes.
    pub fn working_set(&self) -> u64 {
        self.objects.iter().map(|object| object.body.length()).sum()
    }

    /// The different requests; steps refer to them by index.
    pub fn all_requests(&self) -> &[Request] {
        &self.requests
    }

    /// The order of requests, without end. The same seed gives the same order.
    pub fn requests(&self, seed: u64) -> Steps<'_> {
        Steps::new(&self.order, &self.requests, seed)
    }

    /// Requests come independently of each other, in proportion to their weights: no matter
    /// which was asked before.
    pub fn is_mix(&self) -> bool {
        matches!(self.order, Order::Mix)
    }

    /// Connections end where the workload says, whatever the load asks for.
    pub fn has_sessions(&self) -> bool {
        matches!(self.order, Order::Sessions(_))
    }

    /// Bytes of content of the average request.
    pub fn mean_length(&self) -> f64 {
        let total: f64 = self.requests.iter().map(|request| f64::from(request.weight)).sum();
        let length = |request: &Request| request.body.map_or(0, |body| body.length()) as f64;
        let weighted =
            self.requests.iter().map(|request| length(request) * f64::from(request.weight));
        if total > 0.0 { weighted.sum::<f64>() / total } else { 0.0 }
    }
}
