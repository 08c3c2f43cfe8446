//! A collector of OpenTelemetry, with the receiver of its own code (`tests/collector`).

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use afpa_testkit::Running;
use serde_json::Value;

/// A running collector. Ended when dropped.
#[derive(Debug)]
pub struct Collector {
    url: String,
    requests: Arc<Mutex<Vec<Value>>>,
    _running: Running,
    _folder: tempfile::TempDir,
}

impl Collector {
    /// Builds it and starts it.
    ///
    /// # Errors
    /// Why this machine cannot build it: the test then says SKIP.
    ///
    /// # Panics
    /// When it is built and does not start.
    pub fn start() -> Result<Self, String> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("collector");
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
        let program = folder.path().join("collector");
        go(&["build", "-mod=readonly", "-o", &program.to_string_lossy(), "."])?;
        let mut command = Command::new(program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut running = Running::start(&mut command);
        let mut lines = BufReader::new(running.stdout().expect("its output")).lines();
        let address = lines.next().expect("an address").expect("text");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let line = serde_json::from_str(&line).expect("JSON");
                seen.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }
        });
        Ok(Self { url: format!("http://{address}"), requests, _running: running, _folder: folder })
    }

    /// Where it takes spans.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The content of all requests so far, one value for each resource.
    pub fn resources(&self) -> Vec<Value> {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let all = requests.iter().filter_map(|request| request["resourceSpans"].as_array());
        all.flatten().cloned().collect()
    }

    /// All spans so far.
    pub fn spans(&self) -> Vec<Value> {
        let of = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
        let scopes = self.resources().into_iter().flat_map(|resource| of(&resource, "scopeSpans"));
        scopes.flat_map(|scope| of(&scope, "spans")).collect()
    }
}

/// An attribute of a span or a resource; empty: it has none of the name.
pub fn attribute(value: &Value, key: &str) -> String {
    let all = value["attributes"].as_array().into_iter().flatten();
    let found = all.filter(|pair| pair["key"] == key).map(|pair| {
        let value = &pair["value"];
        value["stringValue"].as_str().or_else(|| value["intValue"].as_str()).unwrap_or_default()
    });
    found.collect()
}
