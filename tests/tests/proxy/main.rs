//! The program as a proxy before unmodified servers.

mod access;
mod basic_auth;
mod browser;
mod compression;
mod conditions;
mod deployment;
mod errors;
mod fallback;
mod half_closed;
mod headers;
mod http2;
mod http2_tunnels;
mod keeping;
mod limits;
mod live;
mod metrics;
mod network;
mod orders;
mod php;
mod php_faults;
mod reload;
mod ring;
mod routes;
mod scenarios;
mod server_limits;
mod vtc;
