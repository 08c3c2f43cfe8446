//! A client of HTTP/3, with the transport and the streams of quic-go (`tests/quic`).

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::Value;
use tempfile::TempDir;

use crate::tls::Authority;

/// A running client. Its connections have names. Ended when dropped.
#[derive(Debug)]
pub struct QuicClient {
    child: std::process::Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl QuicClient {
    /// A client of a server with a certificate of this authority.
    ///
    /// # Errors
    /// Why this machine cannot build it: the test then says SKIP.
    ///
    /// # Panics
    /// When it is built and does not start.
    pub fn start(authority: &Authority, server: SocketAddr) -> Result<Self, String> {
        Self::start_with(authority, server, &[])
    }

    /// As [`start`](Self::start), with these variables in its environment.
    ///
    /// # Errors
    /// Why this machine cannot build it: the test then says SKIP.
    ///
    /// # Panics
    /// When it is built and does not start.
    pub fn start_with(
        authority: &Authority,
        server: SocketAddr,
        variables: &[(&str, &str)],
    ) -> Result<Self, String> {
        let folder = built()?;
        let mut command = Command::new(folder.path().join("quic"));
        command.envs(variables.iter().copied());
        command.arg(server.to_string()).arg(authority.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let orders = child.stdin.take().expect("its input");
        let answers = BufReader::new(child.stdout.take().expect("its output"));
        Ok(Self { child, orders, answers })
    }

    /// Gives it an order, a table of `tests/quic/main.go`, and does not wait.
    ///
    /// # Panics
    /// When it has ended.
    #[track_caller]
    pub fn order(&mut self, order: &Value) {
        writeln!(self.orders, "{order}").expect("it takes orders");
    }

    /// The answers to the order before.
    ///
    /// # Panics
    /// When it has ended.
    #[track_caller]
    pub fn answers(&mut self) -> Vec<Value> {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("it answers");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line:?}"))
    }

    /// Gives it an order, and waits for the answers.
    #[track_caller]
    pub fn all(&mut self, order: &Value) -> Vec<Value> {
        self.order(order);
        self.answers()
    }

    /// Gives it an order, and waits for the one answer.
    ///
    /// # Panics
    /// When there is none.
    #[track_caller]
    pub fn one(&mut self, order: &Value) -> Value {
        self.all(order).into_iter().next().expect("an answer")
    }

    /// Asks for a path on the connection `a`.
    #[track_caller]
    pub fn get(&mut self, path: &str) -> Value {
        self.one(&serde_json::json!({"do": "ask", "on": "a", "path": path}))
    }
}

impl Drop for QuicClient {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _status = self.child.wait();
    }
}

/// The folder of the program, which is built once.
fn built() -> Result<&'static TempDir, String> {
    static BUILT: OnceLock<Result<TempDir, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("quic");
        let go = |arguments: &[&str]| {
            let output = Command::new("go").args(arguments).current_dir(&source).output();
            let output = output.map_err(|error| format!("go: {error}"))?;
            match output.status.success() {
                true => Ok(()),
                false => Err(format!("go: {}", String::from_utf8_lossy(&output.stderr).trim())),
            }
        };
        go(&["mod", "download"])?;
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let program = folder.path().join("quic");
        go(&["build", "-mod=readonly", "-o", &program.to_string_lossy(), "."])?;
        Ok(folder)
    });
    built.as_ref().map_err(Clone::clone)
}

/// The sum that the client says of a content.
pub fn sum(content: &[u8]) -> String {
    let sum = digest(&SHA256, content);
    sum.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The first value of a field of an answer; empty: it has none of the name, which is as Go writes it.
pub fn field<'a>(answer: &'a Value, name: &str) -> &'a str {
    answer["fields"][name][0].as_str().unwrap_or_default()
}
