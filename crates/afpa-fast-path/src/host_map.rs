//! Where the kernel looks addresses and hosts up.

use std::net::SocketAddr;

use afpa_bpf::FastPath;

/// Changes of the kernel's tables. The programs see each change before the call returns.
pub(crate) trait HostMap {
    /// As [`FastPath::listen`].
    fn listen(&self, address: SocketAddr, set: u32, any: u32) -> anyhow::Result<()>;

    /// As [`FastPath::unlisten`].
    fn unlisten(&self, address: SocketAddr) -> anyhow::Result<()>;

    /// As [`FastPath::map_host_as`].
    fn map_host(&self, set: u32, host: &str, site: u32, number: u32) -> anyhow::Result<bool>;

    /// As [`FastPath::unmap_host`].
    fn unmap_host(&self, set: u32, host: &str) -> anyhow::Result<()>;
}

impl HostMap for FastPath {
    fn listen(&self, address: SocketAddr, set: u32, any: u32) -> anyhow::Result<()> {
        Ok(FastPath::listen(self, address, set, any)?)
    }

    fn unlisten(&self, address: SocketAddr) -> anyhow::Result<()> {
        Ok(FastPath::unlisten(self, address)?)
    }

    fn map_host(&self, set: u32, host: &str, site: u32, number: u32) -> anyhow::Result<bool> {
        Ok(self.map_host_as(set, host, site, number)?)
    }

    fn unmap_host(&self, set: u32, host: &str) -> anyhow::Result<()> {
        FastPath::unmap_host(self, set, host)?;
        Ok(())
    }
}
