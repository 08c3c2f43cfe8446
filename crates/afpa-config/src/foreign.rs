//! Words of nginx, Caddy and HAProxy for settings that have another name here, and variables that only those servers have.

/// A word in a section, or anywhere, and the line that says the same here.
#[rustfmt::skip]
const WORDS: &[(&[&str], &str)] = &[
    (&["server_name", "host", "domain", "domains"], "write hosts = [\"www.example.org\"]"),
    (&["location", "path", "handle", "handle_path", "route"], "write prefix = \"/api/\" in [[site.path]]"),
    (&["alias", "document_root"], "write root = \"/srv/www\""),
    (&["file_server"], "write root = \"/srv/www\", and listing = true to browse it"),
    (&["proxy_pass", "reverse_proxy", "upstream", "backend", "default_backend", "use_backend"], "write to = \"127.0.0.1:3000\", or the name of a [[server_group]]"),
    (&["try_files"], "write fallback = \"/index.html\", or a server, or a status"),
    (&["autoindex", "browse"], "write listing = true"),
    (&["return", "redir"], "write redirect = \"https://example.org{path}{query}\", or status = 404, in [[site.path]]"),
    (&["respond"], "write status = 200, and body = \"...\", in [[site.path]]"),
    (&["error_page", "handle_errors"], "write [[site.errors]] with status = [404] and file = \"404.html\""),
    (&["add_header", "header", "proxy_set_header", "header_up", "header_down", "expires"], "write [[site.header]] with set = { Cache-Control = \"no-store\" }; for servers request_set"),
    (&["auth_basic", "auth_basic_user_file", "basicauth"], "write basic_auth = \"/etc/afpa/users\", a file that htpasswd has made"),
    (&["auth_request"], "write forward_auth = \"127.0.0.1:9091\" and forward_auth_path"),
    (&["fastcgi_pass", "php_fastcgi"], "write php = \"unix:/run/php/php-fpm.sock\""),
    (&["fastcgi_param"], "write php_params = { APP_ENV = \"production\" }"),
    (&["gzip", "brotli", "zstd", "encode"], "files are compressed as [compression] says; for answers of servers write compress = true"),
    (&["client_max_body_size", "request_body", "max_body"], "write largest_content = \"10MiB\""),
    (&["limit_req", "rate_limit"], "write client_rate = \"10/s burst 20\""),
    (&["limit_rate", "limit_rate_after"], "leave it out: AFPA bounds how often clients ask (client_rate), not the speed of answers"),
    (&["proxy_cache", "proxy_cache_valid"], "write mode = \"auto\" under [site.cache]"),
    (&["proxy_read_timeout", "fastcgi_read_timeout"], "write first_byte = \"60s\" and idle = \"60s\""),
    (&["proxy_connect_timeout"], "write connect = \"5s\""),
    (&["proxy_redirect", "proxy_http_version", "proxy_buffering", "sendfile", "tcp_nopush"], "leave it out: AFPA decides that itself"),
    (&["ssl_certificate", "certificate", "tls_certificate"], "write [[certificate]] with chain = \"/etc/afpa/site.pem\" and key"),
    (&["ssl", "https"], "write tls = [\"[::]:443\"] in the site"),
    (&["set_real_ip_from", "trusted_proxies", "real_ip_header"], "write forwarded_from = [\"10.0.0.0/8\"] in the site"),
    (&["import", "includes"], "write include = [\"sites/*.toml\"] at the top"),
    (&["access_log"], "write access = \"/var/log/afpa/access.log\" under [log]"),
    (&["error_log"], "write level = \"info\" under [log]; it goes to standard error"),
    (&["worker_processes"], "write workers = 4 at the top"),
    (&["worker_connections"], "write connections = 10000 under [limits]"),
    (&["bind"], "write listen = [\"0.0.0.0:80\", \"[::]:80\"]"),
    (&["balance", "lb_policy", "least_conn"], "write select = \"least-connections\" in the [[server_group]]"),
    (&["httpchk", "health_check", "health_uri"], "write path = \"/health\" under [server_group.check]"),
    (&["maxconn"], "write connections = 10000 under [limits]; for a server max_connections"),
    (&["keepalive_timeout"], "write idle = \"1m\" under [timeouts]"),
];

