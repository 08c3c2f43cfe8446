//! nginx by a configuration, AFPA by its translation, and the servers that both of them ask.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use afpa_testkit::server::{free_address, program};
use afpa_testkit::{Client, Endpoint, Running, Server, Tree, eventually, nginx};
use afpa_tests::proxy::PhpFpm;
use afpa_tests::tls::{Authority, Way};
use rcgen::SanType;

use super::kinds::Kind;

/// The folder of Debian's nginx, whose files the configurations include.
pub(super) const NGINX: &str = "/etc/nginx";

/// Folders of the configurations that lie in the tree.
const TOPS: &[&str] = &["/srv/", "/etc/", "/run/forge/", "/var/cache/"];

/// Lines that are about the machine, or about addresses of IPv6.
const LEFT_OUT: &[&str] =
    &["listen [::]", "access_log /", "error_log ", "user ", "pid ", "worker_processes "];

/// The addresses on which one of the two serves.
#[derive(Clone, Copy)]
struct Addresses {
    plain: SocketAddr,
    tls: SocketAddr,
}

/// Everything that runs for a kind.
pub(super) struct Bed {
    pub(super) kind: &'static Kind,
    tree: Tree,
    authority: Authority,
    php: Option<PhpFpm>,
    /// The addresses of servers behind, each with the one that stands for it.
    servers: BTreeMap<&'static str, SocketAddr>,
}

/// A server with its ways in.
pub(super) struct Peer {
    plain: Endpoint,
    /// For each host that is asked by TLS.
    ways: BTreeMap<&'static str, Way>,
    _running: Option<Running>,
    _server: Option<Server>,
}

impl Peer {
    /// A connection for requests of this host.
    pub(super) fn connect(&self, host: &str, tls: bool) -> Client {
        match tls {
            true => self.ways[host].connect(),
            false => Client::connect(&self.plain).expect("a connection"),
        }
    }
}

impl Bed {
    /// The files and certificates of a kind.
    ///
    /// # Errors
    /// When PHP-FPM is not installed.
    pub(super) fn new(kind: &'static Kind) -> Result<Self, String> {
        let (tree, authority) = (Tree::new(), Authority::new());
        for name in kind.files {
            let content = match name.ends_with(".php") {
                // A front controller has the path in REQUEST_URI, as the notes say.
                true if kind.name == "nextcloud" && name.ends_with("/index.php") => {
                    SCRIPT.replace("$s['PATH_INFO'] ?? ''", "''")
                }
                true => SCRIPT.to_owned(),
                false => format!("the file {name}\n"),
            };
            tree.file(name, content);
        }
        tree.dir("var/cache");
        tree.dir("run/forge");
        tree.file("etc/nginx/staff.htpasswd", "ann:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n");
        for name in ["fastcgi.conf", "fastcgi_params", "mime.types", "proxy_params"] {
            let text = fs::read(Path::new(NGINX).join(name)).expect("a file of nginx");
            tree.file(format!("etc/nginx/{name}"), &text);
            tree.outside(name, text);
        }
        let snippet = "snippets/fastcgi-php.conf";
        tree.outside(snippet, fs::read(Path::new(NGINX).join(snippet)).expect("a file of nginx"));
        let php = match kind.php {
            true => Some(PhpFpm::start(true, 2, "")?),
            false => None,
        };
        let servers = kind.servers.iter().map(|(address, _)| (*address, free_address()));
        let bed = Self { kind, tree, authority, php, servers: servers.collect() };
        bed.certificates();
        Ok(bed)
    }

    /// The certificates that the configuration names.
    fn certificates(&self) {
        let hosts: Vec<&str> = self.kind.hosts.iter().map(|(host, _)| *host).collect();
        let files = self.authority.issue("site", &hosts);
        let text = text(self.kind);
        for line in text.lines().map(str::trim_start) {
            let mut words = line.trim_end_matches(';').split_whitespace();
            let from = match words.next() {
                Some("ssl_certificate") => files.chain.clone(),
                Some("ssl_certificate_key") => files.key.clone(),
                Some("ssl_client_certificate" | "proxy_ssl_trusted_certificate") => {
                    self.authority.path()
                }
                _ => continue,
            };
            let path = words.next().expect("a path").trim_start_matches('/');
            self.tree.file(path, fs::read(from).expect("a certificate"));
        }
    }

