//! Sizes, shares, durations and listen addresses as text: read from settings and options, shown
//! in tables.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// 1024 bytes.
pub const KIB: usize = 1 << 10;
/// 1024 KiB.
pub const MIB: usize = 1 << 20;
/// 1024 MiB.
pub const GIB: usize = 1 << 30;

/// Why a text is not a value, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// The fault of the text.
    pub cause: String,
    /// The text to write instead; empty if the cause says so already.
    pub remedy: String,
}

impl Unfit {
    pub(crate) fn new(cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Unfit { cause: cause.into(), remedy: remedy.into() }
    }
}

/// Reads a size in bytes: a number and one of `B`, `KiB`, `MiB`, `GiB`, `TiB`.
pub(crate) fn parse_size(text: &str) -> Result<usize, Unfit> {
    let (number, unit) = split_number(text);
    let unit_bytes = match unit {
        "B" => 1,
        "KiB" => KIB,
        "MiB" => MIB,
        "GiB" => GIB,
        "TiB" => 1 << 40,
        _ => return Err(not_a_size(text, number, unit)),
    };
    let number: usize = number.parse().map_err(|_| not_a_size(text, number, unit))?;
    number
        .checked_mul(unit_bytes)
        .ok_or_else(|| Unfit::new(format!("\"{text}\" is more than 64 bits of bytes"), ""))
}

/// The shortest exact form that [`parse_size`] reads.
pub(crate) fn show_size(bytes: usize) -> String {
    let units = [(1 << 40, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")];
    let exact = units.iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit));
    exact.map_or(format!("{bytes}B"), |(unit, name)| format!("{}{name}", bytes / unit))
}

/// A rounded size for people: `5.8 GiB`.
pub fn human_size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = units[0];
    for next in &units[1..] {
        if value < 1023.95 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    format!("{value:.1} {unit}")
}

/// A size, or a share of something larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// So many bytes.
    Bytes(usize),
    /// So many per cent, 1 to 100.
    Percent(u8),
}

