//! The kept responses: the objects, and the cache that has them.

pub(crate) mod index;
pub(crate) mod list;
pub(crate) mod partial;
pub(crate) mod passes;
pub(crate) mod responses;
pub(crate) mod restore;
pub(crate) mod save;
pub(crate) mod stored;
pub(crate) mod text;
pub(crate) mod top;
