//! The PROXY protocol to servers: nginx reads it, and says whom it names.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use afpa_testkit::server::{free_address, program};
use afpa_testkit::{Client, Endpoint, Running, Server, eventually, nginx, skip};
use afpa_tests::h2::H2Client;

/// An nginx that takes connections with the PROXY protocol alone, over TCP.
struct Nginx {
    to: String,
    _running: Running,
    folder: tempfile::TempDir,
}

impl Nginx {
    fn start() -> Option<Self> {
        if !Path::new(nginx::PROGRAM).exists() {
            return None;
        }
        let folder = tempfile::Builder::new().prefix("afpa-nginx").tempdir().expect("a folder");
        let to = free_address();
        let server = format!(
            "listen {to} proxy_protocol;
             location / {{ return 200 \"$proxy_protocol_addr $proxy_protocol_port $proxy_protocol_server_port $http_connection\"; }}"
        );
        let at = folder.path().display();
        let http = format!("access_log {at}/access.log; default_type text/plain;");
        let main = "master_process off; events { worker_connections 64; }";
        let configuration = nginx::configuration(folder.path(), main, &http, &server);
        let path = folder.path().join("nginx.conf");
        fs::write(&path, configuration).expect("written");
        let mut command = Command::new(nginx::PROGRAM);
        command.arg("-c").arg(&path).stdin(Stdio::null()).stdout(Stdio::null());
        let running = Running::start(command.stderr(Stdio::null()));
        eventually("nginx listens", || std::net::TcpStream::connect(to).is_ok());
        Some(Self { to: to.to_string(), _running: running, folder })
    }

    /// Its log of connections whose header it could not read.
    fn complaints(&self) -> String {
        let log = fs::read_to_string(self.folder.path().join("error.log")).unwrap_or_default();
        log.lines().filter(|line| line.contains("broken header")).collect()
    }
}

fn serve(nginx: &Nginx, version: &str, settings: &str) -> Server {
    Server::start("/", |launch| {
        launch.written(|listen: &Endpoint| {
            format!(
                "http2.cleartext = true\n[[site]]\nlisten = [\"{listen}\"]\nto = \"app\"\n{settings}\n\
                 [[server_group]]\nname = \"app\"\nservers = [\"{}\"]\nproxy_protocol = \"{version}\"\n\
                 [server_group.health]\nprobe_every = \"100ms\"\n\
                 [server_group.check]\npath = \"/health\"\nevery = \"100ms\"\n",
                nginx.to
            )
        });
    })
}

#[test]
fn a_server_hears_of_each_client_with_its_port() {
    let Some(nginx) = Nginx::start() else { skip!("no nginx") };
    for version in ["v1", "v2"] {
        let server = serve(&nginx, version, "");
        let Endpoint::Tcp(address) = server.endpoint() else { panic!("it listens on TCP") };
        let mut clients: Vec<Client> = (0..2).map(|_| server.connect()).collect();
        for _ in 0..3 {
            for client in &mut clients {
                let port = client.tcp().local_addr().expect("an address").port();
                let answer = client.get("/");
                let wanted = format!("127.0.0.1 {port} {} close", address.port());
                assert_eq!((answer.status, answer.text()), (200, wanted.as_str()), "{version}");
            }
        }
        let mut client = H2Client::connect(&server);
        let answer = client.get("/");
        assert!(answer.text().starts_with("127.0.0.1 "), "{version}: {answer:?}");
    }
    assert_eq!(nginx.complaints(), "");
}

#[test]
fn a_client_that_a_router_names_has_no_port() {
    let Some(nginx) = Nginx::start() else { skip!("no nginx") };
    let server = serve(&nginx, "v2", "forwarded_from = [\"127.0.0.1\"]");
    let answer = server.connect().get_with("/", "X-Forwarded-For: 2001:db8::7\r\n");
    // nginx writes nothing for port 0.
    assert!(answer.text().starts_with("2001:db8::7  "), "{answer:?}");
}

#[test]
fn a_page_of_an_error_is_asked_for_in_the_name_of_nobody() {
    let Some(nginx) = Nginx::start() else { skip!("no nginx") };
    let page = "[[site.errors]]\nstatus = [404]\nto = \"app\"\npath = \"/page\"\n\
                [[site.path]]\nprefix = \"/none/\"\nstatus = 404\n";
    for version in ["v1", "v2"] {
        let server = serve(&nginx, version, page);
        let answer = server.connect().get("/none/");
        assert_eq!((answer.status, answer.text().trim_start()), (404, "close"), "{version}");
    }
    assert_eq!(nginx.complaints(), "");
}

#[test]
fn many_requests_cannot_share_a_connection_that_names_one_client() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("afpa.toml");
    let text = "[[site]]\nto = \"app\"\n[[server_group]]\nname = \"app\"\nservers = [\"127.0.0.1:9\"]\n\
                http2 = true\nproxy_protocol = \"v1\"\n";
    fs::write(&path, text).expect("written");
    let output = Command::new(program()).arg("check").arg(&path).output();
    let output = output.expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("afpa.toml:7:") && said.contains("`http2` has many share"), "{said}");
}
