//! The PROXY protocol, versions 1 and 2: a header in which a router in front names the client, before the
//! client's first byte (the specification is haproxy.org's `proxy-protocol.txt`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The contents of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preface {
    /// Nothing about a client: the connection is the router's own, or the client has no IP address.
    Local,
    /// The connection is forwarded for this client.
    Client(SocketAddr),
}

/// The input is not a header of the PROXY protocol, or its end is not certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenPreface;

/// How a header is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefaceVersion {
    /// As a line of text (section 2.1).
    V1,
    /// In binary (section 2.2).
    V2,
}

/// A header that names `client`, which came to `address`; without them, one that names nobody. Both are of one family.
pub fn written(version: PrefaceVersion, way: Option<(SocketAddr, SocketAddr)>) -> Vec<u8> {
    match version {
        PrefaceVersion::V1 => line(way).into_bytes(),
        PrefaceVersion::V2 => binary(way),
    }
}

fn line(way: Option<(SocketAddr, SocketAddr)>) -> String {
    let Some((from, to)) = way else { return "PROXY UNKNOWN\r\n".to_owned() };
    let family = if from.is_ipv4() { "TCP4" } else { "TCP6" };
    format!("PROXY {family} {} {} {} {}\r\n", from.ip(), to.ip(), from.port(), to.port())
}

fn binary(way: Option<(SocketAddr, SocketAddr)>) -> Vec<u8> {
    let mut addresses = Vec::with_capacity(36);
    let family = match way {
        None => 0x00,
        Some((from, to)) => {
            for address in [from.ip(), to.ip()] {
                match address {
                    IpAddr::V4(v4) => addresses.extend_from_slice(&v4.octets()),
                    IpAddr::V6(v6) => addresses.extend_from_slice(&v6.octets()),
                }
            }
            for end in [from, to] {
                addresses.extend_from_slice(&end.port().to_be_bytes());
            }
            if from.is_ipv4() { 0x11 } else { 0x21 }
        }
    };
    let command = if way.is_some() { 0x21 } else { 0x20 };
    let length = (addresses.len() as u16).to_be_bytes();
    [&SIGNATURE[..], &[command, family], &length, &addresses].concat()
}

/// The longest header that is read, additions of version 2 included.
pub const MAX_PREFACE: usize = 2048;

/// Version 1 fits into so many bytes with its line end (section 2.1).
const MAX_LINE: usize = 107;

const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// Reads a header from the front of `input`. Returns it and its length; `Ok(None)` if the header is incomplete
/// so far.
///
/// # Errors
/// [`BrokenPreface`] as soon as the input cannot become a header.
pub fn parse(input: &[u8]) -> Result<Option<(Preface, usize)>, BrokenPreface> {
    match input.first() {
        None => Ok(None),
        Some(b'P') => version_1(input),
        Some(_) => version_2(input),
    }
}

fn version_1(input: &[u8]) -> Result<Option<(Preface, usize)>, BrokenPreface> {
    let start = b"PROXY ";
    let known = start.len().min(input.len());
    if input.get(..known) != start.get(..known) {
        return Err(BrokenPreface);
    }
    let line = input.get(..MAX_LINE.min(input.len())).unwrap_or_default();
    let end = line.windows(2).position(|pair| pair == b"\r\n");
    // The text before the line end, of which only the CR may have arrived.
    let before = end.and_then(|end| line.get(..end));
    let before = before.unwrap_or_else(|| line.strip_suffix(b"\r").unwrap_or(line));
    if before.iter().any(|byte| !matches!(byte, b' '..=b'~')) {
        return Err(BrokenPreface);
    }
    let Some(end) = end else {
        return if input.len() >= MAX_LINE { Err(BrokenPreface) } else { Ok(None) };
    };
    let text = line.get(start.len()..end).and_then(|text| str::from_utf8(text).ok());
    let preface = words(text.ok_or(BrokenPreface)?)?;
    Ok(Some((preface, end + 2)))
}

