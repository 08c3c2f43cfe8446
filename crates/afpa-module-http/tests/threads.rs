//! The same module under another table of states: every answer is sent in a thread context.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use afpa_cache::root::{DocumentRoot, RootSettings};
use afpa_cache::{Arena, CacheSettings};
use afpa_framework::{Diagram, Table, Threads};
use afpa_module_http::NoAccessLog;
use afpa_module_http::{DocRoot, DocRootSettings, Global, Http, HttpCounters};
use afpa_server::worker::WorkerContext;
use afpa_server::{Address, BoundListener, Engine, ListenerSettings, Settings};

struct Rig<T: Table> {
    engine: Engine<Http<T>>,
    address: SocketAddr,
}

impl<T: Table> Rig<T> {
    fn serving(root: &Path) -> Self {
        let arena = Arena::new(16 << 20).expect("an arena");
        let root = DocumentRoot::open(root, RootSettings::default()).expect("a root");
        let cache = CacheSettings { pin_threshold: 8 << 20, ..CacheSettings::default() };
        let site =
            DocRoot::open(root, DocRootSettings::default(), cache, Default::default(), arena);
        let global = Global::alone(site.expect("a site"));
        let module = move |context: WorkerContext| {
            let (counters, log) = (Arc::new(HttpCounters::default()), Box::new(NoAccessLog));
            let global = Arc::clone(&global);
            Http::<T>::new(global, counters, log, Default::default(), context.wake)
        };
        let mut engine = Engine::start(&Settings::default(), 32 * 1024, module).expect("starts");
        let any = "127.0.0.1:0".parse().expect("an address");
        let listener = BoundListener::bind(&any, 1, 128).expect("binds");
        let Address::Tcp(address) = listener.address else { panic!("tcp stays tcp") };
        engine.listen(listener.with(ListenerSettings::default())).expect("listens");
        Self { engine, address }
    }

    /// The answers to these bytes, whose last request ends the connection.
    fn ask(&self, requests: &str) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.address).expect("connects");
        stream.write_all(requests.as_bytes()).expect("sends");
        let mut answers = Vec::new();
        stream.read_to_end(&mut answers).expect("reads to the end");
        answers
    }

    /// How often a request or an answer has left for a thread.
    fn left(&self) -> u64 {
        self.engine.counters().iter().map(|counters| counters.left_for_thread.get()).sum()
    }
}

fn site() -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a folder");
    std::fs::write(root.path().join("a.txt"), "short").expect("a file");
    // More than a socket takes at once.
    std::fs::write(root.path().join("long.bin"), vec![b'x'; 6 << 20]).expect("a file");
    root
}

const KEPT: &str = "GET /a.txt HTTP/1.1\r\nHost: x\r\n\r\n";
const LAST: &str = "GET /a.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

/// All but the dates of the heads.
fn without_dates(answers: &[u8]) -> String {
    let text = String::from_utf8_lossy(answers);
    text.lines().filter(|line| !line.starts_with("Date: ")).collect::<Vec<_>>().join("\n")
}

#[test]
fn another_table_changes_where_an_answer_is_sent_and_nothing_else() {
    let root = site();
    let (interrupt, threads) =
        (Rig::<Diagram>::serving(root.path()), Rig::<Threads>::serving(root.path()));
    let long = "GET /long.bin HTTP/1.1\r\nHost: x\r\n\r\n";
    for requests in [
        LAST.to_owned(),
        [KEPT, KEPT, LAST].concat(),
        [long, LAST].concat(),
        [long, long, KEPT, LAST].concat(),
        format!("{KEPT}GET /none HTTP/1.1\r\nHost: x\r\n\r\n{LAST}"),
        format!("{KEPT}nonsense\r\n\r\n"),
    ] {
        let (one, other) = (interrupt.ask(&requests), threads.ask(&requests));
        assert_eq!(one.len(), other.len(), "{requests}");
        assert!(without_dates(&one) == without_dates(&other), "{requests}");
    }
}

#[test]
fn a_hit_leaves_for_a_thread_under_the_table_that_says_so_alone() {
    fn left_by_hits<T: Table>(root: &Path) -> u64 {
        let rig = Rig::<T>::serving(root);
        rig.ask(LAST);
        let before = rig.left();
        for _ in 0..5 {
            assert!(rig.ask(LAST).ends_with(b"short"));
        }
        rig.left() - before
    }
    let root = site();
    assert_eq!(left_by_hits::<Diagram>(root.path()), 0);
    assert_eq!(left_by_hits::<Threads>(root.path()), 5);
}
