//! Which texts are addresses of servers.

use std::net::IpAddr;

use afpa_proxy::select::{ServerAddress, ServerAddressError};

use crate::units::Unfit;

/// Addresses of servers, with commas between them.
pub(crate) fn server_addresses(text: &str) -> Result<Vec<ServerAddress>, Unfit> {
    let mut addresses: Vec<ServerAddress> = Vec::new();
    for text in text.split(',') {
        let address = server_address(text.trim())?;
        if addresses.contains(&address) {
            return Err(Unfit::new(format!("{address} is there twice"), "remove one of the two"));
        }
        addresses.push(address);
    }
    Ok(addresses)
}

/// The address of a server.
pub(crate) fn server_address(text: &str) -> Result<ServerAddress, Unfit> {
    text.parse().map_err(|error| {
        let (cause, remedy) = match error {
            ServerAddressError::Form => (
                format!("\"{text}\" is not the address of a server"),
                "write \"127.0.0.1:3000\", \"app.example:8080\" or \"unix:/run/app.sock\"",
            ),
            ServerAddressError::Path => (
                format!("\"{text}\" is not the path of a unix socket"),
                "write the whole path, in at most 107 bytes: \"unix:/run/app.sock\"",
            ),
            ServerAddressError::Port => {
                (format!("\"{text}\" has no port that exists"), "use a port from 1 to 65535")
            }
            ServerAddressError::Host => (
                format!("\"{text}\" has no host name"),
                "write a name and a port, without a scheme: \"app.example:8080\"",
            ),
        };
        Unfit::new(cause, remedy)
    })
}
/// An address of this machine, for connections to servers.
pub(crate) fn source_address(text: &str) -> Result<IpAddr, Unfit> {
    let remedy = "write an address of this machine without a port, for example \"10.0.0.5\"";
    match text.parse::<IpAddr>() {
        Ok(address) if address.is_unspecified() || address.is_multicast() => {
            Err(Unfit::new("no connection can come from this address", remedy))
        }
        Ok(address) => Ok(address),
        Err(_) => Err(Unfit::new("this is no IP address", remedy)),
    }
}