/// Reads the words behind `PROXY `.
fn words(text: &str) -> Result<Preface, BrokenPreface> {
    let mut words = text.split(' ');
    let family = words.next().unwrap_or_default();
    if family == "UNKNOWN" {
        return Ok(Preface::Local);
    }
    let mut next = || words.next().ok_or(BrokenPreface);
    let (source, _destination, port, to) = (next()?, next()?, next()?, next()?);
    if words.next().is_some() {
        return Err(BrokenPreface);
    }
    let address: IpAddr = source.parse().map_err(|_| BrokenPreface)?;
    if (family, address.is_ipv4()) != ("TCP4", true)
        && (family, address.is_ipv4()) != ("TCP6", false)
    {
        return Err(BrokenPreface);
    }
    number(to)?;
    Ok(Preface::Client(SocketAddr::new(address.to_canonical(), number(port)?)))
}

/// A port without sign or leading zeros.
fn number(digits: &str) -> Result<u16, BrokenPreface> {
    let port: u16 = digits.parse().map_err(|_| BrokenPreface)?;
    if port.to_string() == digits { Ok(port) } else { Err(BrokenPreface) }
}

fn version_2(input: &[u8]) -> Result<Option<(Preface, usize)>, BrokenPreface> {
    let known = SIGNATURE.len().min(input.len());
    if input.get(..known) != SIGNATURE.get(..known) {
        return Err(BrokenPreface);
    }
    let command = match input.get(12) {
        None => return Ok(None),
        Some(command @ (0x20 | 0x21)) => *command,
        Some(_) => return Err(BrokenPreface),
    };
    let Some(&[family, high, low]) = input.get(13..16) else { return Ok(None) };
    let end = 16 + usize::from(u16::from_be_bytes([high, low]));
    if end > MAX_PREFACE {
        return Err(BrokenPreface);
    }
    let Some(body) = input.get(16..end) else { return Ok(None) };
    // The addresses of a LOCAL command must be ignored (section 2.2).
    let preface = if command == 0x20 { Preface::Local } else { addresses(family, body)? };
    Ok(Some((preface, end)))
}

