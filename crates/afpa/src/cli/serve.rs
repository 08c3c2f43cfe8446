//! `afpa serve` and `afpa proxy`: their options, as the settings of a file.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;

use afpa_config::{
    AccessFormat, Choice, ConfigError, FastPathMode, IdMode, Io, Known, Level, Loaded, LogFormat,
    Machine, Overrides, Policy, Symlinks, load_by,
};

/// `afpa serve`.
#[derive(Args, Debug, Default)]
#[command(after_help = SERVE_EXAMPLES)]
pub struct Serve {
    /// Directory to serve
    #[arg(value_name = "DIR", required_unless_present = "config")]
    pub directory: Option<PathBuf>,
    /// Read settings from this file
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The options that `afpa proxy` has as well.
    #[command(flatten)]
    pub running: Running,
    /// The servers to which `afpa proxy` sends requests that it does not serve itself.
    #[arg(skip)]
    pub to: Option<String>,
    /// Extensions that it serves itself, if not the usual ones.
    #[arg(skip)]
    pub cached: Vec<String>,
}

/// `afpa proxy`.
#[derive(Args, Debug, Default)]
#[command(after_help = PROXY_EXAMPLES)]
pub struct Proxy {
    /// Directory of the files that are served from RAM [default: none, everything is distributed]
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Server that gets everything else; several with commas between them
    #[arg(long, value_name = "ADDR:PORT|NAME:PORT|unix:PATH")]
    pub to: String,
    /// Extensions that are served from DIR, `none` among them for URLs without one
    /// [default: html, css, js, images, fonts ...]
    #[arg(long, value_name = "EXTENSION", value_delimiter = ',', requires = "root")]
    pub cached: Vec<String>,
    /// The options that `afpa serve` has as well.
    #[command(flatten)]
    pub running: Running,
}

impl From<Proxy> for Serve {
    fn from(proxy: Proxy) -> Self {
        let Proxy { root, to, cached, running } = proxy;
        Serve { directory: root, config: None, running, to: Some(to), cached }
    }
}

