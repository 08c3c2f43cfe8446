//! Each directive and its translation: a table of lines of nginx, and of lines that the translation has.

use afpa_adapt::{Kind, Translation, adapt};

fn run(text: &str) -> Translation {
    let mut files = |path: &str| Err(format!("{path} is not here"));
    adapt("/n/t.conf", text, &mut files).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Lines in a `server` with a root, and the lines that they lead to; the notes must be of at most this kind.
fn becomes(lines: &str, expected: &[&str], worst: Option<Kind>) {
    let done = run(&format!(
        "http {{ upstream up {{ server 10.0.0.1:80; }} server {{ listen 80; server_name a.example; root /srv; {lines} }} }}"
    ));
    for line in expected {
        assert!(done.toml.lines().any(|one| one == *line), "{lines}: no {line} in\n{}", done.toml);
    }
    let found = done.notes.iter().map(|note| note.kind).max();
    assert_eq!(found, worst, "{lines}: {:?}\n{}", done.notes, done.toml);
}

#[test]
fn files() {
    becomes("", &["listen = [\"0.0.0.0:80\"]", "root = \"/srv\"", "charset = \"none\""], None);
    becomes("index a.htm;", &["index = [\"a.htm\"]"], None);
    becomes("autoindex on;", &["listing = true"], None);
    becomes("autoindex on; location /a/ { autoindex off; }", &[], Some(Kind::Left));
    becomes("charset utf-8;", &["root = \"/srv\""], None);
    becomes("charset koi8-r;", &["charset = \"koi8-r\""], None);
    becomes("types { text/x-a a b; }", &["types = { a = \"text/x-a\", b = \"text/x-a\" }"], None);
    becomes("location /a/ { alias /b/; }", &["prefix = \"/a/\"", "root = \"/b\""], None);
    becomes("location /a/ { root /b; }", &["root = \"/b/a\""], None);
    becomes(
        "location /a { alias /b; }",
        &["prefix = \"/a/\"", "root = \"/b\""],
        Some(Kind::Differs),
    );
    becomes("location /a/ { alias /b/$host/; }", &["status = 501"], Some(Kind::Refused));
    becomes("location = /a.txt { root /b; }", &["if_path = [\"/a.txt\"]", "root = \"/b\""], None);
}

#[test]
fn fallbacks() {
    let place = |words: &str| {
        format!(
            "location / {{ try_files {words}; }} location @up {{ proxy_pass http://up; proxy_set_header Host $host; }}"
        )
    };
    becomes(&place("$uri $uri/ =404"), &["root = \"/srv\""], None);
    becomes(&place("$uri $uri/ =410"), &["fallback = 410"], None);
    becomes(&place("$uri $uri/ /index.html"), &["fallback = \"/index.html\""], None);
    becomes(
        &place("$uri @up"),
        &["fallback = \"10.0.0.1:80\"", "largest_content = \"1MiB\""],
        None,
    );
    becomes(&place("$uri @none"), &["fallback = 501"], Some(Kind::Refused));
    becomes(&place("$uri $uri.html =404"), &["fallback = 501"], Some(Kind::Refused));
    becomes(&place("$uri /x.php"), &["fallback = 501"], Some(Kind::Refused));
}

#[test]
fn the_field_with_the_address_of_the_client_is_kept() {
    let place = |lines: &str| format!("location / {{ proxy_pass http://up; {lines} }}");
    let real = "proxy_set_header Host $host; proxy_set_header X-Real-IP $remote_addr;";
    becomes(&place(real), &["client_address = \"X-Real-IP\""], None);
    let two = format!("{real} proxy_set_header X-Client $remote_addr;");
    becomes(&place(&two), &["client_address = \"X-Real-IP\""], Some(Kind::Left));
    let other = "proxy_set_header Host $host; proxy_set_header X-Original-IP $remote_addr;";
    becomes(&place(other), &[], Some(Kind::Left));
}

/// The Host of a request has the port of its URL, which `{host}` has not.
#[test]
fn the_port_of_a_host_is_that_of_the_address() {
    for (listen, url, expected) in [
        ("listen 8080;", "http://$http_host/b", Some("http://{host}:8080/b")),
        ("listen 8080;", "$scheme://$host:$server_port/b", Some("http://{host}:8080/b")),
        ("listen 8443 ssl;", "https://$http_host$uri", Some("https://{host}:8443{path}")),
        ("listen 80; listen [::]:80;", "http://$http_host/b", Some("http://{host}/b")),
        ("listen 80; listen 443 ssl;", "https://$http_host/b", Some("https://{host}/b")),
        ("listen 80; listen 8080;", "http://$http_host/b", None),
        ("listen 80; listen 8080;", "http://$host/b", Some("http://{host}/b")),
        ("listen unix:/run/a;", "http://$http_host/b", Some("http://{host}/b")),
    ] {
        let done = run(&format!(
            "http {{ server {{ {listen} root /srv; location /a {{ return 301 {url}; }} }} }}"
        ));
        let line = expected.map(|url| format!("redirect = \"{url}\""));
        let line = line.unwrap_or_else(|| "status = 501".to_owned());
        assert!(done.toml.lines().any(|one| one == line), "{listen} {url}: {}", done.toml);
    }
}

#[test]
fn a_word_that_listen_does_not_know_is_told() {
    for (text, told) in [
        ("listen 80\nroot /srv;", true),
        ("listen 443 ssl http2 reuseport backlog=4 so_keepalive=on; root /srv;", false),
    ] {
        let done = run(&format!("http {{ server {{ {text} }} }}"));
        let notes = done.notes.iter().map(ToString::to_string);
        assert_eq!(
            notes.filter(|note| note.contains("semicolon")).count(),
            usize::from(told),
            "{text}"
        );
    }
}

#[test]
fn redirects_and_answers() {
    let url = "redirect = \"https://{host}{path}{query}\"";
    becomes("return 301 https://$host$request_uri;", &[url, "redirect_status = \"301\""], None);
    becomes("return 308 https://$host$request_uri;", &[url], None);
    becomes("return 308 https://$http_host$request_uri;", &[url], None);
    becomes("rewrite ^ https://$host$request_uri? permanent;", &[url], None);
    becomes("rewrite ^/(.*)$ https://$host/$1 permanent;", &[url], None);
    becomes(
        "return 302 $scheme://b.example$uri;",
        &["redirect = \"http://b.example{path}\""],
        None,
    );
    becomes(
        "return https://b.example/;",
        &["redirect = \"https://b.example/\"", "redirect_status = \"302\""],
        None,
    );
    becomes("return 301 https://$cookie_a/;", &["status = 501"], Some(Kind::Refused));
    becomes("location /a/ { return 403; }", &["prefix = \"/a/\"", "status = 403"], None);
    becomes("location /a/ { return 444; }", &["status = 403"], Some(Kind::Differs));
    becomes(
        "location /t { default_type text/x; return 200 \"a$\"; }",
        &["status = 501"],
        Some(Kind::Refused),
    );
    becomes(
        "location /t { default_type text/x; return 200 ok; }",
        &["body = \"ok\"", "content_type = \"text/x\""],
        None,
    );
    becomes(
        "rewrite ^/old/(.*)$ /new/$1 permanent;",
        &["prefix = \"/old/\"", "redirect = \"/new/{rest}{query}\""],
        None,
    );
    for (lines, url) in [
        (
            "location ~ ^/u/(?<id>\\d+)/(.*)$ { return 301 https://$host/user/$id?x=$2; }",
            "https://{host}/user/{id}?x={2}",
        ),
        ("location ~ ^/u/(?<id>\\d+)$ { return 301 /user/$id; }", "/user/{id}"),
        (
            "location ~ ^/u/(.*)$ { return 302 /l/$1?to=http://b.example/; }",
            "/l/{1}?to=http://b.example/",
        ),
        ("rewrite ^/u/(\\d+)$ $scheme://$host/user/$1 permanent;", "http://{host}/user/{1}{query}"),
    ] {
        becomes(lines, &[&format!("redirect = \"{url}\"")], None);
    }
    becomes(
        "location ~ ^/u/(.*)$ { return 301 https://$1.example/; }",
        &["status = 501"],
        Some(Kind::Refused),
    );
    becomes("rewrite ^/old$ /new redirect;", &["exact = true", "redirect = \"/new{query}\""], None);
    becomes(
        "rewrite ^/a/(\\d+)$ /a/1$1 last;",
        &["if_path = [\"~^/a/(\\\\d+)$\"]", "status = 501"],
        Some(Kind::Refused),
    );
}

#[test]
fn conditions() {
    becomes(
        "if ($http_user_agent ~* bot) { return 403; }",
        &["if_headers = { user-agent = \"~*bot\" }"],
        None,
    );
    becomes(
        "if ($request_method = POST) { return 405; }",
        &["if_methods = [\"POST\"]", "status = 405"],
        None,
    );
    // nginx finds `?DEBUG=1`, too, and looks at escapes as they are sent.
    let differs = Some(Kind::Differs);
    let debug = "if_query = { debug = \"~^(?:[^0]|0.)\" }";
    becomes("if ($arg_debug) { return 404; }", &[debug], differs);
    becomes("location /a/ { if ($arg_debug) { return 404; } }", &[debug], differs);
    becomes("if ($cookie_a = b) { return 302 /b; }", &["if_cookies = { a = \"b\" }"], differs);
    for raw in ["~ %2e%2e", "~* \\+", "= a+b"] {
        let lines = format!("if ($arg_file {raw}) {{ return 403; }}");
        becomes(&lines, &["status = 403"], Some(Kind::Refused));
    }
    // A class of POSIX beside a part that means something else.
    let path = |pattern: &str| format!("location ~ \"^/{pattern}$\" {{ deny all; }}");
    becomes(&path("[[:digit:]]"), &["if_path = [\"~^/[[:digit:]]$\"]"], None);
    becomes(&path("[[:digit:]&&5]"), &[], Some(Kind::Refused));
    becomes("if ($remote_addr = 10.0.0.1) { return 403; }", &["if_clients = [\"10.0.0.1\"]"], None);
    becomes(
        "if ($host = b.example) { return 301 https://a.example$request_uri; }",
        &["hosts = [\"b.example\"]"],
        None,
    );
    becomes("if ($invalid) { return 403; }", &["status = 403"], Some(Kind::Refused));
    becomes("if ($slow) { set $limit_rate 1k; }", &["root = \"/srv\""], Some(Kind::Left));
}

#[test]
fn servers() {
    let to = |lines: &str| format!("location /a/ {{ proxy_set_header Host $host; {lines} }}");
    becomes(
        &to("proxy_pass http://up;"),
        &["to = \"10.0.0.1:80\"", "mode = \"off\"", "redirect = \"/a/{query}\""],
        None,
    );
    becomes(&to("proxy_pass http://up/;"), &["rewrite = \"/\""], None);
    becomes(&to("proxy_pass http://up/b/;"), &["rewrite = \"/b/\""], None);
    becomes(&to("proxy_pass http://up/b;"), &["status = 501"], Some(Kind::Refused));
    becomes(&to("rewrite ^/a/(.*)$ /$1 break; proxy_pass http://up;"), &["rewrite = \"/\""], None);
    becomes(&to("proxy_pass http://$b;"), &["status = 501"], Some(Kind::Refused));
    becomes(
        &to("proxy_pass http://unix:/run/a.sock:/;"),
        &["to = \"unix:/run/a.sock\"", "rewrite = \"/\""],
        None,
    );
    becomes(&to("proxy_pass https://b.example;"), &["tls = true"], Some(Kind::Differs));
    becomes("location /a/ { proxy_pass http://up; proxy_redirect off; }", &["host = \"up\""], None);
    becomes(
        &to("proxy_pass http://up; proxy_read_timeout 90;"),
        &["first_byte = \"90s\"", "idle = \"90s\""],
        None,
    );
    becomes(&to("proxy_pass http://up; client_max_body_size 0;"), &["to = \"10.0.0.1:80\""], None);
    becomes(
        &to("proxy_pass http://up; proxy_set_header X-A b;"),
        &["request_set = { X-A = \"b\" }"],
        None,
    );
    becomes(
        &to("proxy_pass http://up; proxy_set_header X-User $remote_user;"),
        &["request_remove = [\"X-User\"]"],
        Some(Kind::Left),
    );
    becomes(&to("proxy_pass http://up; gzip on;"), &["compress = true"], None);
    becomes(&to("uwsgi_pass unix:/run/a.sock;"), &["status = 501"], Some(Kind::Refused));
}

#[test]
fn upstreams() {
    let with = |lines: &str| {
        run(&format!(
            "upstream up {{ {lines} }} server {{ listen 80; location / {{ proxy_pass http://up; proxy_set_header Host $host; }} }}"
        ))
    };
    let cases = [
        ("server 10.0.0.1 weight=3;", "servers = [{ to = \"10.0.0.1:80\", weight = 3 }]"),
        (
            "server 10.0.0.1 max_conns=9;",
            "servers = [{ to = \"10.0.0.1:80\", max_connections = 9 }]",
        ),
        (
            "server 10.0.0.1; server 10.0.0.2 down;",
            "servers = [\"10.0.0.1:80\", { to = \"10.0.0.2:80\", weight = 0 }]",
        ),
        ("server 10.0.0.1; server 10.0.0.2 backup; keepalive 3;", "servers = [\"10.0.0.1:80\"]"),
        ("server a:1; least_conn;", "select = \"least-connections\""),
        ("server a:1; ip_hash;", "select = \"client-hash\""),
        ("server a:1; hash $request_uri consistent;", "select = \"url-hash\""),
        ("server a:1; keepalive 8;", "idle = 8"),
    ];
    for (lines, expected) in cases {
        let done = with(lines);
        assert!(done.toml.lines().any(|line| line == expected), "{lines}\n{}", done.toml);
    }
}

#[test]
fn fields() {
    let usual = "status = [200, 201, 204, 206, 301, 302, 303, 304, 307, 308]";
    becomes("add_header X-A b;", &[usual, "add = { X-A = \"b\" }"], None);
    becomes("add_header X-A b always;", &["add = { X-A = \"b\" }"], None);
    becomes("expires 1h;", &[usual, "set = { Cache-Control = \"max-age=3600\" }"], None);
    becomes("expires -1;", &["set = { Cache-Control = \"no-cache\" }"], None);
    becomes("expires @15h;", &["root = \"/srv\""], Some(Kind::Left));
    becomes("add_header X-A $b;", &["root = \"/srv\""], Some(Kind::Left));
    becomes("add_header Alt-Svc 'h3=\":443\"';", &["root = \"/srv\""], Some(Kind::Left));
    // Those of a location replace those around it.
    let done = run("server { root /s; add_header X-A a; location /b/ { add_header X-B b; } }");
    let (_, inner) = done.toml.split_once("prefix = \"/b/\"").expect("the path");
    let inner = inner.split("[[site.path]]").next().unwrap_or_default();
    assert!(inner.contains("X-B") && !inner.contains("X-A"), "{}", done.toml);
}

#[test]
fn no_guard_is_lost() {
    becomes("location /a/ { deny all; }", &["status = 403"], None);
    becomes("location /a/ { allow 10.0.0.0/8; deny all; }", &["allow = [\"10.0.0.0/8\"]"], None);
    becomes("location /a/ { deny 10.0.0.0/8; }", &["deny = [\"10.0.0.0/8\"]"], None);
    becomes(
        "location /a/ { deny 10.1.0.0/16; allow 10.0.0.0/8; deny all; }",
        &["allow = [\"10.0.0.0/8\"]", "deny = [\"10.1.0.0/16\"]"],
        None,
    );
    becomes(
        "location /a/ { allow 10.0.0.0/8; deny 10.1.0.0/16; deny all; }",
        &["allow = [\"10.0.0.0/8\"]"],
        None,
    );
    becomes(
        "location /a/ { auth_basic a; auth_basic_user_file p; }",
        &["basic_auth = \"/n/p\"", "basic_auth_realm = \"a\""],
        None,
    );
    becomes("location /a/ { internal; }", &["status = 404"], None);
    becomes(
        "location /a/ { limit_except GET { deny all; } }",
        &["if_methods = [\"GET\"]", "status = 403"],
        None,
    );
    for guard in [
        "auth_request /auth;",
        "auth_request /$a;",
        "auth_jwt a;",
        "satisfy any; allow 10.0.0.0/8; deny all; auth_basic a; auth_basic_user_file p;",
        "allow unix:; deny all;",
        "auth_basic $a; auth_basic_user_file p;",
        "auth_basic a;",
        "limit_req zone=a;",
        "limit_conn a 1;",
        "access_by_lua_block { ngx.exit(403) }",
        "secure_link $arg_a;",
        "limit_except GET { allow 10.0.0.0/8; deny all; }",
        "if ($invalid_referer) { return 403; }",
    ] {
        becomes(
            &format!("location /a/ {{ {guard} }}"),
            &["prefix = \"/a/\"", "status = 403"],
            Some(Kind::Refused),
        );
    }
    // nginx asks for the rights of a fallback as well.
    let secret = "auth_basic a; auth_basic_user_file p;";
    let php = "fastcgi_pass unix:/run/p; fastcgi_param SCRIPT_FILENAME $request_filename;";
    for (guard, value) in [(secret, "501"), ("", "\"/index.php\"")] {
        let lines = format!(
            "location / {{ try_files $uri $uri/ /index.php; }} location ~ \\.php$ {{ {guard} {php} }}"
        );
        let worst = (value == "501").then_some(Kind::Refused);
        becomes(&lines, &[&format!("fallback = {value}")], worst);
    }
    becomes(
        &format!(
            "{secret} location / {{ auth_basic off; try_files $uri @up; }} location @up {{ proxy_pass http://up; }}"
        ),
        &["fallback = 501"],
        Some(Kind::Refused),
    );
    // An index file that is refused is not given for its directory, nor as a fallback.
    becomes(
        "location = /index.html { deny all; } location /a/ { try_files $uri $uri/ /index.html; }",
        &["fallback = 501"],
        Some(Kind::Refused),
    );
    let done = run("server { root /s; location = /index.html { deny all; } }");
    assert!(done.toml.contains("prefix = \"/\"\nexact = true\nstatus = 403"), "{}", done.toml);
    becomes("location ~ \\.html$ { deny all; }", &["if_path = [\"~\\\\.html$\", \"*/\"]"], None);
    // An inner place is as open as in nginx, and no more.
    let done =
        run("server { root /s; location /a/ { allow 10.0.0.0/8; deny all; } location /a/b/ { } }");
    let (_, inner) = done.toml.split_once("prefix = \"/a/b/\"").expect("the path");
    assert!(inner.contains("allow = [\"0.0.0.0/0\", \"::/0\"]"), "{}", done.toml);
    let done = run("server { root /s; location ~ ^/(?=a)b { deny all; } }");
    assert!(done.toml.contains("if_path = [\"~^/b\"]\nstatus = 403"), "{}", done.toml);
}

#[test]
fn an_if_that_may_change_the_answer_closes_its_place() {
    let cases = [
        "if ($http_cookie !~ \"k=1\") { return 302 /login; }",
        "if ($http_cookie !~ \"k=1\") { rewrite ^ /login redirect; }",
        "if ($http_cookie !~ \"k=1\") { rewrite ^ /login.html last; }",
        "if ($http_cookie !~ \"k=1\") { return https://sso.example/; }",
        "if ($http_cookie !~ \"k=1\") { return 200 \"closed\"; }",
        "if ($cookie_k = \"\") { return 302 /login; }",
        "if ($remote_addr != 10.0.0.1) { return 302 /login; }",
        "if ($ssl_client_verify != SUCCESS) { return 302 /login; }",
        "if ($http_x_key = \"\") { set $a 1; return 204; }",
        "if ($a) { proxy_pass http://up; }",
        "if ($a) { fastcgi_pass unix:/run/p; }",
        "if ($a) { root /other; }",
        "if ($a) { break; }",
        "if ($a) { try_files /closed.html =404; }",
        "if ($a) { add_header X-A b; strange_directive; }",
        // One that AFPA has, with a block that it has not.
        "if ($http_x_key) { rewrite ^/a/(.*)$ /b/$1 last; }",
    ];
    let closed = "deny = [\"0.0.0.0/0\", \"::/0\"]";
    for case in cases {
        for handler in ["", "proxy_pass http://up;"] {
            let lines = format!("location /l1/ {{ {case} {handler} }}");
            becomes(&lines, &["prefix = \"/l1/\"", "status = 403", closed], Some(Kind::Refused));
        }
        let done = run(&format!("server {{ listen 80; root /srv; {case} location /a/ {{ }} }}"));
        assert!(done.toml.contains(&format!("prefix = \"/\"\nstatus = 403\n{closed}")), "{case}");
        assert_eq!(done.toml.matches("[[site.path]]").count(), 1, "{case}: {}", done.toml);
        // A file or script behind it is not given for another path.
        let lines =
            format!("location / {{ try_files $uri /s.html; }} location = /s.html {{ {case} }}");
        becomes(&lines, &["fallback = 501"], Some(Kind::Refused));
    }
    for harmless in ["set $skip 1;", "expires 1h;", "access_log off;", "add_header X-A b;"] {
        let lines = format!("location /l1/ {{ if ($a) {{ {harmless} }} proxy_pass http://up; }}");
        let done = run(&format!("upstream up {{ server a:1; }} server {{ listen 80; {lines} }}"));
        assert!(!done.toml.contains("status = 403"), "{harmless}: {}", done.toml);
        assert_eq!(done.notes.iter().map(|note| note.kind).max(), Some(Kind::Left), "{harmless}");
    }
}

#[test]
fn a_server_may_be_for_some_methods() {
    let only = "if ($request_method !~ ^(GET|HEAD|POST)$) { return 405; }";
    let inner = "location = /x.php { deny all; } location /a/ { proxy_set_header Host $host; proxy_pass http://up; }";
    let list = "if_methods = [\"GET\", \"HEAD\", \"POST\"]";
    becomes(&format!("{only} {inner}"), &[list, "to = \"10.0.0.1:80\"", "status = 405"], None);
    let done =
        run(&format!("server {{ listen 80; root /srv; {only} location = /a {{ deny all; }} }}"));
    let groups = done.toml.matches("[[site.path.content]]").count();
    assert_eq!(done.toml.matches(list).count() * 2, groups, "{}", done.toml);
    for more in [
        "location /a/ { limit_except PUT { deny all; } }",
        "if ($request_method = PUT) { return 204; }",
    ] {
        becomes(&format!("{only} {more}"), &["status = 403"], Some(Kind::Refused));
    }
    becomes("if ($request_method !~ ^P) { return 405; }", &["status = 403"], Some(Kind::Refused));
}

#[test]
fn a_location_of_one_scheme_may_ask_for_it() {
    let lines = "location /a/ { if ($scheme = http) { return 301 https://$host$request_uri; } }";
    becomes(lines, &["prefix = \"/a/\"", "redirect = \"https://{host}{path}{query}\""], None);
    let both = run(&format!("server {{ listen 80; listen 443 ssl; root /s; {lines} }}"));
    assert!(both.toml.contains("prefix = \"/a/\"\nstatus = 403"), "{}", both.toml);
}

#[test]
fn a_note_shows_a_condition_as_it_was_written() {
    let done =
        run("server { if ($arg_key = \"\") { return 403; } if ($http_a = \"b c\") { set $a 1; } }");
    let shown = done.notes.iter().map(|note| note.directive.as_str());
    let shown: Vec<&str> = shown.filter(|text| text.starts_with("if")).collect();
    assert_eq!(shown, ["if ($arg_key = \"\")"]);
    let done = run("server { root /s; if ($http_a = \"b c\") { set $a 1; } }");
    assert!(done.notes.iter().any(|note| note.directive == "if ($http_a = \"b c\")"), "{done:?}");
}

#[test]
fn an_if_with_one_answer_may_have_fields_beside_it() {
    let lines = "location /api/ { if ($request_method = OPTIONS) { add_header X-A b always; return 204; } \
                 proxy_set_header Host $host; proxy_pass http://up; }";
    let expected = ["if_methods = [\"OPTIONS\"]", "status = 204", "add = { X-A = \"b\" }"];
    becomes(lines, &expected, None);
}

#[test]
fn a_guard_holds_for_all_that_stands_behind_the_name_of_a_script() {
    let closed = "status = 403\ndeny = [\"0.0.0.0/0\", \"::/0\"]";
    let php = "location ~ \\.php$ { fastcgi_pass unix:/run/p; fastcgi_param SCRIPT_FILENAME $request_filename; }";
    let with = |lines: &str| run(&format!("server {{ listen 80; root /srv; {lines} {php} }}"));
    for answer in
        ["deny all;", "return 403;", "return 444;", "auth_request /a;", "if ($a) { break; }"]
    {
        for place in ["= /x.php", "/wp/", "~ /uploads/.*\\.php$", "~* \\.(php|phtml)$"] {
            let done = with(&format!("location {place} {{ {answer} }}"));
            assert!(done.toml.contains(closed), "{place} {answer}: {}", done.toml);
        }
    }
    // One that has another answer keeps it, for the script with more behind it as well.
    let done = with("location = /x.php { return 404; }");
    assert!(done.toml.contains("prefix = \"/x.php/\"\nstatus = 404"), "{}", done.toml);
    let done = with("location ~ /uploads/.*\\.php$ { return 404; }");
    let expected = "if_path = [\"~(?:/uploads/.*\\\\.php)(?:/|$)\"]\nstatus = 404";
    assert!(done.toml.contains(expected), "{}", done.toml);
    // Conditions in a location are guards, too.
    let done = with(
        "location = /x.php { if ($remote_addr = 10.0.0.1) { return 403; } fastcgi_pass unix:/run/p; }",
    );
    let expected = format!("if_clients = [\"10.0.0.1\"]\n{closed}");
    assert!(done.toml.contains(&expected), "{}", done.toml);
    // A place that nginx leaves open stays so.
    let done = with("location ~ /uploads/.*\\.php$ { deny all; } location ^~ /up/ { }");
    let (_, inner) = done.toml.split_once("prefix = \"/up/\"").expect("the path");
    let inner = inner.split("[[site.path]]").next().unwrap_or_default();
    assert!(inner.contains("allow = [\"0.0.0.0/0\", \"::/0\"]"), "{}", done.toml);
    // A list of extensions is left to the kernel: no script is in it.
    let done = with("location ~* \\.(bak|sql)$ { deny all; }");
    assert!(!done.toml.contains("deny ="), "{}", done.toml);
}

#[test]
fn the_order_of_locations_is_kept() {
    let done = run(
        "server { root /s; location ~ x { return 401; } location ^~ /p/ { return 402; } location /q/ { return 404; } location = /e { return 405; } }",
    );
    let path = |prefix: &str| {
        let (_, rest) = done.toml.split_once(&format!("prefix = \"{prefix}\"")).expect("the path");
        rest.split("[[site.path]]").next().unwrap_or_default().to_owned()
    };
    assert!(!path("/p/").contains("401") && !path("/e").contains("401"), "{}", done.toml);
    let both = path("/q/");
    assert!(both.find("401").is_some_and(|at| Some(at) < both.find("404")), "{}", done.toml);
    assert!(path("/").contains("401"), "{}", done.toml);
}

#[test]
fn names_and_addresses() {
    let cases = [
        ("listen 8080;", "listen = [\"0.0.0.0:8080\"]"),
        ("listen [::]:80;", "listen = [\"[::]:80\"]"),
        ("listen 127.0.0.1;", "listen = [\"127.0.0.1:80\"]"),
        ("listen *:81;", "listen = [\"0.0.0.0:81\"]"),
        ("listen unix:/run/a.sock;", "listen = [\"unix:/run/a.sock\"]"),
        ("listen 443 ssl http2;", "tls = [\"0.0.0.0:443\"]"),
        ("listen [::]:80 ipv6only=off;", "listen = [\"[::]:80\", \"0.0.0.0:80\"]"),
    ];
    for (line, expected) in cases {
        let done = run(&format!("server {{ {line} root /s; }}"));
        assert!(done.toml.lines().any(|one| one == expected), "{line}\n{}", done.toml);
    }
    let done = run(
        "server { listen 80; root /a; } server { listen 80; server_name A.example .b.example c.* \"~^d\\d$\"; root /b; }",
    );
    let hosts =
        "hosts = [\"a.example\", \"b.example\", \"*.b.example\", \"~^c\\\\..+$\", \"~^d\\\\d$\"]";
    assert!(done.toml.contains(hosts), "{}", done.toml);
}

#[test]
fn a_server_that_says_who_may_is_asked_here_as_well() {
    let question = "location = /auth { internal; proxy_pass http://up/verify; proxy_pass_request_body off; \
        proxy_set_header Content-Length \"\"; proxy_set_header X-Original-URI $request_uri; \
        proxy_set_header Host $host; }";
    let asked = "auth_request /auth; auth_request_set $user $upstream_http_remote_user;";
    let app =
        "proxy_set_header Host $host; proxy_set_header Remote-User $user; proxy_pass http://up;";
    becomes(
        &format!("location /a/ {{ {asked} {app} }} location /b/ {{ }} {question}"),
        &[
            "forward_auth = \"10.0.0.1:80\"",
            "forward_auth_path = \"/verify\"",
            "forward_auth_copy = [\"Remote-User\"]",
        ],
        Some(Kind::Differs),
    );
    // An answer that nginx keeps is asked for each time, and fields of connections are AFPA's.
    let kept = question.replacen(
        "internal;",
        "internal; proxy_cache a; proxy_cache_key $http_cookie; proxy_cache_valid 200 1m; \
         proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $a;",
        1,
    );
    becomes(
        &format!("location /a/ {{ {asked} {app} }} {kept}"),
        &["forward_auth = \"10.0.0.1:80\""],
        Some(Kind::Differs),
    );
    // A place that is not asked about says so, and no client sends the field there either.
    let done = run(&format!(
        "upstream up {{ server 10.0.0.1:80; }} server {{ root /s; {asked} {question} \
         location /open/ {{ auth_request off; {app} }} location / {{ {app} }} }}"
    ));
    let (_, open) = done.toml.split_once("prefix = \"/open/\"").expect("the path");
    let open = open.split("[[site.path]]").next().unwrap_or_default();
    for line in ["forward_auth = \"none\"", "request_remove = [\"Remote-User\"]"] {
        assert!(open.contains(line), "{line}: {}", done.toml);
    }
    // Questions that AFPA cannot ask refuse everybody.
    for (from, to) in [
        ("$request_uri", "$arg_a"),
        ("proxy_set_header Content", "proxy_set_header X-Key secret; proxy_set_header Content"),
        ("http://up/verify", "http://up/verify$is_args$args"),
        ("internal;", "if ($arg_a) { return 200; }"),
        ("proxy_pass http", "fastcgi_pass http"),
        ("= /auth", "~ /auth"),
    ] {
        assert!(question.contains(from));
        let other = question.replacen(from, to, 1);
        becomes(
            &format!("location /a/ {{ {asked} {app} }} {other}"),
            &["prefix = \"/a/\"", "status = 403"],
            Some(Kind::Refused),
        );
    }
    // nginx asks for `/auth%3Fa`, of which a server thinks otherwise than of `/auth?a`.
    let asked_with_query = asked.replacen("/auth;", "/auth?a;", 1);
    let prefix = question.replacen("= /auth", "/auth", 1);
    becomes(
        &format!("location /a/ {{ {asked_with_query} {app} }} {prefix}"),
        &["prefix = \"/a/\"", "status = 403"],
        Some(Kind::Refused),
    );
    becomes(
        &format!("location /a/ {{ satisfy any; deny all; allow 10.0.0.0/8; {asked} }} {question}"),
        &["prefix = \"/a/\"", "status = 403"],
        Some(Kind::Refused),
    );
    becomes(
        &format!("location /a/ {{ satisfy any; allow 10.0.0.0/8; deny all; {asked} }} {question}"),
        &["prefix = \"/a/\"", "status = 403"],
        Some(Kind::Refused),
    );
}

#[test]
fn rewrites_with_groups() {
    let digits = "if_path = [\"~^/a/(\\\\d+)$\"]";
    let whole = "if_path = [\"~^/a/(\\\\d+)/(.*)$\"]";
    for place in ["{}", "location /a/ { {} }"] {
        let cases: &[(&str, &[&str])] = &[
            ("rewrite ^/a/(\\d+)$ /b?i=$1 last;", &[digits, "rewrite = \"/b?i={1}{query}\""]),
            ("rewrite ^/a/(\\d+)$ /b?i=$1? last;", &[digits, "rewrite = \"/b?i={1}\""]),
            ("rewrite ^/a/(\\d+)$ /b/$1? last;", &[digits, "rewrite = \"/b/{1}?\""]),
            ("rewrite ^/a/(\\d+)$ /b/${1}x last;", &[digits, "rewrite = \"/b/{1}x\""]),
            ("rewrite ^/a/(\\d+)$ /b;", &[digits, "rewrite = \"/b\""]),
            (
                "rewrite ^/a/(?<id>\\d+)$ /b/$id last;",
                &["if_path = [\"~^/a/(?<id>\\\\d+)$\"]", "rewrite = \"/b/{id}\""],
            ),
            (
                "rewrite ^/a/(\\d+)/(.*)$ https://b.example/$1-$2 permanent;",
                &[whole, "redirect = \"https://b.example/{1}-{2}{query}\""],
            ),
            (
                "rewrite ^/a/(\\d+)/(.*)$ /b/$2?i=$1 redirect;",
                &[whole, "redirect = \"/b/{2}?i={1}{query}\"", "redirect_status = \"302\""],
            ),
        ];
        for (lines, expected) in cases {
            becomes(&place.replace("{}", lines), expected, None);
        }
        for refused in [
            "rewrite ^/a/(\\d+)$ https://$1.example/ permanent;",
            "rewrite ^/a/(\\d+)$ /b/$2 last;",
            "rewrite ^/a/(\\d+)$ /b/$cookie_a last;",
            "rewrite ^/a/(\\d+)$ /b break;",
        ] {
            becomes(&place.replace("{}", refused), &["status = 501"], Some(Kind::Refused));
        }
    }
    // A rule of the server comes once in nginx: one that meets its own path again is not kept.
    for twice in [
        "rewrite ^/(.*)$ /index.php?q=$1 last;",
        "rewrite ^/a$ /b last; rewrite ^/b$ /c last;",
        "rewrite ^/a$ /b last; if ($uri ~ ^/b) { return 403; }",
    ] {
        becomes(twice, &["status = 501"], Some(Kind::Refused));
    }
    becomes(
        "location /a/ { rewrite ^/a/(\\d+)$ /r?i=$1? break; proxy_set_header Host $host; proxy_pass http://up; }",
        &[digits, "to = \"10.0.0.1:80\"", "rewrite = \"/r?i={1}\""],
        None,
    );
    becomes(
        "location ~ ^/a/(\\d+)$ { return 301 /b/$1; }",
        &[digits, "redirect = \"/b/{1}\""],
        None,
    );
    becomes(
        "location ~ ^/a/(\\d+)$ { return 200 $1; }",
        &[digits, "status = 501"],
        Some(Kind::Refused),
    );
}

#[test]
fn an_if_of_the_server_gives_what_is_no_file_to_a_script() {
    let php = "location ~ \\.php$ { fastcgi_pass unix:/run/p; fastcgi_param SCRIPT_FILENAME $request_filename; }";
    let fallback = "fallback = \"/index.php\"";
    for (lines, worst) in [
        ("if (!-e $request_filename) { rewrite ^ /index.php last; }", None),
        ("if (!-e $request_filename) { rewrite ^.*$ /index.php?$args last; break; }", None),
        (
            "if (!-e $request_filename) { rewrite ^/(.*)$ /index.php?q=$1 last; }",
            Some(Kind::Differs),
        ),
        ("if (!-e $request_filename) { rewrite ^/(.*)$ /index.php/$1 last; }", Some(Kind::Differs)),
    ] {
        becomes(&format!("{lines} {php} location /css/ {{ expires 1h; }}"), &[fallback], worst);
        becomes(&format!("location / {{ {lines} }} {php}"), &[fallback], worst);
        // A place that would have answered for what is no file.
        for other in [
            "location /a/ { proxy_pass http://up; }",
            "location /a/ { return 301 /b; }",
            "location /a/ { root /b; }",
        ] {
            becomes(&format!("{lines} {php} {other}"), &["status = 403"], Some(Kind::Refused));
        }
    }
    // Redirects, a rewrite that stays in its location, and one that nginx never comes to.
    for other in [
        "rewrite ^ /index.php permanent;",
        "rewrite ^(.*)$ /index.php redirect;",
        "rewrite ^ /index.php break;",
        "rewrite ^ /index.php; break;",
        "break; rewrite ^ /index.php last;",
    ] {
        let lines = format!("if (!-e $request_filename) {{ {other} }}");
        becomes(&format!("{lines} {php}"), &["status = 403"], Some(Kind::Refused));
        becomes(&format!("location / {{ {lines} }} {php}"), &["status = 403"], Some(Kind::Refused));
    }
    let html = "if (!-e $request_filename) { rewrite ^ /index.html last; }";
    becomes(html, &["fallback = \"/index.html\""], None);
    becomes(&format!("location / {{ {html} }}"), &["fallback = \"/index.html\""], None);
    // The rights of its location count, also where that is within another.
    for guarded in [
        "location = /index.html { deny all; }",
        "location / { location = /index.html { deny all; } }",
        "location / { location = /index.html { deny all; } } location ~ html$ { }",
        "location / { location ~ html$ { deny all; } } location ~ html { }",
        "location ~ html$ { deny all; } location /index { }",
    ] {
        becomes(&format!("{html} {guarded}"), &["status = 403"], Some(Kind::Refused));
        let lines = format!("location /a/ {{ try_files $uri /index.html; }} {guarded}");
        becomes(&lines, &["fallback = 501"], Some(Kind::Refused));
    }
}

#[test]
fn rates_and_mirrors_of_places() {
    let run_with = |zone: &str, lines: &str| {
        run(&format!(
            "http {{ limit_req_zone {zone}; upstream up {{ server 10.0.0.1:80; }} \
             server {{ listen 80; server_name a.example; root /srv; {lines} }} }}"
        ))
    };
    let by_client = "$binary_remote_addr zone=one:10m rate=30r/m";
    for (lines, wanted) in [
        (
            "location /login { limit_req zone=one burst=5 nodelay; }",
            "client_rate = \"30/m burst 6\"",
        ),
        ("location /login { limit_req zone=one; }", "client_rate = \"30/m burst 1\""),
        ("limit_req zone=one; location /a { }", "client_rate = \"30/m burst 1\""),
    ] {
        let done = run_with(by_client, lines);
        assert!(done.toml.lines().any(|line| line == wanted), "{lines}:\n{}", done.toml);
        assert!(!done.toml.contains("status = 403"), "{}", done.toml);
        assert_eq!(done.notes.iter().map(|note| note.kind).max(), Some(Kind::Differs));
    }
    // Another key, or two at once, is a guard that AFPA does not have.
    for (zone, lines) in [
        ("$http_x_key zone=one:10m rate=1r/s", "location /a { limit_req zone=one; }"),
        (by_client, "location /a { limit_req zone=one; limit_req zone=two; }"),
        (by_client, "location /a { limit_req zone=other; }"),
    ] {
        let done = run_with(zone, lines);
        assert!(done.toml.contains("status = 403"), "{lines}:\n{}", done.toml);
    }
    let copy = |inner: &str| {
        format!(
            "location / {{ proxy_pass http://up; mirror /copy; }} location = /copy {{ internal; {inner} }}"
        )
    };
    becomes(
        &copy("proxy_pass http://10.0.0.2:81$request_uri;"),
        &["mirror = \"10.0.0.2-81\""],
        Some(Kind::Differs),
    );
    for other in [
        "proxy_pass http://10.0.0.2:81;",
        "proxy_pass http://10.0.0.2:81/x$request_uri;",
        "return 204;",
    ] {
        let done = run(&format!(
            "http {{ upstream up {{ server 10.0.0.1:80; }} server {{ listen 80; root /srv; {} }} }}",
            copy(other)
        ));
        assert!(!done.toml.contains("mirror ="), "{other}: {}", done.toml);
        assert_eq!(
            done.notes.iter().map(|note| note.kind).max(),
            Some(Kind::Left),
            "{:?}",
            done.notes
        );
    }
}
