//! Resolves host names of servers to addresses. It also learns their time to live, which the system's
//! `getaddrinfo` does not report. It is a crate of its own because the resolver is compiled for size, in contrast to some
//! crates that use it.
#![forbid(unsafe_code)]

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolverConfig,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;

/// How names are resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolveSettings {
    /// Name servers; those of `/etc/resolv.conf` when there are none here. At most 8.
    pub name_servers: Vec<SocketAddr>,
    /// How long one of them may take to answer; 50 ms to 1 min.
    pub timeout: Duration,
    /// How often a question is asked before a look-up fails; 1 to 10.
    pub attempts: u32,
    /// Lower bound of the time to live, even if the answer's is shorter; 100 ms to 1 h.
    pub least_ttl: Duration,
    /// Upper bound of the time to live; 1 s to 1 d.
    pub most_ttl: Duration,
    /// Pause after a look-up that failed. The old addresses stay until the next one succeeds; 100 ms to 1 h.
    pub retry: Duration,
}

impl Default for ResolveSettings {
    fn default() -> Self {
        Self {
            name_servers: Vec::new(),
            timeout: Duration::from_secs(2),
            // A datagram is lost now and then; a name server that loses two does not work.
            attempts: 2,
            // A time to live of 0 would mean a question for each request.
            least_ttl: Duration::from_secs(1),
            most_ttl: Duration::from_secs(3600),
            // The old addresses are in use meanwhile.
            retry: Duration::from_secs(5),
        }
    }
}

/// Addresses of a name, and their time to live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// In no order; at least one.
    pub addresses: Vec<IpAddr>,
    /// Within the bounds of the settings.
    pub ttl: Duration,
}

/// Why a name has no addresses: the name server's answer, or that none answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// NXDOMAIN (RFC 1035 section 4.1.1).
    #[error("there is no such name: correct it, or add it to the DNS or to /etc/hosts")]
    NoSuchName,
    /// The name is there, but has neither A nor AAAA records.
    #[error("the name has no address: it needs an A or AAAA record")]
    NoAddress,
    /// Another response code.
    #[error("the name server answered \"{0}\"")]
    Refused(String),
    /// No answer in time.
    #[error("no name server answered in time: are those of [resolver] or /etc/resolv.conf right?")]
    Silent,
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl From<NetError> for ResolveError {
    fn from(error: NetError) -> Self {
        match error {
            error if error.is_nx_domain() => Self::NoSuchName,
            NetError::Dns(DnsError::NoRecordsFound(found)) => match found.response_code {
                ResponseCode::NoError => Self::NoAddress,
                code => Self::Refused(code.to_string()),
            },
            NetError::Dns(DnsError::ResponseCode(code)) => Self::Refused(code.to_string()),
            NetError::Timeout | NetError::NoConnections => Self::Silent,
            other => Self::Other(other.to_string()),
        }
    }
}

/// Looks up the addresses of `host`: in `/etc/hosts`, or else as the settings say. The system's
/// files are read each time, so that their changes count.
///
/// # Errors
/// When no name server answers, or the answer has no addresses.
pub fn resolve<'a>(host: &'a str, settings: &'a ResolveSettings) -> Answer<'a> {
    Box::pin(look_up(host, settings))
}

/// The answer to come. Boxed, so that the resolver is in the program once, and not again in each crate that asks it.
pub type Answer<'a> = Pin<Box<dyn Future<Output = Result<Resolved, ResolveError>> + Send + 'a>>;

async fn look_up(host: &str, settings: &ResolveSettings) -> Result<Resolved, ResolveError> {
    // Names are complete: a search list would append domains to them.
    let name = format!("{}.", host.strip_suffix('.').unwrap_or(host));
    let found = resolver(settings)?.lookup_ip(name.as_str()).await?;
    let least = found.as_lookup().answers().iter().map(|record| record.ttl).min();
    let ttl = Duration::from_secs(u64::from(least.unwrap_or(0)));
    let ttl = ttl.min(settings.most_ttl).max(settings.least_ttl);
    Ok(Resolved { addresses: found.iter().collect(), ttl })
}

fn resolver(settings: &ResolveSettings) -> Result<TokioResolver, NetError> {
    let mut builder = if settings.name_servers.is_empty() {
        TokioResolver::builder_tokio()?
    } else {
        let servers = settings.name_servers.iter().take(8).map(|server| name_server(*server));
        let config = ResolverConfig::from_parts(None, Vec::new(), servers.collect());
        TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
    };
    let options = builder.options_mut();
    options.timeout = settings.timeout;
    options.attempts = usize::try_from(settings.attempts.saturating_sub(1)).unwrap_or(0);
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    // No cache: each look-up asks for the present addresses.
    options.cache_size = 0;
    builder.build()
}

fn name_server(address: SocketAddr) -> NameServerConfig {
    let mut server = NameServerConfig::udp_and_tcp(address.ip());
    server.connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()]
        .map(|mut connection| {
            connection.port = address.port();
            connection
        })
        .into();
    server
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_name_server_says_is_told_in_words() {
        let refused = DnsError::ResponseCode(ResponseCode::ServFail);
        for (error, expected) in [
            (NetError::Timeout, ResolveError::Silent),
            (NetError::NoConnections, ResolveError::Silent),
            (refused.into(), ResolveError::Refused(ResponseCode::ServFail.to_string())),
        ] {
            assert_eq!(ResolveError::from(error), expected);
        }
        assert!(ResolveError::NoSuchName.to_string().starts_with("there is no such name"));
    }
}
