//! Clients that ask all the time and remember every answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use afpa_testkit::response::Asked;
use afpa_testkit::{Client, Endpoint, Server, eventually_within};

/// One request and its answer.
#[derive(Clone, Debug)]
pub struct Sample {
    /// When it was asked.
    pub at: Instant,
    /// How long it took.
    pub took: Duration,
    /// Status and content; an error when there was no whole answer.
    pub answer: Result<(u16, String), String>,
}

/// Requests for `/` on several connections, until the test ends it.
#[derive(Debug)]
pub struct Traffic {
    over: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
    clients: Vec<JoinHandle<Vec<Sample>>>,
}

/// Requests of all clients together, at most: traffic is bounded.
const MOST: usize = 200_000;

impl Traffic {
    /// `clients` of them, each with a pause of some milliseconds between two requests.
    pub fn start(server: &Server, clients: usize, pause: Duration) -> Self {
        let (over, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let client = |_| {
            let endpoint = server.endpoint().clone();
            let (over, asked) = (Arc::clone(&over), Arc::clone(&asked));
            std::thread::spawn(move || ask_until(&endpoint, pause, &over, &asked))
        };
        let clients = (0..clients).map(client).collect();
        Self { over, asked, clients }
    }

    /// Waits until `count` more requests were asked.
    #[track_caller]
    pub fn pass(&self, count: usize) {
        let from = self.asked.load(Ordering::Relaxed);
        eventually_within(Duration::from_secs(30), "traffic goes on", || {
            self.asked.load(Ordering::Relaxed) >= from + count
        });
    }

    /// Ends it, and gives what was seen, in order of time.
    ///
    /// # Panics
    /// When a client did.
    pub fn end(self) -> Vec<Sample> {
        self.over.store(true, Ordering::Relaxed);
        let clients = self.clients.into_iter();
        let mut samples: Vec<_> =
            clients.flat_map(|client| client.join().expect("a client")).collect();
        samples.sort_by_key(|sample| sample.at);
        samples
    }
}

fn ask_until(
    endpoint: &Endpoint,
    pause: Duration,
    over: &AtomicBool,
    asked: &AtomicUsize,
) -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut connection = None;
    while !over.load(Ordering::Relaxed) && asked.fetch_add(1, Ordering::Relaxed) < MOST {
        let at = Instant::now();
        let answer = ask(endpoint, &mut connection);
        samples.push(Sample { at, took: at.elapsed(), answer });
        std::thread::sleep(pause);
    }
    samples
}

fn ask(endpoint: &Endpoint, connection: &mut Option<Client>) -> Result<(u16, String), String> {
    let mut client = match connection.take() {
        Some(client) => client,
        None => Client::connect(endpoint).map_err(|error| error.to_string())?,
    };
    client.try_send("GET / HTTP/1.1\r\nHost: site\r\n\r\n").map_err(|error| error.to_string())?;
    let response = client.try_receive(Asked::Body).map_err(|error| error.to_string())?;
    if !response.says_close() {
        *connection = Some(client);
    }
    Ok((response.status, String::from_utf8_lossy(&response.body).trim().to_owned()))
}
