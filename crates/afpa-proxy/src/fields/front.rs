//! The fields by which routers in front tell servers of a request. No standard lists them. Frameworks and servers
//! believe the ones that they know, because they expect the router in front of them to set or remove these fields.

use afpa_http::syntax::is_alike;

use super::Kind;

/// The beginnings of names of fields that describe the request.
const FAMILIES: [&str; 3] = ["x-forwarded-", "x-original-", "x-rewrite-"];

/// Fields about the request: for which host, scheme, port, path or country it was.
const REQUEST: [&str; 17] = [
    "cf-ipcountry",
    "cf-visitor",
    "front-end-https",
    "x-arr-ssl",
    "x-forwarded",
    "x-host",
    "x-http-host-override",
    "x-http-path-override",
    "x-http-scheme",
    "x-https",
    "x-proto",
    "x-real-host",
    "x-real-port",
    "x-real-proto",
    "x-scheme",
    "x-script-name",
    "x-url-scheme",
];

/// The fields that name the client.
const CLIENT: [&str; 21] = [
    "cf-connecting-ip",
    "cf-connecting-ipv6",
    "cf-pseudo-ipv4",
    "client-ip",
    "fastly-client-ip",
    "forwarded-for",
    "forwarded-for-ip",
    "true-client-ip",
    "x-appengine-user-ip",
    "x-azure-clientip",
    "x-azure-socketip",
    "x-client",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-envoy-external-address",
    "x-originating-ip",
    "x-proxyuser-ip",
    "x-real-ip",
    "x-remote-addr",
    "x-remote-ip",
    "x-true-client-ip",
];

/// The kind of a field that no other rule knows.
pub(super) fn kind(name: &[u8]) -> Kind {
    // Most fields begin otherwise.
    if !matches!(name.first().map(|byte| byte | 0x20), Some(b'c' | b'f' | b't' | b'x')) {
        return Kind::EndToEnd;
    }
    let begins = |family: &&str| {
        let head = name.get(..family.len());
        head.is_some_and(|head| is_alike(head, family.as_bytes()))
    };
    let is = |known: &&str| is_alike(name, known.as_bytes());
    let kind = match () {
        () if CLIENT.iter().any(is) => Kind::FrontClient,
        () if FAMILIES.iter().any(begins) || REQUEST.iter().any(is) => Kind::FrontRequest,
        () => return Kind::EndToEnd,
    };
    // Under a name with another sign than `-` no router sets the field.
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    if name.iter().all(is_plain) { kind } else { Kind::HopByHop }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_routers_in_front_say_is_known_by_any_name() {
        for name in [
            "X-Forwarded-Port",
            "x-forwarded-scheme",
            "X-Forwarded-Prefix",
            "X-Forwarded-Ssl",
            "X-Forwarded-Server",
            "X-Forwarded-Anything-Else",
            "X-Original-URL",
            "X-Rewrite-URL",
            "X-Scheme",
            "Front-End-Https",
        ] {
            assert_eq!(kind(name.as_bytes()), Kind::FrontRequest, "{name}");
            assert_eq!(kind(name.replace('-', "_").as_bytes()), Kind::HopByHop, "{name}");
            assert_eq!(kind(name.replacen('-', ".", 1).as_bytes()), Kind::HopByHop, "{name}");
        }
        for name in ["X-Real-IP", "True-Client-IP", "CF-Connecting-IP", "client-ip"] {
            assert_eq!(kind(name.as_bytes()), Kind::FrontClient, "{name}");
            assert_eq!(kind(name.replace('-', "_").as_bytes()), Kind::HopByHop, "{name}");
        }
        for name in
            ["X-Requested-With", "Cookie", "X-Forwarde", "X-Real-Estate", "X_Api_Key", "TE2", ""]
        {
            assert_eq!(kind(name.as_bytes()), Kind::EndToEnd, "{name}");
        }
    }
}
