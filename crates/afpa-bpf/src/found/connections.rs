//! The TCP connections of this network namespace, as /proc lists them.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use afpa_abi::FlowKey;

/// Keys of the connections that have a socket which may still send or receive.
pub(super) fn open() -> io::Result<Vec<[u8; size_of::<FlowKey>()]>> {
    let mut all = read(&fs::read_to_string("/proc/thread-self/net/tcp")?);
    match fs::read_to_string("/proc/thread-self/net/tcp6") {
        Ok(text) => all.extend(read(&text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {} // the kernel has no IPv6
        Err(error) => return Err(error),
    }
    Ok(all)
}

/// Addresses and inodes of the sockets that listen.
pub(crate) fn listening() -> Vec<(SocketAddr, u64)> {
    let files = ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"];
    let texts = files.iter().filter_map(|file| fs::read_to_string(file).ok());
    texts.flat_map(|text| read_listening(&text)).collect()
}

fn read_listening(text: &str) -> Vec<(SocketAddr, u64)> {
    let sockets = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let listens = *words.get(3)? == "0A";
        Some((address(words.get(1)?)?, words.get(9)?.parse().ok()?)).filter(|_| listens)
    });
    sockets.collect()
}

/// `TCP_TIME_WAIT`, `TCP_CLOSE`, `TCP_LISTEN`
const WITHOUT_CONNECTION: [u8; 3] = [6, 7, 10];

fn read(text: &str) -> Vec<[u8; size_of::<FlowKey>()]> {
    let keys = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (local, remote) = (address(words.next()?)?, address(words.next()?)?);
        let state = u8::from_str_radix(words.next()?, 16).ok()?;
        let open = !WITHOUT_CONNECTION.contains(&state);
        open.then(|| FlowKey::new(remote, local).to_bytes())
    });
    keys.collect()
}

/// An address in words of the machine's byte order, a colon, and the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::new();
    for at in (0..ip.len()).step_by(8) {
        bytes.extend(u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    }
    let ip: IpAddr = match bytes.len() {
        4 => Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).into(),
        16 => Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn connections_are_found_and_listeners_are_not() {
        for local in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(local) else {
                println!("SKIP {local}: no such address");
                continue;
            };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (server, _) = listener.accept().unwrap();
            let key = FlowKey::new(client.local_addr().unwrap(), server.local_addr().unwrap());
            assert!(open().unwrap().contains(&key.to_bytes()), "{local}");
            let here = listener.local_addr().unwrap();
            assert_eq!(listening().iter().filter(|(address, _)| *address == here).count(), 1);
            let port = listener.local_addr().unwrap().port();
            let none = FlowKey::new(
                "0.0.0.0:0".parse().unwrap(),
                SocketAddr::new(server.local_addr().unwrap().ip(), port),
            );
            assert!(!open().unwrap().contains(&none.to_bytes()), "{local}");
        }
    }

    #[test]
    fn broken_lines_are_left_out() {
        let head = "  sl  local_address rem_address   st tx_queue\n";
        for line in [
            "",
            "0: 0100007F:1F90",
            "0: 0100007F:1F90 xx:yy 01",
            "0: 01:1F90 02:0001 01",
            "0: \u{e9}100007F:1F90 0100007F:0001 01",
        ] {
            assert!(read(&format!("{head}{line}\n")).is_empty(), "{line:?}");
        }
        assert_eq!(read("0: 0100007F:1F90 0100007F:0001 01 0\n").len(), 1);
    }
}
