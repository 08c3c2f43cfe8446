//! Where the kernel looks addresses and hosts up.

use std::net::SocketAddr;

use afpa_bpf::Listeners;

/// Changes of the kernel's tables. The programs see each change before the call returns.
pub(crate) trait HostMap {
    /// As [`Listeners::listen`].
    fn listen(&self, address: SocketAddr, set: u32, any: u32) -> anyhow::Result<()>;

    /// As [`Listeners::unlisten`].
    fn unlisten(&self, address: SocketAddr) -> anyhow::Result<()>;

    /// As [`Listeners::map_host_as`].
    fn map_host(&self, set: u32, host: &str, site: u32, number: u32) -> anyhow::Result<bool>;

    /// As [`Listeners::unmap_host`].
    fn unmap_host(&self, set: u32, host: &str) -> anyhow::Result<()>;
}

impl HostMap for Listeners {
    fn listen(&self, address: SocketAddr, set: u32, any: u32) -> anyhow::Result<()> {
        Ok(Listeners::listen(self, address, set, any)?)
    }

    fn unlisten(&self, address: SocketAddr) -> anyhow::Result<()> {
        Ok(Listeners::unlisten(self, address)?)
    }

    fn map_host(&self, set: u32, host: &str, site: u32, number: u32) -> anyhow::Result<bool> {
        Ok(self.map_host_as(set, host, site, number)?)
    }

    fn unmap_host(&self, set: u32, host: &str) -> anyhow::Result<()> {
        Listeners::unmap_host(self, set, host)?;
        Ok(())
    }
}