    /// nginx with the configuration, and beside it the servers behind.
    pub(super) fn nginx(&self) -> Peer {
        let addresses = Addresses { plain: free_address(), tls: free_address() };
        let at = self.tree.path().parent().expect("a folder").display().to_string();
        let own = format!(
            "access_log off; client_body_temp_path {at}/t1; proxy_temp_path {at}/t2;
             fastcgi_temp_path {at}/t3; uwsgi_temp_path {at}/t4; scgi_temp_path {at}/t5;
             {}",
            self.behind()
        );
        // Debian's nginx speaks no Lua.
        const LUA: &str =
            "content_by_lua_block {\n            ngx.say(\"}\") -- not the end: }\n        }";
        let text = self.written(addresses).replace(LUA, "return 501;");
        // As Debian's own configuration has it around these.
        let own = match text.contains("mime.types") {
            true => own,
            false => format!("include mime.types; default_type application/octet-stream; {own}"),
        };
        let text = match text.contains("http {") {
            true => text.replacen("http {", &format!("http {{ {own}\n"), 1),
            false => format!("http {{ {own}\n{text}\n}}"),
        };
        let events = if text.contains("events {") { "" } else { "events { }" };
        let main = format!(
            "daemon off; master_process off; pid {at}/nginx.pid; error_log {at}/nginx.log; {events}\n"
        );
        let file = self.tree.outside("nginx.conf", main + &text);
        let mut command = Command::new(nginx::PROGRAM);
        let log = fs::File::options().append(true).create(true).open(format!("{at}/nginx.log"));
        command.arg("-c").arg(&file).stdin(Stdio::null()).stderr(log.expect("a log"));
        let mut running = Running::start(&mut command);
        let endpoint = Endpoint::Tcp(addresses.plain);
        eventually("nginx takes connections", || {
            let log = || fs::read_to_string(format!("{at}/nginx.log")).unwrap_or_default();
            assert!(running.is_alive(), "{}: nginx ended: {}", self.kind.name, log());
            Client::connect(&endpoint).is_ok()
        });
        let ways = self.ways(addresses.tls);
        Peer { plain: endpoint, ways, _running: Some(running), _server: None }
    }

    /// AFPA with the translation.
    pub(super) fn afpa(&self) -> Peer {
        let tls = free_address();
        let server = Server::start(self.tree.path(), |launch| {
            launch.written(|endpoint| {
                let Endpoint::Tcp(plain) = endpoint else { panic!("an address") };
                let text = self.written(Addresses { plain: *plain, tls });
                translated(&self.tree, &text)
            });
        });
        Peer {
            plain: server.endpoint().clone(),
            ways: self.ways(tls),
            _running: None,
            _server: Some(server),
        }
    }

