//! Pebble, the ACME authority for tests: a real one, which certifies nothing that anybody trusts. It refuses some good
//! nonces on purpose (RFC 8555 section 6.5).

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use afpa_testkit::aloud::say;
use afpa_testkit::server::free_address;
use afpa_testkit::{Running, eventually};
use tempfile::TempDir;

use crate::tls::{Authority, Files};

/// A running authority, with a name server by which it finds every name at one address.
pub struct Pebble {
    folder: TempDir,
    /// The authority that certified the directory's own host.
    authority: Authority,
    certificate: Files,
    at: SocketAddr,
    management: SocketAddr,
    names: SocketAddr,
    records: SocketAddr,
    options: Options,
    /// A name server in place of its own.
    resolver: Option<SocketAddr>,
    processes: Vec<Running>,
}

/// How it certifies.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Where it looks for the answers to challenges: a port for HTTP, and one for TLS, of the address.
    pub looks_at: (SocketAddr, u16),
    /// Seconds for which its certificates are valid.
    pub validity: u64,
    /// In a hundred good nonces, how many it refuses.
    pub refused_nonces: u8,
}

impl Pebble {
    /// Starts it; `None` says SKIP, because it is not installed.
    pub fn start(options: Options) -> Option<Self> {
        Self::start_with(options, None)
    }

