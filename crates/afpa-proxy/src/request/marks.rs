//! The marks that this intermediary leaves on a request: Via, Forwarded (RFC 7239) and the older X-Forwarded fields.

use std::io::Write as _;
use std::net::IpAddr;

use afpa_http::{Request, Target, request::Scheme};

use super::origin::Origin;
use super::policy::{Mark, RequestPolicy};
use crate::fields::{self, Kind, put};

/// The name of this intermediary in Via (RFC 9110 section 7.6.3).
pub const PSEUDONYM: &str = "afpa";

/// Writes Via, Forwarded (RFC 7239) and the older X-Forwarded fields.
pub(super) fn put_marks(
    request: &Request<'_, '_>,
    policy: &RequestPolicy,
    origin: Origin,
    out: &mut Vec<u8>,
) {
    if origin.is_early {
        put(out, b"Early-Data", b"1");
    }
    if let (Some(name), Some(subject)) = (&policy.client_subject, origin.subject) {
        put(out, name.as_bytes(), subject.as_bytes());
    }
    if let (Some(name), Some(client)) = (&policy.client_address, origin.first) {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b": ");
        put_address(client, out);
        out.extend_from_slice(b"\r\n");
    }
    if policy.via {
        let version = request.version.name();
        let version = version.strip_prefix("HTTP/").unwrap_or(version);
        put_parts(out, b"Via", &[version.as_bytes(), b" ", PSEUDONYM.as_bytes()]);
    }
    let mark = policy.x_forwarded.for_origin(origin);
    if matches!(mark, Mark::Replace | Mark::Append) {
        put_x_forwarded(request, mark == Mark::Append, origin, out);
    }
    let mark = policy.forwarded.for_origin(origin);
    if matches!(mark, Mark::Replace | Mark::Append) {
        put_forwarded(request, mark == Mark::Append, origin, out);
    }
}

fn put_x_forwarded(request: &Request<'_, '_>, append: bool, origin: Origin, out: &mut Vec<u8>) {
    let said = |kind: Kind| {
        let lines = append.then(|| request.fields()).into_iter().flatten();
        let lines = lines.filter(move |(name, _)| fields::kind(name.as_bytes()) == kind);
        lines.map(|(_, value)| value)
    };
    if let Some(client) = origin.client {
        out.extend_from_slice(b"X-Forwarded-For: ");
        for value in said(Kind::XForwardedFor) {
            out.extend_from_slice(value);
            out.extend_from_slice(b", ");
        }
        put_address(client, out);
        out.extend_from_slice(b"\r\n");
    }
    if let Some(host) = said(Kind::XForwardedHost).next().filter(|_| !request.host.is_absent()) {
        put(out, b"X-Forwarded-Host", host);
    } else if !request.host.is_absent() {
        out.extend_from_slice(b"X-Forwarded-Host: ");
        put_host(request, out);
        out.extend_from_slice(b"\r\n");
    }
    let scheme = said(Kind::XForwardedProto).next().unwrap_or(scheme(request, origin));
    put(out, b"X-Forwarded-Proto", scheme);
}

fn put_forwarded(request: &Request<'_, '_>, append: bool, origin: Origin, out: &mut Vec<u8>) {
    out.extend_from_slice(b"Forwarded: ");
    if append {
        let lines = request.fields();
        for (_, value) in lines.filter(|(name, _)| fields::kind(name.as_bytes()) == Kind::Forwarded)
        {
            out.extend_from_slice(value);
            out.extend_from_slice(b", ");
        }
    }
    match origin.client {
        Some(client @ IpAddr::V4(_)) => {
            out.extend_from_slice(b"for=");
            put_address(client, out);
        }
        Some(client @ IpAddr::V6(_)) => {
            out.extend_from_slice(b"for=\"[");
            put_address(client, out);
            out.extend_from_slice(b"]\"");
        }
        None => out.extend_from_slice(b"for=unknown"),
    }
    if !request.host.is_absent() {
        out.extend_from_slice(b";host=\"");
        put_host(request, out);
        out.push(b'"');
    }
    out.extend_from_slice(b";proto=");
    out.extend_from_slice(scheme(request, origin));
    out.extend_from_slice(b"\r\n");
}

/// Appends an address as text. Most are IPv4 addresses, which are written without the formatter.
fn put_address(address: IpAddr, out: &mut Vec<u8>) {
    match address {
        IpAddr::V4(address) => {
            let mut room = itoa::Buffer::new();
            let [first, rest @ ..] = address.octets();
            out.extend_from_slice(room.format(first).as_bytes());
            for octet in rest {
                out.push(b'.');
                out.extend_from_slice(room.format(octet).as_bytes());
            }
        }
        // Writing to memory cannot fail.
        IpAddr::V6(address) => drop(write!(out, "{address}")),
    }
}

/// The scheme by which the client reached this server. A router in front that terminates TLS may say so in the target; from anybody
/// else a target with `https` is only text.
pub fn scheme(request: &Request<'_, '_>, origin: Origin) -> &'static [u8] {
    match request.target {
        _ if origin.secure => b"https",
        Target::Absolute { scheme: Scheme::Https, .. } if origin.trusted => b"https",
        _ => b"http",
    }
}

/// Appends the host of a request, in lower case: no server can then tell requests apart that are for the same host.
pub(super) fn put_host(request: &Request<'_, '_>, out: &mut Vec<u8>) {
    out.extend(request.host.as_bytes().iter().map(u8::to_ascii_lowercase));
}

fn put_parts(out: &mut Vec<u8>, name: &[u8], parts: &[&[u8]]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    for part in parts {
        out.extend_from_slice(part);
    }
    out.extend_from_slice(b"\r\n");
}
