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
        if let Some(remedy) = as_address(text) {
            return Unfit::new(format!("\"{text}\" is not the address of a server"), remedy);
        }
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

/// The remedy where the text is an address as other servers write it: a URL, a port, the path of a socket.
fn as_address(text: &str) -> Option<String> {
    let fits = |address: &str| address.parse::<ServerAddress>().is_ok();
    let socket = text.strip_prefix("unix/").unwrap_or(text);
    if socket.starts_with('/') {
        let address = format!("unix:{socket}");
        return fits(&address).then(|| format!("write \"{address}\""));
    }
    let port = text.strip_prefix(':').unwrap_or(text);
    if port.bytes().all(|byte| byte.is_ascii_digit()) {
        let address = format!("127.0.0.1:{port}");
        return fits(&address).then(|| format!("write \"{address}\""));
    }
    let (scheme, rest) = text.split_once("://")?;
    let own_port = match scheme {
        "http" | "h2c" | "grpc" | "fastcgi" => 80,
        "https" | "grpcs" => 443,
        _ => return None,
    };
    let (host, path) = rest.split_at_checked(rest.find('/').unwrap_or(rest.len()))?;
    let with_port = || format!("{host}:{own_port}");
    let address = if fits(host) { host.to_owned() } else { with_port() };
    if !fits(&address) {
        return None;
    }
    let mut remedy = match own_port {
        443 => format!(
            "write a [[server_group]] with servers = [\"{address}\"] and tls = true, and its name here"
        ),
        _ => format!("write \"{address}\""),
    };
    if path.len() > 1 {
        remedy.push_str(&format!(", and its path as rewrite = \"{path}\" of a [[site.path]]"));
    }
    Some(remedy)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_as_others_write_it_is_told_as_it_is_written_here() {
        for (text, remedy) in [
            ("http://127.0.0.1:3000", "write \"127.0.0.1:3000\""),
            ("http://app.example", "write \"app.example:80\""),
            ("http://app:1/a/", "write \"app:1\", and its path as rewrite = \"/a/\""),
            ("https://app.example/", "servers = [\"app.example:443\"] and tls = true"),
            (":3000", "write \"127.0.0.1:3000\""),
            ("/run/php/php-fpm.sock", "write \"unix:/run/php/php-fpm.sock\""),
            ("unix//run/php-fpm.sock", "write \"unix:/run/php-fpm.sock\""),
            ("http://", "write"),
            ("ftp://a", "write"),
            (":70000", "1 to 65535"),
        ] {
            let Unfit { cause, remedy: said } = server_address(text).expect_err(text);
            assert!(said.contains(remedy), "{text}: {cause}: {said}");
        }
    }
}