    /// Starts it with a name server of the test's.
    pub fn start_with(options: Options, resolver: Option<SocketAddr>) -> Option<Self> {
        if !Self::is_here() {
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let [at, management, names, records] = std::array::from_fn(|_| free_address());
        let authority = Authority::new();
        let certificate = authority.issue("directory", &[&at.ip().to_string()]);
        let processes = Vec::new();
        let mut pebble = Self {
            folder,
            authority,
            certificate,
            at,
            management,
            names,
            records,
            options,
            resolver,
            processes,
        };
        pebble.start_names();
        pebble.begin();
        Some(pebble)
    }

    /// Whether it is installed; if not, this says SKIP.
    pub fn is_here() -> bool {
        let found = [program(), "pebble-challtestsrv".into()];
        let missing = found.iter().find(|name| !is_installed(name));
        if let Some(missing) = missing {
            say("SKIP", &format!("no {missing}"));
        }
        missing.is_none()
    }

    /// URL of its directory.
    pub fn directory(&self) -> String {
        format!("https://{}/dir", self.at)
    }

    /// The certificate of the authority that certified the directory's own host.
    pub fn directory_ca(&self) -> PathBuf {
        self.authority.path()
    }

    /// The root certificate of the certificates that it issues; it makes a new root at each start.
    pub fn root(&self) -> PathBuf {
        let path = self.folder.path().join("root.pem");
        let url = format!("https://{}/roots/0", self.management);
        let mut command = Command::new("curl");
        command.args(["-ksf", "--max-time", "10", "-o"]).arg(&path).arg(url);
        assert!(command.status().is_ok_and(|status| status.success()), "no root");
        path
    }

    /// A program that sets records in its name server, as `dns-01` needs it.
    pub fn dns_program(&self) -> PathBuf {
        let path = self.folder.path().join("dns");
        let at = self.records;
        let script = format!(
            "#!/bin/sh\nset -eu\ncase $1 in\npresent) verb=set-txt ;;\n*) verb=clear-txt ;;\nesac\n\
             echo \"$1 $2\" >>{log}\n\
             exec curl -sf --max-time 5 -d \"{{\\\"host\\\":\\\"$2.\\\",\\\"value\\\":\\\"$3\\\"}}\" http://{at}/$verb\n",
            log = self.folder.path().join("dns.log").display(),
        );
        fs::write(&path, script).expect("written");
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
        path
    }

    /// The log of the calls of that program.
    pub fn dns_log(&self) -> String {
        fs::read_to_string(self.folder.path().join("dns.log")).unwrap_or_default()
    }

    /// Ends it; [`begin`](Self::begin) starts it again, and it has forgotten everything.
    pub fn end(&mut self) {
        self.processes.truncate(1);
    }

    /// Starts the authority.
    pub fn begin(&mut self) {
        let (path, Options { looks_at, validity, refused_nonces }) =
            (self.folder.path(), self.options);
        let configuration = serde_json::json!({ "pebble": {
            "listenAddress": self.at.to_string(),
            "managementListenAddress": self.management.to_string(),
            "certificate": self.certificate.chain,
            "privateKey": self.certificate.key,
            "httpPort": looks_at.0.port(),
            "tlsPort": looks_at.1,
            "certificateValidityPeriod": validity,
        }});
        let file = path.join("pebble.json");
        fs::write(&file, configuration.to_string()).expect("written");
        let mut command = Command::new(program());
        command
            .arg("-config")
            .arg(file)
            .args(["-dnsserver", &self.resolver.unwrap_or(self.names).to_string()]);
        command.env("PEBBLE_VA_NOSLEEP", "1").env("PEBBLE_AUTHZREUSE", "0");
        command.env("PEBBLE_WFE_NONCEREJECT", refused_nonces.to_string());
        let log = fs::File::options().create(true).append(true).open(self.log());
        command.stdin(Stdio::null()).stderr(Stdio::null()).stdout(log.expect("a log"));
        self.processes.push(Running::start(&mut command));
        let at = self.at;
        eventually("the authority listens", || std::net::TcpStream::connect(at).is_ok());
    }

    /// How many orders it has got, and how many certificates it has issued.
    pub fn orders(&self) -> (usize, usize) {
        let log = self.said();
        (log.matches("Added order ").count(), log.matches("Issued certificate serial ").count())
    }

    /// How many accounts it has.
    pub fn accounts(&self) -> usize {
        self.said().matches(" accounts in memory").count()
    }

    fn said(&self) -> String {
        fs::read_to_string(self.log()).unwrap_or_default()
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("pebble.log")
    }

    /// Has it suggest another certificate at once, as before a revocation. `false` says SKIP, because this pebble is too
    /// old for RFC 9773.
    pub fn suggest_another(&self, chain: &str) -> bool {
        let curl = |arguments: &[&str]| {
            let mut command = Command::new("curl");
            command.args(["-ksf", "--max-time", "10"]).args(arguments);
            command.output().map(|output| output.stdout).unwrap_or_default()
        };
        let directory = curl(&[&self.directory()]);
        if !String::from_utf8_lossy(&directory).contains("renewalInfo") {
            say("SKIP", "this pebble has no renewal information");
            return false;
        }
        let first = chain.find("-----BEGIN CERTIFICATE").and_then(|begin| chain.get(begin..));
        let window =
            r#"{"suggestedWindow":{"start":"2020-01-01T00:00:00Z","end":"2020-01-02T00:00:00Z"}}"#;
        let said = serde_json::json!({ "certificate": first, "ariResponse": window }).to_string();
        let url = format!("https://{}/set-renewal-info/", self.management);
        curl(&["-d", &said, "-H", "Content-Type: application/json", &url]);
        true
    }

    fn start_names(&mut self) {
        let mut command = Command::new("pebble-challtestsrv");
        command.args(["-dns01", &self.names.to_string(), "-management", &self.records.to_string()]);
        command.args(["-defaultIPv4", &self.options.looks_at.0.ip().to_string()]);
        command.args(["-defaultIPv6", "", "-http01", "", "-https01", "", "-tlsalpn01", ""]);
        self.processes.push(quiet(&mut command));
        let at = self.records;
        eventually("the name server runs", || std::net::TcpStream::connect(at).is_ok());
    }
}

/// Another build of it, if one is named.
fn program() -> String {
    std::env::var("AFPA_PEBBLE").unwrap_or_else(|_| "pebble".to_owned())
}

fn is_installed(program: &str) -> bool {
    let looked = Command::new("which").arg(program).stdout(Stdio::null()).status();
    looked.is_ok_and(|status| status.success())
}

fn quiet(command: &mut Command) -> Running {
    Running::start(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()))
}
