//! `afpa check --probe`: whether the servers of a configuration take connections now.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use afpa_config::Config;
use afpa_names::resolve;
use afpa_proxy::select::ServerAddress;
use afpa_server::Address;
use anyhow::Context as _;

/// How long a connection may take. A health check of most groups is not more patient.
const PATIENCE: Duration = Duration::from_secs(2);

/// The outcome of the connections to all servers.
pub(super) struct Probed {
    /// A line for each server.
    pub(super) text: String,
    pub(super) servers: usize,
    pub(super) silent: usize,
}

/// Connects to each server once, and says nothing to it. Each address of a name counts.
///
/// # Errors
/// When names cannot be looked up at all.
pub(super) fn probe(config: &Config) -> anyhow::Result<Probed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("names cannot be looked up")?;
    let mut probed = Probed { text: String::new(), servers: 0, silent: 0 };
    for group in &config.groups {
        for server in &group.settings.servers {
            let found: Result<Vec<Address>, String> = match &server.to {
                ServerAddress::Fixed(address) => Ok(vec![address.clone()]),
                ServerAddress::Name { host, port } => runtime
                    .block_on(resolve(host, &config.resolver))
                    .map(|found| {
                        let addresses = found.addresses.into_iter();
                        addresses.map(|ip| Address::Tcp(SocketAddr::new(ip, *port))).collect()
                    })
                    .map_err(|error| error.to_string()),
            };
            let outcome = found.and_then(|addresses| addresses.iter().try_for_each(connect));
            probed.servers += 1;
            probed.silent += usize::from(outcome.is_err());
            let outcome = outcome.err().unwrap_or_else(|| "takes connections".to_owned());
            let name = &group.settings.name;
            probed.text.push_str(&format!("server {} of {name}: {outcome}\n", server.to));
        }
    }
    Ok(probed)
}

fn connect(address: &Address) -> Result<(), String> {
    let connected = match address {
        Address::Tcp(address) => TcpStream::connect_timeout(address, PATIENCE).map(drop),
        Address::Unix(path) => UnixStream::connect(path).map(drop),
    };
    connected.map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused => format!("nobody listens on {address}: start it"),
        io::ErrorKind::NotFound => format!("there is no {address}: start it, or correct the path"),
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
            format!("{address} does not answer within {PATIENCE:?}: is a firewall in between?")
        }
        _ => format!("{address}: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_an_address_is_told_with_its_remedy() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(connect(&Address::Tcp(address)), Ok(()));
        drop(listener);
        let refused = format!("nobody listens on {address}: start it");
        assert_eq!(connect(&Address::Tcp(address)), Err(refused));
        let missing = connect(&Address::Unix("/nowhere/app.sock".into())).unwrap_err();
        assert!(missing.starts_with("there is no unix:/nowhere/app.sock"), "{missing}");
    }
}
