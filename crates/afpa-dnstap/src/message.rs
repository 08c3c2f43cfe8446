//! The messages of dnstap.proto, as far as an authoritative server sends them.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use prost::Message as _;

/// `Dnstap`.
#[derive(Clone, PartialEq, prost::Message)]
struct Envelope {
    #[prost(bytes = "vec", optional, tag = "1")]
    identity: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "2")]
    version: Option<Vec<u8>>,
    #[prost(message, optional, tag = "14")]
    message: Option<Exchange>,
    #[prost(int32, required, tag = "15")]
    kind: i32,
}

/// `Message`.
#[derive(Clone, PartialEq, prost::Message)]
struct Exchange {
    #[prost(int32, required, tag = "1")]
    kind: i32,
    #[prost(int32, optional, tag = "2")]
    family: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    protocol: Option<i32>,
    #[prost(bytes = "vec", optional, tag = "4")]
    query_address: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "5")]
    response_address: Option<Vec<u8>>,
    #[prost(uint32, optional, tag = "6")]
    query_port: Option<u32>,
    #[prost(uint32, optional, tag = "7")]
    response_port: Option<u32>,
    #[prost(uint64, optional, tag = "8")]
    query_seconds: Option<u64>,
    #[prost(fixed32, optional, tag = "9")]
    query_nanoseconds: Option<u32>,
    #[prost(bytes = "vec", optional, tag = "10")]
    query_message: Option<Vec<u8>>,
    #[prost(uint64, optional, tag = "12")]
    response_seconds: Option<u64>,
    #[prost(fixed32, optional, tag = "13")]
    response_nanoseconds: Option<u32>,
    #[prost(bytes = "vec", optional, tag = "14")]
    response_message: Option<Vec<u8>>,
}

/// `Dnstap.Type`, `Message.Type`.
const MESSAGE: i32 = 1;
const AUTH_RESPONSE: i32 = 2;

/// An answer with its question.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'s> {
    /// The address that asked.
    pub client: SocketAddr,
    /// The address that was asked, if it is known.
    pub server: Option<SocketAddr>,
    /// By a connection.
    pub is_tcp: bool,
    /// Time since 1970.
    pub unix: Duration,
    /// The question, as it came.
    pub query: &'s [u8],
    /// The answer, as it left.
    pub response: &'s [u8],
}

/// The message of an answer. `version` is the program's.
pub fn encode(version: &str, sample: &Sample<'_>) -> Vec<u8> {
    let Sample { client, server, is_tcp, unix, query, response } = *sample;
    let client = SocketAddr::new(client.ip().to_canonical(), client.port());
    let octets = |address: IpAddr| match address.to_canonical() {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    };
    let (seconds, nanoseconds) = (Some(unix.as_secs()), Some(unix.subsec_nanos()));
    let exchange = Exchange {
        kind: AUTH_RESPONSE,
        family: Some(if client.is_ipv4() { 1 } else { 2 }),
        protocol: Some(if is_tcp { 2 } else { 1 }),
        query_address: Some(octets(client.ip())),
        response_address: server.map(|server| octets(server.ip())),
        query_port: Some(client.port().into()),
        response_port: server.map(|server| server.port().into()),
        query_seconds: seconds,
        query_nanoseconds: nanoseconds,
        query_message: Some(query.to_vec()),
        response_seconds: seconds,
        response_nanoseconds: nanoseconds,
        response_message: Some(response.to_vec()),
    };
    let envelope = Envelope {
        identity: None,
        version: Some(version.as_bytes().to_vec()),
        message: Some(exchange),
        kind: MESSAGE,
    };
    envelope.encode_to_vec()
}
