//! The manager alone, with a clock of the test's own.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use afpa_acme::{
    AcmeSettings, Answer, ChallengeKind, Challenges, Facts, Manager, OnDemand, Pace, Shared,
    StateFolder, Status,
};
use afpa_testkit::server::free_listener;
use afpa_testkit::{eventually, eventually_within};
use afpa_tests::pebble::{Options, Pebble};
use tempfile::TempDir;

const DAY: u64 = 24 * 3600;
/// An order is several exchanges, and some of their nonces are refused.
const ORDER: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);

/// A state folder, and a port 80 at which challenges are answered.
struct Bed {
    folder: TempDir,
    shared: Shared,
    at: SocketAddr,
    /// Seconds by which the clock is ahead.
    ahead: Arc<AtomicU64>,
    /// How long the authority may be silent.
    patience: Duration,
    /// How often the manager looks at the clock.
    look: Duration,
}

impl Bed {
    fn new() -> Self {
        let listener = free_listener();
        let at = listener.local_addr().expect("an address");
        let shared = Shared::default();
        let shown = shared.challenges.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                answer(stream, &shown);
            }
        });
        let folder = tempfile::tempdir().expect("a folder");
        Self { folder, shared, at, ahead: Arc::default(), patience: ORDER, look: LOOK }
    }

    fn authority(&self) -> Option<Pebble> {
        let options = Options { looks_at: (self.at, 1), validity: 90 * DAY, refused_nonces: 5 };
        Pebble::start(options)
    }

    fn settings(&self, pebble: &Pebble, names: &[&[&str]]) -> AcmeSettings {
        AcmeSettings {
            directory: pebble.directory(),
            directory_ca: Some(pebble.directory_ca()),
            certificates: names
                .iter()
                .map(|names| names.iter().map(|&n| n.into()).collect())
                .collect(),
            ..AcmeSettings::new(self.state())
        }
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("acme")
    }

    fn start(&self, settings: AcmeSettings) -> Manager {
        let challenges = self.shared.challenges.clone();
        self.start_with(settings, Shared { challenges, ..Shared::default() })
    }

    fn start_with(&self, settings: AcmeSettings, shared: Shared) -> Manager {
        let state = StateFolder::prepare(&settings.state, None).expect("a folder");
        let ahead = Arc::clone(&self.ahead);
        let pace = Pace {
            clock: Arc::new(move || now() + ahead.load(Ordering::Relaxed)),
            look: self.look,
            patience: self.patience,
        };
        let mut manager = Manager::start(settings, state, shared, pace).expect("started");
        manager.begin();
        manager
    }

    fn wait(&self, seconds: u64) {
        self.ahead.fetch_add(seconds, Ordering::Relaxed);
    }

    /// Waits for certificate `count`. An order can fail by chance, when several nonces in a row are refused.
    #[track_caller]
    fn issued(&self, manager: &Manager, count: u64) {
        let mut failures = 0;
        eventually_within(ORDER, &format!("certificate {count}"), || {
            let status = only(manager);
            if status.failures > failures {
                failures = status.failures;
                self.wait(3600);
            }
            status.issued == count
        });
    }

    fn chain(&self, name: &str) -> Vec<u8> {
        fs::read(self.state().join(format!("{name}.pem"))).expect("a certificate")
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs()
}

fn answer(mut stream: std::net::TcpStream, challenges: &Challenges) {
    let mut head = [0; 4096];
    let n = stream.read(&mut head).unwrap_or(0);
    let head = String::from_utf8_lossy(head.get(..n).unwrap_or_default()).into_owned();
    let target = head.split(' ').nth(1).unwrap_or_default();
    let token = target.strip_prefix(Challenges::PATH).unwrap_or_default();
    let (status, content) = match challenges.response(token) {
        Some(content) => ("200 OK", content),
        None => ("404 Not Found", Arc::from("")),
    };
    let length = content.len();
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{content}"
    );
}

fn only(manager: &Manager) -> Status {
    manager.statuses().into_iter().next().unwrap_or_default()
}

#[test]
fn a_certificate_comes_and_is_renewed_in_time() {
    let bed = Bed::new();
    let Some(pebble) = bed.authority() else { return };
    let manager = bed.start(bed.settings(&pebble, &[&["www.a.test", "a.test"]]));
    bed.issued(&manager, 1);
    let first = bed.chain("www.a.test");
    let facts = Facts::read(&first).expect("a certificate");
    assert!(facts.is_for(&["a.test".to_owned(), "www.a.test".to_owned()]), "{facts:?}");
    let text = String::from_utf8(first.clone()).expect("PEM");
    assert!(text.starts_with("-----BEGIN PRIVATE KEY-----"), "{text}");
    assert_eq!(text.matches("BEGIN CERTIFICATE").count(), 2, "the whole chain");

    let status = only(&manager);
    assert_eq!(status.not_after, Some(facts.lifetime.not_after));
    let days = (status.next - now()) / DAY;
    assert!((55..=61).contains(&days), "the next one in {days} days");
    // It is there again at a restart, and nothing is ordered.
    drop(manager);
    let manager = bed.start(bed.settings(&pebble, &[&["www.a.test", "a.test"]]));
    eventually("it was looked at", || only(&manager).not_after == status.not_after);
    assert_eq!(bed.chain("www.a.test"), first);

    bed.wait(75 * DAY);
    bed.issued(&manager, 1);
    let second = bed.chain("www.a.test");
    assert_ne!(second, first);
    // Other names are another certificate.
    drop(manager);
    let manager = bed.start(bed.settings(&pebble, &[&["www.a.test", "b.test"]]));
    bed.issued(&manager, 1);
    let third = Facts::read(&bed.chain("www.a.test")).expect("a certificate");
    assert_eq!(third.names.iter().filter(|name| *name == "b.test").count(), 1);
}