/// Options of a process that serves.
#[derive(Args, Debug, Default)]
pub struct Running {
    /// Where to listen: an address and port, or a unix socket; may be repeated
    /// [default: 127.0.0.1:8080]
    #[arg(short, long, value_name = "ADDR:PORT|unix:PATH")]
    pub listen: Vec<String>,
    /// Where to listen for HTTP over TLS; may be repeated. Then there is no default for --listen
    #[arg(
        long,
        value_name = "ADDR:PORT|unix:PATH",
        help_heading = "TLS",
        requires = "certificates"
    )]
    pub tls: Vec<String>,
    /// Certificate with its chain, in PEM; may be repeated, each with a --key. The name that a client asks for
    /// chooses; the first is the default
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "TLS",
        requires = "key",
        group = "certificates"
    )]
    pub cert: Vec<PathBuf>,
    /// Its private key, in PEM
    #[arg(long, value_name = "FILE", help_heading = "TLS", requires = "cert")]
    pub key: Vec<PathBuf>,
    /// Get a certificate for this name from an authority (ACME), and another one before it ends; may be repeated.
    /// Without --listen and --tls it is served on the ports 80 and 443, and port 80 redirects
    #[arg(long, value_name = "NAME", help_heading = "TLS", group = "certificates")]
    pub domain: Vec<String>,
    /// Address at which the authority reaches the person responsible for these names
    #[arg(long, value_name = "ADDRESS", help_heading = "TLS", requires = "domain")]
    pub email: Option<String>,
    /// Redirect requests without TLS to the first address with it
    #[arg(long, help_heading = "TLS", requires = "tls")]
    pub https_only: bool,
    /// Worker threads [default: one for each core]
    #[arg(short, long, value_name = "N|auto")]
    pub workers: Option<String>,
    /// How workers wait for connections [default: auto]
    #[arg(long, value_name = "HOW", value_parser = words::<Io>())]
    pub io: Option<String>,
    /// Memory for pinned objects: a size such as 2GiB or a share of memory [default: 25%]
    #[arg(long, value_name = "SIZE|PERCENT", help_heading = "Cache")]
    pub pinned_limit: Option<String>,
    /// Largest file that is pinned [default: 64KiB]
    #[arg(long, value_name = "SIZE", help_heading = "Cache")]
    pub pin_threshold: Option<String>,
    /// Replacement policy: which object is ejected when memory is full [default: afpa-lru]
    #[arg(long, value_name = "POLICY", value_parser = words::<Policy>(), help_heading = "Cache")]
    pub policy: Option<String>,
    /// Answer requests for small objects in the kernel [default: auto]
    #[arg(long, value_name = "WHEN", value_parser = words::<FastPathMode>(), help_heading = "Cache")]
    pub fast_path: Option<String>,
    /// Symbolic links to follow within the directory [default: owner]
    #[arg(long, value_name = "WHICH", value_parser = words::<Symlinks>(), help_heading = "Content")]
    pub symlinks: Option<String>,
    /// List directories that have no index file
    #[arg(long, help_heading = "Content")]
    pub listing: bool,
    /// Answer requests for what is no file in the directory: with this file of it (`/index.html`), from this server, or
    /// with this status [default: 404, or the server of --to]
    #[arg(long, value_name = "/FILE|SERVER|STATUS", help_heading = "Content")]
    pub fallback: Option<String>,
    /// Run files whose names end in .php, by FastCGI, with this server: unix:/run/php/php-fpm.sock
    #[arg(long, value_name = "SERVER", help_heading = "Content")]
    pub php: Option<String>,
    /// Compress the answers of servers, for clients that take that
    #[arg(long, help_heading = "Content")]
    pub compress: bool,
    /// Give each request an id, and tell it to servers, or to clients too, in X-Request-Id [default: off]
    #[arg(long, value_name = "WHO", value_parser = words::<IdMode>(), help_heading = "Logs")]
    pub request_id: Option<String>,
    /// Serve names that begin with a dot
    #[arg(long, help_heading = "Content")]
    pub dotfiles: bool,
    /// Never refuse clients of this prefix; may be repeated
    #[arg(long, value_name = "PREFIX", help_heading = "Clients")]
    pub allow: Vec<String>,
    /// Refuse clients of this prefix; may be repeated. The longest prefix wins
    #[arg(long, value_name = "PREFIX", help_heading = "Clients")]
    pub deny: Vec<String>,
    /// Refuse clients of the prefixes in this file, one a line; may be repeated
    #[arg(long, value_name = "FILE", help_heading = "Clients")]
    pub deny_file: Vec<String>,
    /// Ask for a name and a password of this file, which htpasswd has made
    #[arg(long, value_name = "FILE", help_heading = "Clients")]
    pub basic_auth: Option<PathBuf>,
    /// Become this user after the addresses are bound [default: www-data or nobody, if root]
    #[arg(short, long, value_name = "NAME", help_heading = "Process")]
    pub user: Option<String>,
    /// Become this group [default: that of the user]
    #[arg(short, long, value_name = "NAME", help_heading = "Process")]
    pub group: Option<String>,
    /// Serve /metrics, /health, /stats and /status here, for example 127.0.0.1:9090 [default: off]
    #[arg(long, value_name = "ADDR:PORT", help_heading = "Process")]
    pub admin: Option<String>,
    /// Unix socket for `afpa stats` and `afpa purge` [default: a path that they find]
    #[arg(long, value_name = "PATH", help_heading = "Process")]
    pub control: Option<PathBuf>,
    /// Write an access log to this file; - is standard output [default: off]
    #[arg(long, value_name = "PATH|-", help_heading = "Logs")]
    pub access_log: Option<PathBuf>,
    /// Format of the access log [default: combined]
    #[arg(long, value_name = "FORMAT", value_parser = words::<AccessFormat>(), help_heading = "Logs")]
    pub log_format: Option<String>,
    /// Messages of this level and above go to standard error [default: info]
    #[arg(long, value_name = "LEVEL", value_parser = words::<Level>(), help_heading = "Logs")]
    pub log_level: Option<String>,
    /// Format of these messages [default: text]
    #[arg(long, value_name = "FORMAT", value_parser = words::<LogFormat>(), help_heading = "Logs")]
    pub message_format: Option<String>,
}

impl Serve {
    /// The configuration from these options and their file. SIGHUP reads it again.
    ///
    /// # Errors
    /// With all their errors.
    pub fn configuration(&self) -> Result<Loaded, ConfigError> {
        self.configuration_by(Known::default())
    }

    /// The configuration, for a caller that knows something already.
    ///
    /// # Errors
    /// With all their errors.
    pub fn configuration_by(&self, known: Known<'_>) -> Result<Loaded, ConfigError> {
        load_by(known, self.config.as_deref(), &self.overrides(), &Machine::probe())
    }

