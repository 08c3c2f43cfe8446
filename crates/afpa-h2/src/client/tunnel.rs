//! Extended CONNECT (RFC 8441): a stream as a tunnel for another protocol.
//!
//! A request of HTTP/1.1 that asks for one protocol (RFC 9110 section 7.8) becomes a CONNECT with `:protocol`, and a successful
//! answer the 101 that it stands for. The fields that only HTTP/1.1 has in its handshake stay here.

use afpa_http::syntax::is_token;

/// The protocol that a request of HTTP/1.1 asks for with Upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upgrade {
    /// The protocol, in lower case.
    pub protocol: Box<[u8]>,
    /// Sec-WebSocket-Key (RFC 6455 section 4.1), which servers of HTTP/2 do not get (RFC 8441 section 5).
    pub key: Option<Box<[u8]>>,
}

impl Upgrade {
    /// Reads the value of Upgrade. `None` if HTTP/2 cannot ask for it: several protocols, or a version of one, are no
    /// `:protocol` (RFC 8441 section 4).
    pub fn of(value: &[u8]) -> Option<Self> {
        let protocol = value.to_ascii_lowercase().into();
        is_token(value).then_some(Self { protocol, key: None })
    }

    /// Whether it is WebSocket.
    pub fn is_websocket(&self) -> bool {
        *self.protocol == *b"websocket"
    }
}

/// The fields of the 101 that a successful answer becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tunnel {
    /// The value of Upgrade.
    pub protocol: Box<[u8]>,
    /// The value of Sec-WebSocket-Accept (RFC 6455 section 4.2.2), if the protocol is WebSocket.
    pub accept: Option<Box<str>>,
}

#[cfg(test)]
mod tests {
    use super::super::tests::{data, events, head, raw, ready, sent, settings};
    use super::*;
    use crate::client::{Connection, Gone};
    use crate::frame::{ErrorCode, kind, setting};
    use crate::limits::Limits;

    const OK: (&str, &str) = (":status", "200");

    fn offer(value: u32) -> Vec<u8> {
        settings(&[(setting::ENABLE_CONNECT_PROTOCOL, value)])
    }

    fn websocket() -> Tunnel {
        Tunnel { protocol: b"websocket".as_slice().into(), accept: Some("its hash".into()) }
    }

    /// A connection with a tunnel that was asked for, as stream 1.
    fn asked() -> Connection {
        let mut connection = ready(Limits::default());
        events(&mut connection, &offer(1)).unwrap();
        assert_eq!(connection.open_tunnel(b"\x82", websocket()), Some(1));
        connection.output().clear();
        connection
    }

    #[test]
    fn a_tunnel_is_asked_for_only_where_it_is_offered() {
        let mut connection = ready(Limits::default());
        for (value, taken) in [(0, false), (0, false), (1, true), (1, true)] {
            events(&mut connection, &offer(value)).unwrap();
            assert_eq!(connection.takes_tunnels(), taken);
            assert_eq!(connection.open_tunnel(b"\x82", websocket()).is_some(), taken);
        }
        for (before, wrong) in [(1, 0), (0, 7), (1, 2), (0, u32::MAX)] {
            let mut connection = ready(Limits::default());
            events(&mut connection, &offer(before)).unwrap();
            assert_eq!(events(&mut connection, &offer(wrong)), Err(ErrorCode::Protocol));
        }
    }

    #[test]
    fn success_is_a_change_of_protocols() {
        for status in ["200", "204", "299"] {
            let mut connection = asked();
            let fields = [
                (":status", status),
                ("sec-websocket-protocol", "chat"),
                ("sec-websocket-accept", "theirs"),
                ("content-length", "0"),
            ];
            let input = [head(1, false, &fields), data(1, false, b"abc"), data(1, true, b"")];
            assert_eq!(
                events(&mut connection, &input.concat()).unwrap(),
                ["1 HTTP/1.1 101 Switching Protocols false false", "1 abc false", "1  true"]
            );
            assert!(connection.may_send(1), "the other direction goes on");
            connection.send_data(1, b"last", true);
            assert_eq!(
                (sent(&mut connection), connection.open_streams()),
                (vec![(kind::DATA, 1)], 0)
            );
        }
    }

    #[test]
    fn a_refusal_is_a_response_and_ends_the_request() {
        let mut connection = asked();
        let input = [head(1, false, &[(":status", "403")]), data(1, true, b"no")].concat();
        let said = ["1 HTTP/1.1 403 Forbidden false false", "1 no true"];
        assert_eq!(events(&mut connection, &input).unwrap(), said);
        assert_eq!(sent(&mut connection), [(kind::DATA, 1)], "END_STREAM, and no reset");
        assert_eq!(connection.open_streams(), 0);
    }

    #[test]
    fn a_tunnel_has_neither_trailers_nor_a_head_of_its_own() {
        for wrong in [head(1, true, &[("x-sum", "1")]), head(1, true, &[OK])] {
            let mut connection = asked();
            events(&mut connection, &head(1, false, &[OK])).unwrap();
            let malformed = format!("Gone {{ id: 1, why: {:?} }}", Gone::Malformed);
            assert_eq!(events(&mut connection, &wrong).unwrap(), [malformed]);
            assert_eq!(sent(&mut connection), [(kind::RST_STREAM, 1)]);
        }
        let mut connection = asked();
        events(&mut connection, &head(1, false, &[(":status", "101")])).unwrap();
        assert_eq!(sent(&mut connection), [(kind::RST_STREAM, 1)], "HTTP/2 has no 101");
    }

    #[test]
    fn a_tunnel_that_is_given_up_is_reset() {
        let mut connection = asked();
        events(&mut connection, &head(1, false, &[OK])).unwrap();
        connection.abandon(1);
        assert_eq!(sent(&mut connection), [(kind::RST_STREAM, 1)]);
        let late = [data(1, false, b"late"), raw(kind::RST_STREAM, 0, 1, &[0, 0, 0, 8])].concat();
        assert_eq!(events(&mut connection, &late).unwrap(), [""; 0]);
    }

    #[test]
    fn only_one_protocol_without_a_version_can_be_asked_for() {
        assert!(Upgrade::of(b"WebSocket").is_some_and(|upgrade| upgrade.is_websocket()));
        assert!(Upgrade::of(b"connect-ip").is_some_and(|upgrade| !upgrade.is_websocket()));
        for value in [&b""[..], b"websocket, chat", b"websocket,", b"chat/2", b"a b", b"a\r"] {
            assert_eq!(Upgrade::of(value), None, "{}", value.escape_ascii());
        }
    }
}