#[test]
fn an_authority_that_is_down_costs_nothing_but_a_warning() {
    let bed = Bed::new();
    let Some(mut pebble) = bed.authority() else { return };
    let manager = bed.start(bed.settings(&pebble, &[&["a.test"]]));
    bed.issued(&manager, 1);
    let first = bed.chain("a.test");
    pebble.end();
    bed.wait(75 * DAY);
    eventually("it failed", || only(&manager).failures == 1);
    assert_eq!(bed.chain("a.test"), first, "the old one stays");
    assert!(only(&manager).error.is_some());
    // Attempts become rare: 720 minutes apart at most, and 1, 2, 4 ... in the beginning.
    for failures in 2..=12 {
        bed.wait(15 * 3600);
        eventually("it failed again", || only(&manager).failures == failures);
    }
    pebble.begin();
    bed.wait(15 * 3600);
    bed.issued(&manager, 2);
    let status = only(&manager);
    assert_eq!((status.failures, status.error), (0, None));
    assert_ne!(bed.chain("a.test"), first);
}

#[test]
fn a_certificate_that_the_folder_does_not_take_is_not_ordered_again() {
    let bed = Bed::new();
    let Some(mut pebble) = bed.authority() else { return };
    let settings = bed.settings(&pebble, &[&["a.test"]]);
    StateFolder::prepare(&settings.state, None).expect("a folder");
    // A folder stands where the file is written, as a full disk would.
    let obstacle = bed.state().join("a.test.next");
    fs::create_dir(&obstacle).expect("made");
    let manager = bed.start(settings);
    let mut failures = 0;
    eventually_within(ORDER, "it is not stored", || {
        let Status { failures: now, error, .. } = only(&manager);
        let is_unstored = error.is_some_and(|error| error.contains("a.test.pem"));
        // An order can fail by chance.
        if now > failures && !is_unstored {
            bed.wait(3600);
        }
        failures = now;
        is_unstored
    });
    pebble.end();
    fs::remove_dir(&obstacle).expect("removed");
    bed.wait(15 * 3600);
    bed.issued(&manager, 1);
    assert!(Facts::read(&bed.chain("a.test")).is_ok());
}

#[test]
fn an_authority_that_says_nothing_is_asked_again() {
    let bed = Bed { patience: Duration::from_millis(200), ..Bed::new() };
    let silent = free_listener();
    let directory = format!("https://{}/directory", silent.local_addr().expect("an address"));
    let certificates = vec![vec!["a.test".to_owned()], vec!["b.test".to_owned()]];
    let settings = AcmeSettings { directory, certificates, ..AcmeSettings::new(bed.state()) };
    let manager = bed.start(settings);
    for failures in 1..=3 {
        eventually_within(ORDER, "both were given up", || {
            manager.statuses().len() == 2
                && manager.statuses().iter().all(|status| status.failures == failures)
        });
        bed.wait(3600);
    }
    let error = only(&manager).error.expect("an error");
    assert!(error.contains("not answered"), "{error}");
}

/// A reload begins another manager while a client waits: that one has to end the waiting.
#[test]
fn what_a_client_waits_for_is_ordered_by_the_next_manager() {
    let mut bed = Bed { patience: Duration::from_secs(60), ..Bed::new() };
    let silent = free_listener();
    let directory = format!("https://{}/directory", silent.local_addr().expect("an address"));
    let on_demand = OnDemand { names: vec!["a.test".into()], most: 10, per_hour: 10 };
    let settings = AcmeSettings { directory, on_demand, ..AcmeSettings::new(bed.state()) };
    let first = bed.start_with(settings.clone(), bed.shared.clone());
    assert_eq!(bed.shared.demand.ask("a.test", now()), Answer::Wait);
    let _asked = silent.accept().expect("the authority is asked");
    drop(first);
    assert_eq!(bed.shared.demand.ask("a.test", now()), Answer::Wait, "nobody has given it up");
    bed.patience = Duration::from_millis(200);
    let demand = &bed.shared.demand;
    let _second = bed.start_with(settings, bed.shared.clone());
    eventually("it is given up", || demand.ask("a.test", now()) == Answer::GoOn);
}

