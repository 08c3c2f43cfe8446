//! How a load ends that a change overtook.

use std::sync::Arc;

use crate::object::Object;

/// A file changed while it was being loaded: the object would be a mixture of two versions, or stale from
/// the start. It is safe to begin again, a bounded number of times. Also: the object that was to be replaced
/// is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("changed while it was being loaded")]
pub struct Changed;

/// The object of a load that a change overtook. It is [`Dropped`](crate::Currency::Dropped) from the start
/// and not listed. Each of its payloads is one version of its file, from a time after the load began. So it
/// may answer the request that led the load, if loading again does not help, but no other request.
#[derive(Debug)]
pub struct Overtaken<H>(pub Arc<Object<H>>);