    /// Ways to all hosts that are asked by TLS, with a client's certificate for those that want one.
    fn ways(&self, at: SocketAddr) -> BTreeMap<&'static str, Way> {
        let own = self.authority.issue("client", &["ann"]);
        let own = [own.chain, own.key].map(|file| fs::read(file).expect("a certificate"));
        let hosts = self.kind.hosts.iter().filter(|(_, tls)| *tls);
        let way = |host: &'static str| {
            let [chain, key] = own.clone();
            let client = self.authority.client(|settings| settings.own = Some((chain, key)));
            (host, Way::to(at, client, host))
        };
        hosts.map(|(host, _)| way(host)).collect()
    }

    /// The servers behind: each says its name, and what it was asked, without a path's spelling.
    fn behind(&self) -> String {
        let server = |(address, name): &(&'static str, &str)| {
            let at = self.servers[address];
            let listen = match address.strip_prefix("unix:") {
                Some(path) => {
                    format!("listen unix:{};", self.tree.at(path.trim_start_matches('/')).display())
                }
                None if address.starts_with("https://") => {
                    let ip = at.ip().to_string();
                    // nginx compares names alone.
                    let name = ip.clone().try_into().expect("ASCII");
                    let files = self.authority.issue_with("behind", &[&ip], |params| {
                        params.subject_alt_names.push(SanType::DnsName(name));
                    });
                    let (chain, key) = (files.chain.display(), files.key.display());
                    format!("listen {at} ssl; ssl_certificate {chain}; ssl_certificate_key {key};")
                }
                None => format!("listen {at};"),
            };
            format!(
                "server {{ {listen} default_type text/plain; location = /verify {{ {VERIFY} }} \
                 location / {{ return 200 \"{name} $request_method $uri $args $http_host $http_remote_user\"; }} }}\n"
            )
        };
        self.kind.servers.iter().map(server).collect()
    }

    /// The configuration with addresses and folders of the test.
    fn written(&self, addresses: Addresses) -> String {
        let mut lines = String::new();
        for line in text(self.kind).lines() {
            let bare = line.trim_start();
            if LEFT_OUT.iter().any(|start| bare.starts_with(start)) {
                continue;
            }
            lines += &listening(bare, addresses).unwrap_or_else(|| line.to_owned());
            lines.push('\n');
        }
        for (address, at) in &self.servers {
            let to = match address.split_once("://") {
                None if address.starts_with("unix:") => continue,
                None => at.to_string(),
                Some((scheme, _)) => format!("{scheme}://{at}"),
            };
            // No address is the beginning of another.
            for end in [";", " ", "/"] {
                lines = lines.replace(&format!("{address}{end}"), &format!("{to}{end}"));
            }
        }
        if let Some(php) = &self.php {
            for place in ["unix:/run/php/php-fpm.sock", "127.0.0.1:9000"] {
                lines = lines.replace(place, php.to());
            }
        }
        for top in TOPS {
            let to = self.tree.at(top.trim_start_matches('/')).display().to_string();
            for before in [" ", "unix:"] {
                // A location may have the name of a folder.
                let from = format!("{before}{top}");
                let kept = lines.replace(&format!("location{from}"), "LOCATION");
                lines = kept
                    .replace(&from, &format!("{before}{to}"))
                    .replace("LOCATION", &format!("location{from}"));
            }
        }
        // Limits are not what is compared here.
        lines.replace("rate=12r/s", "rate=100000r/s").replace("burst=12", "burst=10000")
    }
}

/// A line `listen` with another address; `None`: it is none.
fn listening(line: &str, addresses: Addresses) -> Option<String> {
    let words = line.strip_prefix("listen ")?.strip_suffix(';')?;
    let (_, flags) = words.split_once(' ').unwrap_or((words, ""));
    let tls = flags.split(' ').any(|flag| flag == "ssl");
    let address = if tls { addresses.tls } else { addresses.plain };
    Some(format!("listen {address} {flags};"))
}

/// The configuration as it stands with the kinds.
pub(super) fn text(kind: &Kind) -> String {
    let kinds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/afpa-adapt/tests/kinds");
    fs::read_to_string(kinds.join(format!("{}.conf", kind.name))).expect("the kind")
}

/// The translation, by the program.
fn translated(tree: &Tree, text: &str) -> String {
    let file = tree.outside("adapted.conf", text);
    let done = Command::new(program()).arg("adapt").arg(&file).output().expect("it runs");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.code().is_some_and(|code| code < 2), "{said}");
    assert!(said.contains(" directives translated ("), "{said}");
    String::from_utf8(done.stdout).expect("UTF-8")
}

/// A server that knows ann by her cookie, and has been asked for a path.
const VERIFY: &str = "if ($http_x_original_uri !~ ^/) { return 500; } \
    if ($http_cookie ~ session=ann) { add_header Remote-User ann; return 204; } return 401;";

/// Says how it was called.
const SCRIPT: &str = "<?php header('Content-Type: text/plain'); $s = $_SERVER; \
    echo $s['SCRIPT_NAME'], ' ', $s['REQUEST_METHOD'], ' ', $s['REQUEST_URI'], ' ', $s['QUERY_STRING'], \
    ' ', $s['PATH_INFO'] ?? '', ' ', basename($s['SCRIPT_FILENAME']);";