fn addresses(family: u8, body: &[u8]) -> Result<Preface, BrokenPreface> {
    match family {
        // TCP over IPv4: two addresses, two ports.
        0x11 => {
            let [a, b, c, d, _, _, _, _, high, low, ..] = *body.get(..12).ok_or(BrokenPreface)?
            else {
                return Err(BrokenPreface);
            };
            let address = IpAddr::V4(Ipv4Addr::new(a, b, c, d));
            Ok(Preface::Client(SocketAddr::new(address, u16::from_be_bytes([high, low]))))
        }
        // TCP over IPv6.
        0x21 => {
            let source = body.get(..16).and_then(|source| <[u8; 16]>::try_from(source).ok());
            let Some(&[high, low, _, _]) = body.get(32..36) else { return Err(BrokenPreface) };
            let address = IpAddr::V6(Ipv6Addr::from(source.ok_or(BrokenPreface)?)).to_canonical();
            Ok(Preface::Client(SocketAddr::new(address, u16::from_be_bytes([high, low]))))
        }
        // Unspecified, and unix sockets: the client has no IP address.
        0x00 | 0x31 => Ok(Preface::Local),
        _ => Err(BrokenPreface),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(text: &str) -> Preface {
        Preface::Client(text.parse().unwrap())
    }

    fn v2(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
        let length = u16::try_from(body.len()).unwrap().to_be_bytes();
        [&SIGNATURE[..], &[command, family], &length, body].concat()
    }

    #[test]
    fn version_1_names_the_client() {
        for (line, preface) in [
            ("PROXY TCP4 1.2.3.4 10.0.0.1 5000 80\r\n", client("1.2.3.4:5000")),
            ("PROXY TCP6 2001:db8::1 ::1 65535 443\r\n", client("[2001:db8::1]:65535")),
            ("PROXY UNKNOWN\r\n", Preface::Local),
            ("PROXY UNKNOWN ff::1 ff::2 1 2\r\n", Preface::Local),
        ] {
            let input = format!("{line}more bytes\r\n");
            assert_eq!(parse(input.as_bytes()), Ok(Some((preface, line.len()))), "{line}");
            for cut in 0..line.len() {
                assert_eq!(parse(&line.as_bytes()[..cut]), Ok(None), "{line} cut at {cut}");
            }
        }
    }

    #[test]
    fn version_2_names_the_client() {
        let four = [1, 2, 3, 4, 10, 0, 0, 1, 0x13, 0x88, 0, 80];
        let mut six = [0; 36];
        six[15] = 1;
        six[33] = 7;
        let with_additions = [&four[..], &[3, 0, 1, 0]].concat();
        for (header, preface) in [
            (v2(0x21, 0x11, &four), client("1.2.3.4:5000")),
            (v2(0x21, 0x11, &with_additions), client("1.2.3.4:5000")),
            (v2(0x21, 0x21, &six), client("[::1]:7")),
            (v2(0x20, 0x00, &[]), Preface::Local),
            (v2(0x20, 0x11, &[1]), Preface::Local),
            (v2(0x21, 0x31, &[0; 216]), Preface::Local),
        ] {
            assert_eq!(parse(&header), Ok(Some((preface, header.len()))));
            for cut in 0..header.len() {
                assert_eq!(parse(&header[..cut]), Ok(None), "cut at {cut}");
            }
        }
    }

    #[test]
    fn a_written_header_is_read_alike() {
        let way = |from: &str, to: &str| Some((from.parse().unwrap(), to.parse().unwrap()));
        for (way, preface, text) in [
            (None, Preface::Local, "PROXY UNKNOWN\r\n"),
            (
                way("1.2.3.4:5000", "10.0.0.1:80"),
                client("1.2.3.4:5000"),
                "PROXY TCP4 1.2.3.4 10.0.0.1 5000 80\r\n",
            ),
            (
                way("[2001:db8::1]:65535", "[::1]:443"),
                client("[2001:db8::1]:65535"),
                "PROXY TCP6 2001:db8::1 ::1 65535 443\r\n",
            ),
        ] {
            assert_eq!(written(PrefaceVersion::V1, way), text.as_bytes());
            for version in [PrefaceVersion::V1, PrefaceVersion::V2] {
                let header = written(version, way);
                assert_eq!(parse(&header), Ok(Some((preface, header.len()))), "{version:?}");
            }
        }
        let header = written(PrefaceVersion::V2, way("1.2.3.4:5000", "10.0.0.1:80"));
        assert_eq!(header, v2(0x21, 0x11, &[1, 2, 3, 4, 10, 0, 0, 1, 0x13, 0x88, 0, 80]));
    }

    #[test]
    fn what_is_none_is_refused_as_soon_as_it_shows() {
        for input in [
            &b"no header\r\n"[..],
            b"POST",
            b"PROXY\t",
            b"PROXY TCP4 1.2.3.4 10.0.0.1 5000\r\n",
            b"PROXY TCP4 1.2.3.4 10.0.0.1 5000 80 90\r\n",
            b"PROXY TCP4 ::1 ::1 1 2\r\n",
            b"PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n",
            b"PROXY TCP4 1.2.3.4 10.0.0.1 05000 80\r\n",
            b"PROXY TCP4 1.2.3.4 10.0.0.1 65536 80\r\n",
            b"PROXY TCP4 1.2.3.4 10.0.0.1 -1 80\r\n",
            b"PROXY UNKNOWN\n",
            b"PROXY UNKNOWN a\nb\r\n",
            b"PROXY \r\r",
            b"\r\n\r\n\0\r\nQUIT\r",
            b"\r\n\r\n\0\r\nQUIT\n\x11",
            b"\r\n\r\n\0\r\nQUIT\n\x22",
            b"\r\n\r\n\0\r\nQUIT\n\x21\x11\xff\xff",
            b"\r\n\r\n\0\r\nQUIT\n\x21\x12\0\0",
            b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x01a",
        ] {
            assert_eq!(parse(input), Err(BrokenPreface), "{}", input.escape_ascii());
        }
        let endless = [&b"PROXY "[..], &[b'A'; 200]].concat();
        assert_eq!(parse(&endless), Err(BrokenPreface));
        assert_eq!(parse(&endless[..MAX_LINE - 1]), Ok(None));
    }
}
