//! Proxies and servers of a rush: many clients, over a network, before servers that keep connections or close them.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Result, bail};

use super::installed::Origin;
use super::running::Launch;
use super::{Programs, Running, ServerSetup, files, installed, template};

/// Names of the proxies.
pub(crate) const RUSHED: [&str; 5] =
    ["afpa", "haproxy", "nginx", "haproxy-debian13", "nginx-debian13"];
/// Servers that keep connections, and as many that close them.
const SERVERS: u16 = 8;
/// Length of an answer's content.
const CONTENT: usize = 102;
/// A fifth of the content below [`LONGER`].
const PIECE: usize = 2048;
/// The path of longer content, at the servers that keep connections.
pub(crate) const LONGER: &str = "10k";
/// Where the first server listens; the others listen on the next ports.
const FIRST: u16 = 9000;
/// Where a proxy listens: for one server that keeps, eight that keep, one that closes, eight that close.
const LISTEN: u16 = 8000;

/// The address of a proxy for so many servers, and whether they close.
pub(crate) fn address(proxy: IpAddr, servers: u16, closes: bool) -> SocketAddr {
    let several = u16::from(servers > 1);
    SocketAddr::new(proxy, LISTEN + several + 2 * u16::from(closes))
}

/// The first and the last port of the servers.
pub(crate) fn server_ports() -> (u16, u16) {
    (FIRST, FIRST + 2 * SERVERS - 1)
}

/// The reason why the proxy of this name cannot run here; `None` if it can.
pub(crate) fn lacks(name: &str, programs: &Programs) -> Option<String> {
    match name {
        "afpa" => super::afpa::lacks(&programs.afpa),
        name if RUSHED.contains(&name) => {
            let (program, origin) = Origin::of(name);
            origin.lacks(program, program)
        }
        _ => Some(format!("no proxy '{name}'; there are: {}", RUSHED.join(", "))),
    }
}

/// The version of a program, as the program prints it.
pub(crate) fn version(name: &str, programs: &Programs) -> String {
    match name {
        "afpa" => installed::version(&programs.afpa, "--version"),
        _ => {
            let (program, origin) = Origin::of(name);
            origin.version(program, "-v")
        }
    }
}

/// Starts the proxy of this name where the caller is.
pub(crate) fn start_proxy<'a>(
    name: &str,
    setup: &ServerSetup<'a>,
    servers: IpAddr,
    programs: &Programs,
) -> Result<Running<'a>> {
    let (program, origin) = Origin::of(name);
    let (file, text) = match program {
        "afpa" => ("afpa.toml", include_str!("../../../servers/rush-afpa.toml")),
        "haproxy" => ("haproxy.cfg", include_str!("../../../servers/rush-haproxy.cfg")),
        "nginx" => ("nginx.conf", include_str!("../../../servers/rush-nginx.conf")),
        _ => bail!("no proxy '{name}'"),
    };
    let text = origin.configuration(&filled(program, text, setup.address.ip(), servers));
    let file = template::write(setup, file, &text)?;
    let launch = match program {
        "afpa" => Launch::new(&programs.afpa)
            .args(["serve", "--config"])
            .arg(&file)
            .arg("--control")
            .arg(setup.folder.join("control.sock"))
            .args(["--fast-path", "off"]),
        "haproxy" => Launch::of(origin, program)?.args(["-db", "-f"]).arg(&file),
        _ => files::nginx(Launch::of(origin, program)?, setup.folder, &file),
    };
    let listens = address(setup.address.ip(), SERVERS, true);
    Running::nothing(setup).with_configuration(file).and(setup, launch, listens)
}

/// Starts the servers.
pub(crate) fn start_servers<'a>(setup: &ServerSetup<'a>) -> Result<Running<'a>> {
    let listens = |first: u16| -> String {
        let ports = first..first + SERVERS;
        let of = |port| format!("        listen  {}:{port} backlog=16384;\n", setup.address.ip());
        ports.map(of).collect()
    };
    let text = include_str!("../../../servers/rush-servers.conf")
        .replace("@keeping@", &listens(FIRST))
        .replace("@closing@", &listens(FIRST + SERVERS))
        .replace("@content@", &"x".repeat(CONTENT))
        .replace("@piece@", &"x".repeat(PIECE));
    let file = template::write(setup, "servers.conf", &text)?;
    let launch = files::nginx(Launch::of(Origin::Here, "nginx")?, setup.folder, &file);
    let last = SocketAddr::new(setup.address.ip(), server_ports().1);
    Running::nothing(setup).with_configuration(file).and(setup, launch, last)
}

/// A configuration with the addresses of both sides.
fn filled(program: &str, text: &str, proxy: IpAddr, servers: IpAddr) -> String {
    let at = |number: u16| SocketAddr::new(servers, FIRST + number);
    let each = |first: u16| -> String {
        let numbers = first..first + SERVERS;
        match program {
            "afpa" => {
                let of = |number| format!("{{ to = \"{}\", max_connections = 40000 }}", at(number));
                numbers.map(of).collect::<Vec<_>>().join(", ")
            }
            "haproxy" => numbers
                .map(|number| format!("    server server{number} {}\n", at(number)))
                .collect(),
            _ => numbers
                .map(|number| format!("        server              {};\n", at(number)))
                .collect(),
        }
    };
    let all: Vec<SocketAddr> = (0..2 * SERVERS).map(at).collect();
    let text = text.replace("@eight_keep@", &each(0)).replace("@eight_close@", &each(SERVERS));
    let listens = [(1, false), (8, false), (1, true), (8, true)];
    let listens = listens.into_iter().enumerate().fold(text, |text, (number, (count, closes))| {
        text.replace(&format!("@listen{number}@"), &address(proxy, count, closes).to_string())
    });
    template::with_backends(&listens, &all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_is_filled_in() {
        let [proxy, servers] = ["10.0.0.1", "10.0.0.2"].map(|ip| ip.parse().unwrap());
        for (name, text) in [
            ("afpa", include_str!("../../../servers/rush-afpa.toml")),
            ("haproxy", include_str!("../../../servers/rush-haproxy.cfg")),
            ("nginx", include_str!("../../../servers/rush-nginx.conf")),
        ] {
            let filled = filled(name, text, proxy, servers);
            for part in ["10.0.0.1:8000", "10.0.0.1:8003", "10.0.0.2:9000", "10.0.0.2:9015"] {
                assert!(filled.contains(part), "{name} has no {part}");
            }
            let kept = filled.lines().filter(|line| !line.starts_with('#'));
            let left: Vec<&str> =
                kept.filter(|line| line.contains("@server") || line.contains("@eight")).collect();
            assert!(left.is_empty(), "{name}: {left:?}");
        }
    }

    #[test]
    fn each_of_the_four_has_an_address() {
        let ip = "10.0.0.1".parse().unwrap();
        let ports = [(1, false), (8, false), (1, true), (8, true)]
            .map(|(servers, closes)| address(ip, servers, closes).port());
        assert_eq!(ports, [8000, 8001, 8002, 8003]);
    }
}
