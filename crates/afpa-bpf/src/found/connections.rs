//! The TCP connections of this network namespace, as /proc lists them.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
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

/// Addresses and inodes of the sockets that listen in this network namespace. The kernel lists them before all other
/// sockets, so this reads little, however many connections there are.
///
/// # Errors
/// When /proc does not list them.
pub fn listening() -> io::Result<Vec<(SocketAddr, u64)>> {
    sockets(["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"], LISTEN)
}

/// The same of the sockets that anybody may send datagrams to.
///
/// # Errors
/// When /proc does not list them.
pub fn receiving() -> io::Result<Vec<(SocketAddr, u64)>> {
    sockets(["/proc/thread-self/net/udp", "/proc/thread-self/net/udp6"], UNCONNECTED)
}

/// The sockets of these tables that are in a state. Only the first ones are looked at of a table in which these come first.
fn sockets(tables: [&str; 2], state: &str) -> io::Result<Vec<(SocketAddr, u64)>> {
    let mut all = Vec::new();
    for table in tables {
        match File::open(table) {
            Ok(file) => read_sockets(BufReader::with_capacity(4096, file), state, &mut all)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {} // the kernel has no IPv6
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

fn read_sockets(
    table: impl BufRead,
    wanted: &str,
    all: &mut Vec<(SocketAddr, u64)>,
) -> io::Result<()> {
    for row in table.lines().skip(1) {
        let row = row?;
        let words: Vec<&str> = row.split_ascii_whitespace().collect();
        let (Some(local), Some(state), Some(inode)) = (words.get(1), words.get(3), words.get(9))
        else {
            continue;
        };
        match *state == wanted {
            true => all.extend(address(local).zip(inode.parse().ok())),
            false if wanted == LISTEN => break,
            false => {}
        }
    }
    Ok(())
}

/// `TCP_LISTEN`, as a row has it.
const LISTEN: &str = "0A";
/// `TCP_CLOSE`: a socket of UDP that is not connected.
const UNCONNECTED: &str = "07";

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
            let listens = listening().unwrap();
            assert_eq!(listens.iter().filter(|(address, _)| *address == here).count(), 1);
            let port = listener.local_addr().unwrap().port();
            let none = FlowKey::new(
                "0.0.0.0:0".parse().unwrap(),
                SocketAddr::new(server.local_addr().unwrap().ip(), port),
            );
            assert!(!open().unwrap().contains(&none.to_bytes()), "{local}");
        }
    }

    /// The kernel lists listening sockets first; a table of a hundred thousand connections is not read for them.
    #[test]
    fn the_rows_behind_those_that_listen_are_not_read() {
        let v4 = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4711 1 0\n";
        let v6 = "   1: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 12 1\n";
        let open = "   2: 0100007F:1F90 0100007F:0001 01 00000000:00000000 00:00000000 00000000 0 0 4712 1 0\n";
        let table = format!("head\n{v4}nonsense\n{v6}{open}{v4}");
        let mut rest = table.as_bytes();
        let mut all = Vec::new();
        read_sockets(&mut rest, LISTEN, &mut all).unwrap();
        if cfg!(target_endian = "little") {
            let right = [("127.0.0.1:8080", 4711), ("[::1]:80", 12)];
            assert_eq!(all, right.map(|(address, inode)| (address.parse().unwrap(), inode)));
        }
        assert_eq!(rest, v4.as_bytes(), "a row of a connection ends it");
    }

    #[test]
    fn sockets_for_datagrams_are_found_unless_they_are_connected() {
        let sockets = [(); 2].map(|()| std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
        let [open, connected] = &sockets;
        connected.connect("127.0.0.1:9").unwrap();
        let found = receiving().unwrap();
        let times = |socket: &std::net::UdpSocket| {
            let own = socket.local_addr().unwrap();
            found.iter().filter(|(address, _)| *address == own).count()
        };
        assert_eq!((times(open), times(connected)), (1, 0));
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