#[test]
fn no_name_waits_for_the_order_of_another_one() {
    // Those that ask within one look of the first order are ordered beside it.
    let long = Duration::from_secs(3600);
    let bed = Bed { patience: long, look: long, ..Bed::new() };
    let Some(pebble) = bed.authority() else { return };
    let mut settings = bed.settings(&pebble, &[&["a.test"]]);
    let manager = bed.start(settings.clone());
    bed.issued(&manager, 1);
    drop(manager);
    // Another one, which says nothing, at the place of the authority that has the account.
    let at = pebble.directory().replace("https://", "").replace("/dir", "");
    drop(pebble);
    let silent = TcpListener::bind(at).expect("bound");
    silent.set_nonblocking(true).expect("set");
    (settings.certificates, settings.directory_ca) = (Vec::new(), None);
    let names = vec!["*.d.test".to_owned()];
    settings.on_demand = OnDemand { names, most: 10, per_hour: 10 };
    let _manager = bed.start_with(settings, bed.shared.clone());
    let mut asked = Vec::new();
    for (count, name) in ["x.d.test", "y.d.test", "z.d.test"].into_iter().enumerate() {
        assert_eq!(bed.shared.demand.ask(name, now()), Answer::Wait);
        eventually_within(ORDER, "the authority is asked for it", || {
            asked.extend(silent.accept().ok());
            asked.len() > count
        });
    }
}

#[test]
fn a_certificate_that_will_be_revoked_is_replaced() {
    let bed = Bed::new();
    let Some(pebble) = bed.authority() else { return };
    let manager = bed.start(bed.settings(&pebble, &[&["a.test"]]));
    bed.issued(&manager, 1);
    let first = String::from_utf8(bed.chain("a.test")).expect("PEM");
    if pebble.suggest_another(&first) {
        // It asks again when what it knows is a day old at most.
        bed.wait(DAY);
        bed.issued(&manager, 2);
    }
}

#[test]
fn two_processes_of_one_folder_order_once() {
    let bed = Bed::new();
    let Some(pebble) = bed.authority() else { return };
    let settings = bed.settings(&pebble, &[&["a.test"]]);
    let managers = [bed.start(settings.clone()), bed.start(settings)];
    eventually_within(ORDER, "both know a certificate", || {
        if managers.iter().any(|manager| only(manager).failures > 0) {
            bed.wait(60);
        }
        managers.iter().all(|manager| only(manager).not_after.is_some())
    });
    let issued: u64 = managers.iter().map(|manager| only(manager).issued).sum();
    assert_eq!(issued, 1);
}

#[test]
fn a_name_that_is_not_ours_is_told() {
    let bed = Bed::new();
    let Some(pebble) = bed.authority() else { return };
    let mut settings = bed.settings(&pebble, &[&["a.test"], &["b.test"]]);
    // No server answers on the port that the authority checks for TLS-ALPN-01.
    settings.challenge = ChallengeKind::TlsAlpn01;
    let manager = bed.start(settings);
    eventually_within(ORDER, "both failed", || {
        let statuses = manager.statuses();
        statuses.len() == 2 && statuses.iter().all(|status| status.failures == 1)
    });
    let error = only(&manager).error.expect("an error");
    assert!(error.contains("a.test") && error.contains("connect"), "{error}");
    assert_eq!(bed.shared.challenges.certificate("a.test"), None, "nothing is shown any more");
}

#[test]
fn the_dns_is_set_by_a_program_also_for_a_wildcard() {
    let bed = Bed::new();
    let Some(pebble) = bed.authority() else { return };
    let mut settings = bed.settings(&pebble, &[&["*.a.test"]]);
    settings.challenge = ChallengeKind::Dns01;
    settings.dns_program = Some(pebble.dns_program());
    let manager = bed.start(settings.clone());
    bed.issued(&manager, 1);
    let facts = Facts::read(&bed.chain("_.a.test")).expect("a certificate");
    assert_eq!(facts.names, ["*.a.test"]);
    let log = pebble.dns_log();
    let said: Vec<&str> = log.lines().collect();
    assert_eq!(said, ["present _acme-challenge.a.test", "cleanup _acme-challenge.a.test"]);
    drop(manager);

    settings.dns_program = Some("/bin/false".into());
    settings.certificates = vec![vec!["*.b.test".to_owned()]];
    let manager = bed.start(settings);
    eventually_within(ORDER, "it failed", || only(&manager).failures == 1);
    let error = only(&manager).error.expect("an error");
    assert!(error.contains("/bin/false present failed"), "{error}");
}

#[test]
fn an_account_that_the_authority_has_forgotten_is_told_with_its_file() {
    let bed = Bed::new();
    let Some(pebble) = bed.authority() else { return };
    let settings = bed.settings(&pebble, &[&["a.test"]]);
    drop(bed.start(settings.clone()));
    let file = spoiled_account(&bed.state(), &pebble);
    let manager = bed.start(settings);
    eventually_within(ORDER, "it failed", || only(&manager).failures == 1);
    let error = only(&manager).error.expect("an error");
    assert!(error.contains(&file.display().to_string()), "{error}");
}

fn spoiled_account(state: &Path, pebble: &Pebble) -> PathBuf {
    let bare: String = pebble.directory().trim_start_matches("https://").replace([':', '/'], "-");
    let file = state.join(format!("account-{bare}.json"));
    fs::write(&file, "{}").expect("written");
    file
}
