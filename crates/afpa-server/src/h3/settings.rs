//! The settings of connections, from those of the engine.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use afpa_tls::quic::{QuicKeys, QuicTls, TOKEN_LIFE};
use quinn_proto::{
    IdleTimeout, MtuDiscoveryConfig, ServerConfig, TransportConfig, ValidationTokenConfig, VarInt,
};

use super::congestion::Congestion;
use super::tokens::UsedTokens;
use crate::settings::Settings;

/// The settings of new connections to an address. A stream has a window as one of HTTP/2.
pub(super) fn config(
    quic: &QuicTls,
    (keys, address): (&QuicKeys, SocketAddr),
    used: &Arc<UsedTokens>,
    settings: &Settings,
) -> ServerConfig {
    let http2 = &settings.http2;
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(http2.streams.into())
        .max_concurrent_uni_streams(UNI_STREAMS.into())
        .stream_receive_window(http2.stream_window.into())
        .receive_window(http2.connection_window.into())
        .send_window(SEND_WINDOW)
        .congestion_controller_factory(Arc::new(Congestion::default()))
        .mtu_discovery_config(Some(packets_at(address)))
        .datagram_receive_buffer_size(None)
        .max_idle_timeout(
            IdleTimeout::try_from(settings.idle_timeout.max(SILENCE))
                .ok()
                .or(Some(VarInt::MAX.into())),
        );
    let mut config = ServerConfig::new(quic.crypto(), keys.tokens_at(address));
    config
        .transport_config(Arc::new(transport))
        .max_incoming(MOST_INCOMING)
        // As long as the kernel's program takes its own.
        .retry_token_lifetime(Duration::from_secs(TOKEN_LIFE));
    if quic.accepts_early_data() {
        let mut tokens = ValidationTokenConfig::default();
        tokens.sent(1).lifetime(TOKEN).log(Arc::<UsedTokens>::clone(used));
        config.validation_token_config(tokens);
    }
    config
}

/// How large packets may become (RFC 9000 section 14.3): up to what Ethernet carries behind the headers of IP and UDP. An address of
/// IPv6 may be one of IPv4 as well. The search ends closer than it would by itself, so that a network with slightly less room gets
/// no smaller packets than if nobody had asked for these.
fn packets_at(address: SocketAddr) -> MtuDiscoveryConfig {
    let mut search = MtuDiscoveryConfig::default();
    search
        .upper_bound(if address.is_ipv4() { 1500 - 20 - 8 } else { 1500 - 40 - 8 })
        .minimum_change(10);
    search
}

/// How long a client may prove its address by a token of an earlier connection.
const TOKEN: Duration = Duration::from_secs(24 * 60 * 60);

/// The limits that a client learns of its connection, for a comparison.
pub(super) fn told(settings: &Settings, largest_head: usize) -> Vec<u8> {
    let http2 = &settings.http2;
    let numbers = [
        u64::from(http2.streams),
        u64::from(http2.stream_window),
        u64::from(http2.connection_window),
        largest_head as u64,
    ];
    numbers.map(u64::to_be_bytes).concat()
}

/// A client that says nothing for this long is gone, even if an answer is due. Clients that wait for one are asked for a
/// sign of life.
const SILENCE: Duration = Duration::from_secs(30);

/// The settings of connections that are not those of TLS.
pub(super) fn times_of(settings: &Settings) -> (Duration, afpa_h2::Limits) {
    (settings.idle_timeout, settings.http2)
}

/// Streams of a client that carry no requests: control, encoder, decoder, and some of unknown types.
const UNI_STREAMS: u32 = 8;

/// Bytes of answers that a connection keeps until its client has acknowledged them.
const SEND_WINDOW: u64 = 1024 * 1024;

/// Clients whose first packet waits to be looked at: each is looked at at once.
const MOST_INCOMING: usize = 64;

/// The limits of HTTP/3's layer.
pub(super) fn limits(settings: &Settings, largest_head: usize) -> afpa_h3::Limits {
    let http2 = settings.http2.with_head(largest_head);
    afpa_h3::Limits {
        head: largest_head,
        section: http2.block,
        resets: http2.resets,
        overhead: http2.overhead,
    }
}
