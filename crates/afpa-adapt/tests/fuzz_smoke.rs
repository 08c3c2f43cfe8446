//! The fuzz target of translations without a fuzzer: over its committed seeds, and over a fixed sequence of mutations of
//! them. `fuzz/README.md` says how to run it for longer.

use afpa_testkit::smoke_some;

#[allow(unreachable_pub)]
#[path = "../../../fuzz/src/adapt.rs"]
mod targets;

/// The words that the grammar turns on; random bytes alone would seldom make them.
const FRAGMENTS: &[&[u8]] = &[
    b"{",
    b"}",
    b";",
    b"\"",
    b"'",
    b"\\",
    b"${",
    b"$1",
    b"#",
    b" location / {",
    b" location = /a {",
    b" location ~* \\.(a|b)$ {",
    b" location ~ (?!",
    b" deny all;",
    b" allow 10.0.0.0/8;",
    b" proxy_pass http://a/;",
    b" fastcgi_pass a;",
    b" alias /a;",
    b" root /a;",
    b" rewrite ^/a(.*)$ /b$1 permanent;",
    b" rewrite ^/a/(\\d+)$ /b?i=$1? last;",
    b" if (!-e $request_filename) { rewrite ^ /a.php last; }",
    b" auth_request /a; auth_request_set $u $upstream_http_a; proxy_set_header A $u;",
    b" return 301 https://$host$request_uri;",
    b" if ($http_a ~* b) { return 403; }",
    b" try_files $uri @a;",
    b" error_page 404 = /a.html;",
    b" expires -1d;",
    b" add_header A b;",
    b" include self.conf;",
    b" a_by_lua_block {",
    "\u{e4}".as_bytes(),
    b"\xff",
    b"99999999999999999999",
];

#[test]
fn translations() {
    smoke_some("adapt", targets::adapt, FRAGMENTS, 300);
}