    /// The options as settings.
    pub fn overrides(&self) -> Overrides {
        let running = &self.running;
        let mut settings = Overrides::default();
        settings
            .path("site", "root", "DIR", self.directory.as_deref())
            .text("site", "to", "--to", self.to.as_deref())
            .list("site", "cached", "--cached", &self.cached)
            .list("site", "listen", "--listen", &running.listen)
            .list("site", "tls", "--tls", &running.tls)
            .on("site", "https_only", "--https-only", running.https_only)
            .list("acme", "domains", "--domain", &running.domain)
            .text("acme", "email", "--email", running.email.as_deref())
            .count("", "workers", "--workers", running.workers.as_deref())
            .text("engine", "io", "--io", running.io.as_deref())
            .text("cache", "pinned_limit", "--pinned-limit", running.pinned_limit.as_deref())
            .text("cache", "pin_threshold", "--pin-threshold", running.pin_threshold.as_deref())
            .text("cache", "policy", "--policy", running.policy.as_deref())
            .text("fast_path", "mode", "--fast-path", running.fast_path.as_deref())
            .text("site", "symlinks", "--symlinks", running.symlinks.as_deref())
            .on("site", "listing", "--listing", running.listing)
            .count("site", "fallback", "--fallback", running.fallback.as_deref())
            .text("site", "php", "--php", running.php.as_deref())
            .on("site", "compress", "--compress", running.compress)
            .text("site", "request_id", "--request-id", running.request_id.as_deref())
            .on("site", "dotfiles", "--dotfiles", running.dotfiles)
            .list("police", "allow", "--allow", &running.allow)
            .list("police", "deny", "--deny", &running.deny)
            .list("police", "deny_files", "--deny-file", &running.deny_file)
            .path("site", "basic_auth", "--basic-auth", running.basic_auth.as_deref())
            .text("", "user", "--user", running.user.as_deref())
            .text("", "group", "--group", running.group.as_deref())
            .text("admin", "listen", "--admin", running.admin.as_deref())
            .path("control", "path", "--control", running.control.as_deref())
            .path("log", "access", "--access-log", running.access_log.as_deref())
            .text("log", "access_format", "--log-format", running.log_format.as_deref())
            .text("log", "level", "--log-level", running.log_level.as_deref())
            .text("log", "format", "--message-format", running.message_format.as_deref());
        // The application may have an answer for a name like a file's. A port alone would be read as a status.
        let is_number = |to: &str| to.bytes().all(|byte| byte.is_ascii_digit());
        let is_number = self.to.as_deref().is_some_and(is_number);
        if running.fallback.is_none() && self.directory.is_some() && !is_number {
            settings.text("site", "fallback", "--to", self.to.as_deref());
        }
        // The short command does the common thing: the ports of the web.
        if !running.domain.is_empty() && running.listen.is_empty() && running.tls.is_empty() {
            settings
                .list("site", "listen", "--domain", &for_everyone(80))
                .list("site", "tls", "--domain", &for_everyone(443))
                .on("site", "https_only", "--domain", true);
        }
        // A certificate without a key, or a key alone, is reported as a setting that is missing.
        for at in 0..running.cert.len().max(running.key.len()) {
            let path = |list: &[PathBuf]| list.get(at).cloned().unwrap_or_default();
            settings.certificate(&path(&running.cert), &path(&running.key));
        }
        settings
    }
}

/// The addresses for everyone who can reach this machine.
fn for_everyone(port: u16) -> Vec<String> {
    let has_ipv6 = std::net::TcpListener::bind((std::net::Ipv6Addr::LOCALHOST, 0)).is_ok();
    let ipv6 = has_ipv6.then(|| format!("[::]:{port}"));
    std::iter::once(format!("0.0.0.0:{port}")).chain(ipv6).collect()
}

/// The words of a setting, for clap to check and complete.
fn words<C: Choice>() -> PossibleValuesParser {
    PossibleValuesParser::new(C::ALL.iter().map(|choice| choice.word()))
}

const SERVE_EXAMPLES: &str = "\
Examples:
  afpa serve site
  afpa serve site --listen 0.0.0.0:80 --listen unix:/run/afpa/http.sock --user www-data
  afpa serve site --domain www.example.org --email admin@example.org
  afpa serve dist --fallback /index.html
  afpa serve site --pinned-limit 2GiB --access-log access.log --log-format json
  afpa serve --config /etc/afpa/afpa.toml --log-level debug

Signals:
  TERM, INT   stop now
  QUIT        stop when open connections have ended
  HUP         read the file again; a bad one changes nothing
  USR1        open the logs again after they were moved
  USR2        start the program anew and hand over to it, without a refused connection";

const PROXY_EXAMPLES: &str = "\
Examples:
  afpa proxy --root static --to 127.0.0.1:3000
  afpa proxy --root public --to unix:/run/app.sock --listen 0.0.0.0:80 --user www-data
  afpa proxy --root public --cached html,css,js,none --to app.example:8080
  afpa proxy --to 10.0.0.1:80,10.0.0.2:80";
