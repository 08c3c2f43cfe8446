//! Certificates for tests, and a way by which clients that know no TLS reach a server that does.

mod way;

use std::fs;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use afpa_testkit::server::free_address;
use afpa_testkit::{Endpoint, Launch, Server, eventually};
use afpa_tls::certificate::read_chain;
use afpa_tls::{ClientSettings, ClientTls, Verify};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::Value;
use tempfile::TempDir;
pub use way::Way;

/// An authority, and a folder for the certificates that it issues.
pub struct Authority {
    folder: TempDir,
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// The files of a certificate.
#[derive(Clone, Debug)]
pub struct Files {
    /// The chain.
    pub chain: PathBuf,
    /// The key.
    pub key: PathBuf,
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Authority {
    /// An authority that nobody else trusts.
    ///
    /// # Panics
    /// When its files cannot be written.
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("afpa-pki-").tempdir().expect("a folder");
        // The server reads them again when it is another user.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("rights");
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "Authority of a test");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        fs::write(folder.path().join("ca.pem"), &pem).expect("written");
        fs::write(folder.path().join("ca.key"), key.serialize_pem()).expect("written");
        Self { folder, issuer: Issuer::new(params, key), pem }
    }

    /// Its own certificate.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// The folder of its files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Issues a certificate for these names, in files of this name.
    pub fn issue(&self, name: &str, names: &[&str]) -> Files {
        self.issue_with(name, names, |_| {})
    }

    /// As [`issue`](Self::issue), with changes.
    ///
    /// # Panics
    /// When the files cannot be written.
    pub fn issue_with(
        &self,
        name: &str,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> Files {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.distinguished_name = Default::default();
        params.distinguished_name.push(DnType::CommonName, name);
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        let own = params.signed_by(&key, &self.issuer).expect("a certificate").pem();
        let place = |ending: &str| self.folder.path().join(format!("{name}.{ending}"));
        let files = Files { chain: place("pem"), key: place("key") };
        fs::write(&files.chain, format!("{own}{}", self.pem)).expect("written");
        fs::write(&files.key, key.serialize_pem()).expect("written");
        files
    }

    /// Says in a file of this name, as a responder of OCSP does, that a certificate is good.
    ///
    /// # Panics
    /// When openssl cannot say so.
    pub fn staple(&self, name: &str, certificate: &Files) -> PathBuf {
        let place = |ending: &str| self.folder.path().join(format!("{name}.{ending}"));
        let openssl = |arguments: &[&str]| {
            let mut command = Command::new("openssl");
            let output = command.current_dir(self.folder()).args(arguments).output();
            let output = output.expect("openssl runs");
            let said =
                String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            assert!(output.status.success(), "{arguments:?}: {said}");
            said
        };
        let chain = certificate.chain.display().to_string();
        let said = openssl(&["x509", "-in", &chain, "-noout", "-serial"]);
        let serial = said.trim().rsplit('=').next().unwrap_or_default().to_owned();
        // A line of openssl's data base: valid, until when, the serial number.
        let line = format!("V\t401231235959Z\t\t{serial}\tunknown\t/CN={name}\n");
        fs::write(place("index"), line).expect("written");
        let (request, response) = (place("request"), place("staple"));
        let (asked, said) = (request.display().to_string(), response.display().to_string());
        openssl(&["ocsp", "-issuer", "ca.pem", "-cert", &chain, "-reqout", &asked, "-no_nonce"]);
        let index = place("index").display().to_string();
        openssl(&[
            "ocsp", "-index", &index, "-CA", "ca.pem", "-rsigner", "ca.pem", "-rkey", "ca.key",
            "-reqin", &asked, "-respout", &said, "-ndays", "7",
        ]);
        response
    }

    /// A client that trusts it.
    ///
    /// # Panics
    /// When it does not trust itself.
    pub fn client(&self, change: impl FnOnce(&mut ClientSettings)) -> ClientTls {
        let roots = read_chain(self.pem.as_bytes()).expect("its own");
        let verify = Verify::Authorities(roots);
        let mut settings = ClientSettings { verify, ..ClientSettings::default() };
        change(&mut settings);
        ClientTls::new(&settings, &[]).expect("a client")
    }

    /// A way to a server for clients that know no TLS.
    pub fn way(&self, server: &TlsServer) -> Way {
        Way::to(server.tls, self.client(|_| {}), "localhost")
    }
}

impl Files {
    /// A section `[[certificate]]`.
    pub fn section(&self) -> String {
        let (chain, key) = (self.chain.display(), self.key.display());
        format!("[[certificate]]\nchain = \"{chain}\"\nkey = \"{key}\"\n")
    }
}

/// A server with one address for plain HTTP, and one for TLS.
pub struct TlsServer {
    /// The server; its own clients are those of plain HTTP.
    pub server: Server,
    /// The address for TLS.
    pub tls: SocketAddr,
}

/// The configuration of a server for TLS.
pub struct Plan {
    /// Sections before that of the site.
    pub sections: String,
    /// Keys of the site.
    pub site: String,
    /// More to be changed.
    pub launch: Box<dyn FnOnce(&mut Launch)>,
}

impl Default for Plan {
    fn default() -> Self {
        Self { sections: String::new(), site: String::new(), launch: Box::new(|_| {}) }
    }
}

impl TlsServer {
    /// Serves `root` with a certificate for localhost.
    #[track_caller]
    pub fn start(authority: &Authority, root: &Path) -> Self {
        Self::with(authority, root, Plan::default())
    }

