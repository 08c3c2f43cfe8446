//! The servers that can be attached to, and their configurations.

use std::path::{Path, PathBuf};

use afpa_testkit::nginx;

use super::PORT;

/// A server that can be attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Debian's nginx.
    Nginx,
    /// Debian's Apache, configured not to defer accepting.
    Apache,
    /// Debian's Apache as it comes: it has no socket before the first request is there.
    DeferringApache,
    /// Debian's nginx with all that Debian's own configuration says.
    DebianNginx,
    /// Debian's Apache with all that Debian's own configuration says.
    DebianApache,
    /// A server of files in Node.js, whose connections end after two idle seconds, as its answers say.
    Node,
}

impl Kind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Nginx, Self::Apache];

    pub(super) fn program(self) -> Option<PathBuf> {
        let path = match self {
            Self::Nginx | Self::DebianNginx => nginx::PROGRAM,
            Self::Node => "/usr/bin/node",
            _ => "/usr/sbin/apache2",
        };
        Some(PathBuf::from(path)).filter(|path| path.exists())
    }

    pub(super) fn arguments(self, configuration: &Path) -> Vec<String> {
        let file = configuration.display().to_string();
        match self {
            Self::Nginx | Self::DebianNginx => vec!["-c".into(), file],
            Self::Node => vec![file],
            _ => {
                vec!["-D".into(), "FOREGROUND".into(), "-f".into(), file]
            }
        }
    }

    /// Apache defers the acceptance of a connection until its first request is there, and the kernel cannot
    /// answer that request. The configuration turns this off where tests count answers.
    ///
    /// Answers from the folders `cookie`, `nostore`, `private`, `vary` and `short` get the field that the folder
    /// is named after. All content codings that the server supports are on.
    pub(super) fn configuration(self, folder: &Path, inside: &str, beside: &str) -> String {
        let at = folder.display();
        match self {
            Self::DebianNginx => nginx::configuration(
                folder,
                "worker_processes 1; events { worker_connections 768; }",
                &format!("tcp_nopush on; types_hash_max_size 2048; include /etc/nginx/mime.types;
                 default_type application/octet-stream; gzip on; access_log {at}/access.log; {beside}"),
                &format!("listen 0.0.0.0:{PORT} default_server; index index.html; server_name _;
                 location / {{ try_files $uri $uri/ =404; }} {inside}"),
            ),
            Self::Nginx => nginx::configuration(
                folder,
                "worker_processes 1; events { worker_connections 1024; }",
                &format!("access_log off; keepalive_requests 1000000;
                 types {{ text/html html; text/css css; text/plain txt; image/svg+xml svg; }} {beside}"),
                &format!(
                    "listen 0.0.0.0:{PORT}; index index.html; gzip_static on; gzip_vary on;
                     location /cookie/ {{ add_header Set-Cookie a=b; }}
                     location /nostore/ {{ add_header Cache-Control no-store; }}
                     location /private/ {{ add_header Cache-Control private; }}
                     location /vary/ {{ add_header Vary Cookie; }}
                     location /short/ {{ add_header Cache-Control max-age=1; access_log {at}/access.log; }}
                     location /logged/ {{ access_log {at}/access.log; }}
                     location /dynamic/ {{ gzip on; gzip_min_length 1; gzip_static off; }}
                     location /secret/ {{ return 401; }} {inside}"
                ),
            ),
            Self::Node => {
                NODE.replace("ROOT", &format!("{at}/www")).replace("PORT", &PORT.to_string())
            }
            Self::Apache | Self::DeferringApache | Self::DebianApache => {
                let modules = "/usr/lib/apache2/modules";
                let names = [
                    ("mpm_event", "mpm_event"),
                    ("authz_core", "authz_core"),
                    ("dir", "dir"),
                    ("mime", "mime"),
                    ("headers", "headers"),
                    ("deflate", "deflate"),
                    ("filter", "filter"),
                    ("authz_host", "authz_host"),
                    ("authz_user", "authz_user"),
                    ("authn_core", "authn_core"),
                    ("authn_file", "authn_file"),
                    ("auth_basic", "auth_basic"),
                    ("rewrite", "rewrite"),
                    ("setenvif", "setenvif"),
                    ("reqtimeout", "reqtimeout"),
                ];
                let load: String = names
                    .iter()
                    .map(|(name, file)| {
                        format!("LoadModule {name}_module {modules}/mod_{file}.so\n")
                    })
                    .collect();
                let field = |name: &str, field: &str| {
                    format!("<Location /{name}/>\nHeader append {field}\n</Location>\n")
                };
                let fields = [
                    field("cookie", "Set-Cookie a=b"),
                    field("nostore", "Cache-Control no-store"),
                    field("private", "Cache-Control private"),
                    field("vary", "Vary Cookie"),
                    field("short", "Cache-Control max-age=1"),
                ]
                .concat();
                let accept = match self {
                    Self::Apache => "AcceptFilter http none\nMaxKeepAliveRequests 0\n",
                    Self::DebianApache => DEBIAN_APACHE,
                    _ => "MaxKeepAliveRequests 0\n",
                };
                format!(
                    "ServerRoot {at}\nServerName server\n{accept}Listen 0.0.0.0:{PORT}\nPidFile {at}/server.pid\n\
                     ErrorLog {at}/error.log\n{load}TypesConfig /dev/null\nAddType text/html .html\nAddType text/css .css\nAddType text/plain .txt\n\
                     DefaultRuntimeDir {at}\n\
                     DocumentRoot {at}/www\nDirectoryIndex index.html\n\
                     <Directory {at}/www>\nRequire all granted\nAllowOverride All\n</Directory>\n\
                     <Location /secret/>\nRequire all denied\n</Location>\n\
                     <Location /dynamic/>\nSetOutputFilter DEFLATE\n</Location>\n{fields}{inside}\n{beside}\n"
                )
            }
        }
    }
}

/// Validators as Express has them.
const NODE: &str = r#"
const fs = require("fs"), http = require("http");
const fields = { cookie: ["Set-Cookie", "a=b"], nostore: ["Cache-Control", "no-store"],
    private: ["Cache-Control", "private"], vary: ["Vary", "Cookie"] };
const server = http.createServer((request, response) => {
    let path = decodeURIComponent(request.url.split("?")[0]);
    if (path.endsWith("/")) path += "index.html";
    const folder = path.split("/")[1];
    fs.readFile("ROOT" + path, (error, content) => {
        if (error || folder == "secret" || request.method != "GET" && request.method != "HEAD") {
            response.writeHead(folder == "secret" ? 401 : 404, { "Content-Length": 0 });
            return response.end();
        }
        const stat = fs.statSync("ROOT" + path), tag = `W/"${stat.size}-${stat.mtimeMs}"`;
        const date = stat.mtime.toUTCString();
        if (fields[folder]) response.setHeader(...fields[folder]);
        response.setHeader("ETag", tag);
        response.setHeader("Last-Modified", date);
        const tags = request.headers["if-none-match"], since = request.headers["if-modified-since"];
        const bare = tag => tag.trim().replace(/^W\//, "");
        const same = tags ? tags == "*" || tags.split(",").some(other => bare(other) == bare(tag))
                          : since && Date.parse(since) >= Date.parse(date);
        if (same) { response.statusCode = 304; return response.end(); }
        response.setHeader("Content-Length", content.length);
        response.end(request.method == "HEAD" ? undefined : content);
    });
});
server.keepAliveTimeout = 2000;
server.listen(PORT, "0.0.0.0");
"#;

/// The directives of Debian's apache2.conf, and of the modules that it enables, that affect answers.
const DEBIAN_APACHE: &str = "\
Timeout 300
KeepAlive On
MaxKeepAliveRequests 100
KeepAliveTimeout 5
RequestReadTimeout header=20-40,minrate=500
RequestReadTimeout body=10,minrate=500
AddOutputFilterByType DEFLATE text/html text/plain text/xml text/css text/javascript
AddOutputFilterByType DEFLATE application/x-javascript application/javascript application/ecmascript
AddOutputFilterByType DEFLATE application/rss+xml application/wasm application/xml
AddType text/javascript .js
AddType application/json .json
AddType image/svg+xml .svg
AddType image/png .png
AddType image/x-icon .ico
";