impl Amount {
    /// The number of bytes, if the whole has `whole` bytes.
    pub fn of(self, whole: usize) -> usize {
        match self {
            Amount::Bytes(bytes) => bytes,
            // Divided first: the error is below 100 bytes, and the product cannot overflow.
            Amount::Percent(percent) => whole / 100 * usize::from(percent),
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Bytes(bytes) => f.write_str(&show_size(*bytes)),
            Amount::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

/// Reads an [`Amount`].
pub(crate) fn parse_amount(text: &str) -> Result<Amount, Unfit> {
    let Some(percent) = text.strip_suffix('%') else { return parse_size(text).map(Amount::Bytes) };
    match percent.parse() {
        Ok(percent @ 1..=100) => Ok(Amount::Percent(percent)),
        _ => Err(Unfit::new(
            format!("\"{text}\" is not a share"),
            "write a whole number from 1% to 100%, or a size such as \"2GiB\"",
        )),
    }
}

/// Reads a duration: a number and one of `ms`, `s`, `m`, `h`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, Unfit> {
    let (number, unit) = split_number(text);
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => 0,
    };
    let milliseconds = number.parse::<u64>().ok().and_then(|n| n.checked_mul(unit_ms));
    match milliseconds {
        Some(milliseconds) if unit_ms != 0 => Ok(Duration::from_millis(milliseconds)),
        _ => Err(Unfit::new(
            format!("\"{text}\" is not a duration"),
            "write a number and a unit of ms, s, m or h: \"500ms\", \"10s\", \"5m\"",
        )),
    }
}

/// The shortest exact form that [`parse_duration`] reads.
pub(crate) fn show_duration(duration: Duration) -> String {
    let milliseconds = duration.as_millis();
    let units = [(3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    let exact =
        units.iter().find(|(unit, _)| milliseconds >= *unit && milliseconds.is_multiple_of(*unit));
    match exact {
        Some((unit, name)) => format!("{}{name}", milliseconds / unit),
        None if milliseconds == 0 => "0s".to_owned(),
        None => format!("{milliseconds}ms"),
    }
}

/// Where connections are accepted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Listen {
    /// A TCP address and port, for example `127.0.0.1:8080` or `[::]:80`.
    Tcp(SocketAddr),
    /// A unix stream socket, written `unix:/path`.
    Unix(PathBuf),
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listen::Tcp(address) => address.fmt(f),
            Listen::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl FromStr for Listen {
    type Err = Unfit;

    fn from_str(text: &str) -> Result<Self, Unfit> {
        match text.strip_prefix("unix:") {
            Some(path) => unix_path(path).map(Listen::Unix),
            None => text.parse().map(Listen::Tcp).map_err(|_| not_an_address(text)),
        }
    }
}

/// `sockaddr_un` holds 108 bytes, the last of them a NUL (unix(7)).
const UNIX_PATH_LIMIT: usize = 107;

fn unix_path(path: &str) -> Result<PathBuf, Unfit> {
    if !path.starts_with('/') {
        let cause = format!("\"unix:{path}\" has a relative path");
        return Err(Unfit::new(cause, "write the whole path: \"unix:/run/afpa/http.sock\""));
    }
    if path.len() > UNIX_PATH_LIMIT {
        let cause = format!("the socket's path has {} bytes", path.len());
        return Err(Unfit::new(cause, format!("the system allows {UNIX_PATH_LIMIT}: shorten it")));
    }
    Ok(PathBuf::from(path))
}

fn not_an_address(text: &str) -> Unfit {
    if let Ok(address) = text.parse::<std::net::IpAddr>() {
        let remedy = format!("did you mean \"{}\"?", SocketAddr::new(address, 80));
        return Unfit::new(format!("\"{text}\" has no port"), remedy);
    }
    let port = text.trim_start_matches(['*', ':']);
    if port.parse::<u16>().is_ok() {
        return Unfit::new(
            format!("\"{text}\" has no address"),
            format!(
                "did you mean \"127.0.0.1:{port}\" (this machine only) or \"0.0.0.0:{port}\" (everyone)?"
            ),
        );
    }
    Unfit::new(
        format!("\"{text}\" is not a listen address (names are not looked up)"),
        "write an IP address with a port, \"127.0.0.1:8080\" or \"[::]:80\", or \"unix:/path\"",
    )
}

fn not_a_size(text: &str, number: &str, unit: &str) -> Unfit {
    let cause = format!("\"{text}\" is not a size");
    let meant = match unit.to_ascii_lowercase().as_str() {
        "k" | "kb" | "kib" => "KiB",
        "m" | "mb" | "mib" => "MiB",
        "g" | "gb" | "gib" => "GiB",
        "t" | "tb" | "tib" => "TiB",
        "" | "b" => "B",
        _ => return Unfit::new(cause, "write a number and a unit: \"512B\", \"64KiB\", \"2GiB\""),
    };
    if number.is_empty() {
        return Unfit::new(cause, "write a number and a unit: \"512B\", \"64KiB\", \"2GiB\"");
    }
    Unfit::new(cause, format!("did you mean \"{number}{meant}\"?"))
}

fn split_number(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_round_trip_and_name_what_was_meant() {
        for (text, bytes) in [("0B", 0), ("512B", 512), ("64KiB", 65_536), ("3GiB", 3 << 30)] {
            assert_eq!(parse_size(text), Ok(bytes));
            assert_eq!(show_size(bytes), text);
        }
        assert_eq!(parse_size("64kb").unwrap_err().remedy, "did you mean \"64KiB\"?");
        assert_eq!(parse_size("12").unwrap_err().remedy, "did you mean \"12B\"?");
        for text in ["", "KiB", "-1KiB", "1.5MiB", "6 KiB", "99999999999999TiB", "1eur"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn amounts_are_sizes_or_whole_percents() {
        assert_eq!(parse_amount("25%").map(|a| a.of(1000)), Ok(250));
        assert_eq!(parse_amount("2KiB").map(|a| a.of(1000)), Ok(2048));
        assert_eq!(Amount::Percent(100).of(usize::MAX), usize::MAX / 100 * 100);
        for text in ["0%", "101%", "%", "2.5%", "-1%"] {
            assert!(parse_amount(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_round_trip() {
        for (text, ms) in
            [("0s", 0), ("500ms", 500), ("10s", 10_000), ("1m", 60_000), ("2h", 7_200_000)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)));
            assert_eq!(show_duration(Duration::from_millis(ms)), text);
        }
        for text in ["10", "", "s", "1d", "99999999999999999999s", "9999999999999999999h"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn addresses_name_what_is_missing() {
        assert_eq!("[::]:80".parse::<Listen>().unwrap().to_string(), "[::]:80");
        assert_eq!("unix:/run/a.sock".parse::<Listen>().unwrap().to_string(), "unix:/run/a.sock");
        let remedy = |text: &str| text.parse::<Listen>().unwrap_err().remedy;
        assert_eq!(
            remedy(":8080"),
            "did you mean \"127.0.0.1:8080\" (this machine only) or \"0.0.0.0:8080\" (everyone)?"
        );
        assert_eq!(remedy("::1"), "did you mean \"[::1]:80\"?");
        assert!(remedy("localhost:80").starts_with("write an IP address"));
        assert!(remedy("unix:a.sock").starts_with("write the whole path"));
        assert!(format!("unix:/{}", "a".repeat(107)).parse::<Listen>().is_err());
    }

    #[test]
    fn people_read_rounded_sizes() {
        assert_eq!(human_size(1023), "1023 B");
        assert_eq!(human_size(1536), "1.5 KiB");
        assert_eq!(human_size(1024 * 1024 - 1), "1.0 MiB");
        assert_eq!(human_size(u64::MAX), "16.0 EiB");
    }
}