    /// As [`start`](Self::start), with changes.
    #[track_caller]
    pub fn with(authority: &Authority, root: &Path, plan: Plan) -> Self {
        let files = authority.issue("localhost", &["localhost", "127.0.0.1"]);
        let root_key = format!("root = \"{}\"", root.display());
        let site = format!("{root_key}\n{}", plan.site);
        let sections = format!("{}\n{}", plan.sections, files.section());
        Self::written(root, |plain, tls| {
            let Plan { launch, .. } = plan;
            let listen = format!("listen = [\"{plain}\"]\ntls = [\"{tls}\"]");
            (format!("{sections}\n[[site]]\n{listen}\n{site}\n"), launch)
        })
    }

    /// With a configuration of its own, made from the addresses for plain HTTP and for TLS.
    #[track_caller]
    pub fn written(
        root: &Path,
        text: impl FnOnce(&Endpoint, SocketAddr) -> (String, Box<dyn FnOnce(&mut Launch)>),
    ) -> Self {
        let tls = free_address();
        let server = Server::start(root, |launch| {
            let mut change = None;
            launch.written(|plain| {
                let (text, launch) = text(plain, tls);
                change = Some(launch);
                text
            });
            if let Some(change) = change {
                change(launch);
            }
        });
        eventually("the address for TLS is open", || TcpStream::connect(tls).is_ok());
        Self { server, tls }
    }

    /// An URL of it over TLS.
    pub fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.tls.port())
    }

    /// Runs curl, which trusts the authority, with more arguments. Returns whether it succeeded, and its output.
    #[track_caller]
    pub fn curl(&self, authority: &Authority, arguments: &[&str]) -> (bool, Vec<u8>) {
        let place = format!("localhost:{}:{}", self.tls.port(), self.tls.ip());
        let output = Command::new("curl")
            .args(["-sS", "--max-time", "20", "--resolve", &place, "--cacert"])
            .arg(authority.path())
            .args(arguments)
            .output()
            .expect("curl runs");
        (output.status.success(), [output.stdout, output.stderr].concat())
    }

    /// Runs `openssl s_client` with more arguments and this input. Returns its output.
    #[track_caller]
    pub fn openssl(&self, authority: &Authority, arguments: &[&str], input: &str) -> String {
        let mut child = Command::new("timeout")
            .args(["60", "openssl", "s_client", "-connect", &self.tls.to_string(), "-CAfile"])
            .arg(authority.path())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("openssl runs");
        // It may have ended already, which its words tell.
        let _ = child.stdin.take().map(|mut pipe| pipe.write_all(input.as_bytes()));
        let output = child.wait_with_output().expect("it ends");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }

    /// A number of the statistics, by its place in them.
    #[track_caller]
    pub fn number(&self, path: &str) -> u64 {
        let output = self.server.command(&["stats", "--json"]);
        let stats: Value = serde_json::from_slice(&output.stdout).expect("statistics");
        stats.pointer(path).and_then(Value::as_u64).unwrap_or_default()
    }
}
