//! The fields by which routers in front tell servers of a request. No standard lists them. Frameworks and servers
//! believe the ones that they know, because they expect the router in front of them to set or remove these fields.

use afpa_http::syntax::is_alike;

use super::Kind;

/// The beginnings of names of fields that describe the request.
const FAMILIES: [&str; 7] = [
    "cloudfront-",
    "x-appengine-",
    "x-envoy-original-",
    "x-forwarded-",
    "x-original-",
    "x-rewrite-",
    "x-vercel-ip-",
];

/// Fields about the request: for which host, scheme, port, path or country it was, and how its answer is to be sent.
const REQUEST: [&str; 34] = [
    "cf-ipcountry",
    "cf-visitor",
    "disguised-host",
    "fastly-ssl",
    "fly-forwarded-port",
    "fly-forwarded-proto",
    "front-end-https",
    "path-info",
    "script-name",
    "was-default-hostname",
    "x-accel-mapping",
    "x-appservice-proto",
    "x-arr-ssl",
    "x-forward-proto",
    "x-forwarded",
    "x-host",
    "x-http-host-override",
    "x-http-path-override",
    "x-http-scheme",
    "x-https",
    "x-ingress-path",
    "x-ms-original-url",
    "x-proto",
    "x-real-host",
    "x-real-port",
    "x-real-proto",
    "x-real-scheme",
    "x-replaced-path",
    "x-scheme",
    "x-script-name",
    "x-sendfile-type",
    "x-ssl",
    "x-url-scheme",
    "x-waws-unencoded-url",
];

/// The beginnings of names of fields with what a router in front has found in the client's certificate.
const CERTIFICATES: [&str; 3] = ["ssl-client-", "x-client-cert", "x-ssl-client-"];

/// The fields that name the client: by its address, by its certificate (RFC 9440), or as a user.
const CLIENT: [&str; 36] = [
    "ali-cdn-real-ip",
    "cf-connecting-ip",
    "cf-connecting-ipv6",
    "cf-pseudo-ipv4",
    "client-cert",
    "client-cert-chain",
    "client-ip",
    "cloudfront-viewer-address",
    "do-connecting-ip",
    "fastly-client-ip",
    "fly-client-ip",
    "forwarded-for",
    "forwarded-for-ip",
    "incap-client-ip",
    "remote-user",
    "true-client-ip",
    "x-appengine-user-ip",
    "x-arr-clientcert",
    "x-azure-clientip",
    "x-azure-socketip",
    "x-client",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-envoy-external-address",
    "x-forward-for",
    "x-nf-client-connection-ip",
    "x-originating-ip",
    "x-proxyuser-ip",
    "x-real-ip",
    "x-remote-addr",
    "x-remote-ip",
    "x-remote-user",
    "x-sucuri-clientip",
    "x-true-client-ip",
    "x-vercel-forwarded-for",
    "x-webauth-user",
];

/// The kind of a field that no other rule knows.
pub(super) fn kind(name: &[u8]) -> Kind {
    let first = name.first().map_or(0, |byte| byte | 0x20);
    // Most fields begin otherwise.
    if !b"acdfiprstwx".contains(&first) {
        return Kind::EndToEnd;
    }
    let begins = |family: &&str| {
        let head = name.get(..family.len());
        family.as_bytes().first() == Some(&first)
            && head.is_some_and(|head| is_alike(head, family.as_bytes()))
    };
    let is = |known: &&str| {
        known.len() == name.len()
            && known.as_bytes().first() == Some(&first)
            && is_alike(name, known.as_bytes())
    };
    let kind = match () {
        () if CLIENT.iter().any(is) || CERTIFICATES.iter().any(begins) => Kind::FrontClient,
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
            "CloudFront-Forwarded-Proto",
            "CloudFront-Is-Mobile-Viewer",
            "Disguised-Host",
            "Script-Name",
            "X-AppEngine-Country",
            "X-Envoy-Original-Path",
            "X-MS-Original-URL",
            "X-Sendfile-Type",
            "X-Accel-Mapping",
        ] {
            assert_eq!(kind(name.as_bytes()), Kind::FrontRequest, "{name}");
            assert_eq!(kind(name.replace('-', "_").as_bytes()), Kind::HopByHop, "{name}");
            assert_eq!(kind(name.replacen('-', ".", 1).as_bytes()), Kind::HopByHop, "{name}");
        }
        for name in [
            "X-Real-IP",
            "True-Client-IP",
            "CF-Connecting-IP",
            "client-ip",
            "CloudFront-Viewer-Address",
            "X-AppEngine-User-IP",
            "Client-Cert",
            "Client-Cert-Chain",
            "X-SSL-Client-Verify",
            "ssl-client-subject-dn",
            "Remote-User",
        ] {
            assert_eq!(kind(name.as_bytes()), Kind::FrontClient, "{name}");
            assert_eq!(kind(name.replace('-', "_").as_bytes()), Kind::HopByHop, "{name}");
        }
        for name in [
            "X-Requested-With",
            "Cookie",
            "X-Forwarde",
            "X-Real-Estate",
            "X_Api_Key",
            "TE2",
            "Accept",
            "Priority",
            "Referer",
            "Sec-Fetch-Site",
            "CDN-Loop",
            "Client-Name",
            "",
        ] {
            assert_eq!(kind(name.as_bytes()), Kind::EndToEnd, "{name}");
        }
    }

    #[test]
    fn lists_have_an_order_and_no_name_twice() {
        assert!(REQUEST.is_sorted_by(|one, next| one < next), "{REQUEST:?}");
        assert!(CLIENT.is_sorted_by(|one, next| one < next), "{CLIENT:?}");
        for name in REQUEST.iter().chain(&CLIENT) {
            assert_ne!(
                kind(name.as_bytes()),
                Kind::EndToEnd,
                "{name}: its first letter is looked at"
            );
        }
    }
}
