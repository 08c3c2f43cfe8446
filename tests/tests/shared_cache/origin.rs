//! A server that answers as a function says, and counts what it is asked.

use std::collections::HashMap;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use afpa_testkit::Server;
use afpa_testkit::server::free_address;
use afpa_tests::proxy::{Raw, read_content, read_head};

/// A request as the server got it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Its number for this target, from 1 on.
    pub(crate) number: usize,
    pub(crate) method: String,
    pub(crate) target: String,
    fields: Vec<(String, String)>,
}

impl Asked {
    /// The values of a field, joined.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        let lines = self.fields.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        let values: Vec<&str> = lines.map(|(_, value)| value.as_str()).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }
}

/// The server's reaction to a request.
pub(crate) enum Reply {
    /// Writes these bytes, and goes on.
    Bytes(Vec<u8>),
    /// Writes these bytes, and ends the connection.
    Last(Vec<u8>),
    /// Does something with the connection, and ends it.
    With(Box<dyn FnOnce(&mut TcpStream) + Send>),
}

/// The server.
pub(crate) struct Origin {
    raw: Raw,
    asked: Arc<Mutex<HashMap<String, Vec<Asked>>>>,
}

impl Origin {
    pub(crate) fn start(reply: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_at(SocketAddr::new(free_address().ip(), 0), reply)
    }

    /// The same, at this address.
    pub(crate) fn start_at(
        address: SocketAddr,
        reply: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let asked: Arc<Mutex<HashMap<String, Vec<Asked>>>> = Arc::default();
        let noted = Arc::clone(&asked);
        let raw = Raw::start_at(address, move |mut stream| {
            while let Some(head) = read_head(&mut stream) {
                let request = note(&noted, &head);
                if read_content(&mut stream, &head).is_none() {
                    return;
                }
                let sent = match reply(&request) {
                    Reply::Bytes(bytes) => stream.write_all(&bytes).is_ok(),
                    Reply::Last(bytes) => {
                        let _written = stream.write_all(&bytes);
                        false
                    }
                    Reply::With(act) => {
                        act(&mut stream);
                        false
                    }
                };
                if !sent {
                    return;
                }
            }
        });
        Self { raw, asked }
    }

    /// How often a target was asked for.
    pub(crate) fn count(&self, target: &str) -> usize {
        self.asked.lock().expect("no panic").get(target).map_or(0, Vec::len)
    }

    /// The requests for a target.
    pub(crate) fn requests(&self, target: &str) -> Vec<Asked> {
        self.asked.lock().expect("no panic").get(target).cloned().unwrap_or_default()
    }

    pub(crate) fn to(&self) -> String {
        self.raw.to()
    }

    /// A proxy before it. `cache`: the lines of `[site.cache]`.
    pub(crate) fn proxy(&self, cache: &str) -> Server {
        self.proxy_within(64 << 20, cache)
    }

    /// The same, with a shared cache of so many bytes.
    pub(crate) fn proxy_within(&self, limit: usize, cache: &str) -> Server {
        let to = self.to();
        Server::start("/", |launch| {
            launch
                .written(|listen| {
                    format!(
                        "[limits]\nconnections = 20000\nconnections_per_client = 20000\n\n\
                         [shared_cache]\nlimit = \"{limit}B\"\n\n[[site]]\nlisten = [\"{listen}\"]\n\
                         to = \"{to}\"\n\n[site.cache]\n{cache}\n"
                    )
                })
                .admin();
        })
    }
}

fn note(noted: &Mutex<HashMap<String, Vec<Asked>>>, head: &str) -> Asked {
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
    let (method, target) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
    let fields = lines.filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_owned(), value.trim().to_owned()))
    });
    let mut noted = noted.lock().expect("no panic");
    let list = noted.entry(target.clone()).or_default();
    let asked = Asked { number: list.len() + 1, method, target, fields: fields.collect() };
    list.push(asked.clone());
    asked
}

/// An answer with these field lines, each with its CRLF.
pub(crate) fn ok(fields: &str, content: &str) -> Reply {
    Reply::Bytes(message(200, fields, content))
}

pub(crate) fn message(status: u16, fields: &str, content: &str) -> Vec<u8> {
    let length = content.len();
    let head = format!("HTTP/1.1 {status} X\r\n{fields}Content-Length: {length}\r\n\r\n");
    [head.as_bytes(), content.as_bytes()].concat()
}
