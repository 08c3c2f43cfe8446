//! The numbers by which the parts of a table are named.

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);
    )* };
}

ids! {
    /// An address and port, or a unix socket, on which connections are accepted. The number is the
    /// caller's; it keeps its meaning over reloads.
    ListenerId;
    /// A site, by its index in [`Table::sites`](crate::Table::sites).
    SiteId;
    /// A request set: every content group of every path of every site, counted in their order.
    RequestSetId;
    /// A file-system directory; the number is the caller's.
    RootId;
    /// A server group; the number is the caller's.
    GroupId;
}