/// The line that says the same as a word of nginx, Caddy or HAProxy.
pub(crate) fn remedy(name: &str) -> Option<&'static str> {
    WORDS.iter().find(|(words, _)| words.contains(&name)).map(|(_, line)| *line)
}

/// Beginnings of nginx's variables, without the dollar sign.
const NGINX: [&str; 28] = [
    "arg_",
    "args",
    "connection",
    "cookie_",
    "document_",
    "geoip",
    "host",
    "http_",
    "https",
    "is_args",
    "msec",
    "proxy_",
    "query_string",
    "realip_",
    "remote_",
    "request",
    "scheme",
    "sent_http_",
    "server_",
    "ssl_",
    "status",
    "time_",
    "upstream_",
    "uri",
    "binary_remote_addr",
    "content_",
    "limit_rate",
    "body_bytes_sent",
];

/// Names of Caddy's placeholders and of our own variables, which stand for something elsewhere.
const PLACEHOLDERS: [&str; 17] = [
    "client",
    "client_ip",
    "host",
    "hostport",
    "method",
    "path",
    "port",
    "query",
    "remote",
    "remote_host",
    "remote_port",
    "rest",
    "scheme",
    "status",
    "upstream_hostport",
    "uri",
    "file",
];
const PLACEHOLDER_BEGINNINGS: [&str; 7] =
    ["http.", "header.", "cookie.", "query.", "path.", "tls_", "rp."];

/// The first variable in a text that is sent as it stands, with its sign or braces.
pub(crate) fn variable(text: &str) -> Option<&str> {
    nginx(text).or_else(|| placeholder(text))
}

fn nginx(text: &str) -> Option<&str> {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    text.match_indices('$').find_map(|(at, _)| {
        let rest = text.get(at + 1..)?;
        let end = rest.bytes().position(|byte| !is_word(byte)).unwrap_or(rest.len());
        let name = rest.get(..end)?;
        let is_known = NGINX.iter().any(|begin| name.starts_with(begin));
        is_known.then(|| text.get(at..at + 1 + end)).flatten()
    })
}

fn placeholder(text: &str) -> Option<&str> {
    text.match_indices('{').find_map(|(at, _)| {
        let rest = text.get(at + 1..)?;
        let name = rest.get(..rest.find('}')?)?;
        let begins = PLACEHOLDER_BEGINNINGS.iter().any(|begin| name.starts_with(begin));
        let is_known = PLACEHOLDERS.contains(&name) || begins;
        is_known.then(|| text.get(at..at + name.len() + 2)).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Machine, Overrides, Source, known, parse_text};

    #[test]
    fn a_word_of_others_leads_to_the_setting() {
        let settings = known(&Machine::probe());
        for (words, line) in WORDS {
            let is_section =
                |word: &str| settings.iter().any(|one| one.section.split('.').nth(1) == Some(word));
            // A section's name with a plain value has another message.
            for word in words.iter().filter(|word| !is_section(word)) {
                let text = format!("[[site]]\nroot = \"/\"\n{word} = 1\n");
                let source = Source::new("a.toml", text);
                let said = parse_text(source, &Overrides::default(), &Machine::probe());
                let said = said.expect_err(word).to_string();
                assert!(said.contains(line), "{word}: {said}");
            }
            let mut parts = line.split(" = ");
            let key = parts.next().and_then(|begin| begin.rsplit(' ').next()).unwrap_or_default();
            let is_setting = settings.iter().any(|setting| setting.key == key);
            assert!(is_setting || !line.contains(" = "), "{line}: {key} is no setting");
        }
    }

    #[test]
    fn variables_of_others_are_found_in_a_text() {
        for (text, found) in [
            ("$remote_addr", Some("$remote_addr")),
            ("for=$http_x_a;b", Some("$http_x_a")),
            ("https://$host", Some("$host")),
            ("{http.request.host}", Some("{http.request.host}")),
            ("a {client} b", Some("{client}")),
            ("$5 {\"group\":\"a\"} {x} $", None),
            ("default-src 'self'", None),
            ("é$é{é}", None),
        ] {
            assert_eq!(variable(text), found, "{text}");
        }
    }
}
