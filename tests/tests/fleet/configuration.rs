//! A configuration of the fleet reaches all machines, or is rolled back.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use afpa_testkit::server::free_address;
use afpa_testkit::{Client, Endpoint, Server, eventually_within};
use afpa_tests::proxy::Raw;
use base64::Engine as _;
use serde_json::Value;
use tempfile::TempDir;

use crate::bed::{Application, Nats, SOON, gather, look, machine_with, said};

/// A folder with the secret of a fleet, and with what is pushed to it.
pub(crate) struct Desk(TempDir);

/// A machine that takes configurations, with an address for a site that they have.
pub(crate) struct Taker {
    pub(crate) server: Server,
    pushed: SocketAddr,
}

impl Desk {
    pub(crate) fn new() -> Self {
        let desk = Self(tempfile::tempdir().expect("a folder"));
        // Machines become other users, who read the secret again at a reload. None of them is another user of this group.
        std::fs::set_permissions(desk.0.path(), PermissionsExt::from_mode(0o755)).expect("opened");
        let secret = desk.write("secret", &"s3cret".repeat(8));
        std::fs::set_permissions(secret, PermissionsExt::from_mode(0o640)).expect("closed");
        desk
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(&path, text).expect("written");
        path
    }

    /// A site that answers with a word at the address that each machine has for it.
    pub(crate) fn site(&self, word: &str) -> PathBuf {
        self.write("shared.toml", &site(&format!("status = 200\nbody = \"{word}\"")))
    }

    pub(crate) fn machine(
        &self,
        name: &str,
        urls: &str,
        application: &Application,
        more: &str,
    ) -> Taker {
        let pushed = free_address();
        let secret = self.0.path().join("secret").display().to_string();
        let lines = format!(
            "secret = \"{secret}\"\nconfiguration = true\nrollout_wait = \"1500ms\"\n{more}"
        );
        let variable = [("PUSHED", &*pushed.to_string())];
        let server = machine_with(name, urls, application, (&lines, ""), &variable);
        Taker { server, pushed }
    }
}

fn site(path: &str) -> String {
    format!(
        "[[site]]\nhosts = [\"*.pushed.test\"]\nlisten = [\"${{PUSHED}}\"]\n\n[[site.path]]\nprefix = \"/\"\n[[site.path.content]]\n{path}\n"
    )
}

impl Taker {
    /// The word of the site that was pushed; `None`: it has none.
    pub(crate) fn word(&self) -> Option<String> {
        let mut client = Client::connect(&Endpoint::Tcp(self.pushed)).ok()?;
        let answer =
            client.exchange("GET / HTTP/1.1\r\nHost: a.pushed.test\r\nConnection: close\r\n\r\n");
        Some(answer.text().to_owned())
    }

    pub(crate) fn push(&self, path: &Path, more: &[&str]) -> (bool, String) {
        let path = path.display().to_string();
        said(&self.server, &[&["fleet", "push", &path], more].concat())
    }

    #[track_caller]
    pub(crate) fn pushes(&self, path: &Path) {
        let (is_well, text) = self.push(path, &[]);
        assert!(is_well, "{text}");
    }

    /// The revision that it runs.
    pub(crate) fn runs(&self) -> Option<u64> {
        look(&self.server)["configuration"]["runs"].as_u64()
    }

    pub(crate) fn rollout(&self) -> Value {
        look(&self.server)["configuration"]["rollout"].clone()
    }
}

/// Servers and three machines that see each other.
pub(crate) fn three(more: &str) -> Option<(Nats, Application, Desk, [Taker; 3])> {
    let nats = Nats::start(1)?;
    let (application, desk) = (Application::start(), Desk::new());
    let takers = ["a", "b", "c"].map(|name| desk.machine(name, &nats.urls(), &application, more));
    let [a, b, c] = &takers;
    gather(&[&a.server, &b.server, &c.server], &["a", "b", "c"]);
    Some((nats, application, desk, takers))
}

fn words(takers: &[Taker]) -> Vec<Option<String>> {
    takers.iter().map(Taker::word).collect()
}

fn all(word: &str) -> Vec<Option<String>> {
    vec![Some(word.to_owned()); 3]
}

#[test]
fn a_push_reaches_all_machines_and_a_bad_one_none() {
    let Some((nats, application, desk, takers)) = three("") else { return };
    let [a, _, c] = &takers;
    let (is_well, text) = a.push(&desk.site("one"), &[]);
    assert!(is_well, "{text}");
    for part in ["this is revision 1", "the first machine (b) takes it", "is for all machines"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert_eq!(words(&takers), all("one"));
    let (_, table) = said(&c.server, &["fleet"]);
    assert!(table.contains("REVISION") && table.contains("revision 1 is for all"), "{table}");

    // An error has the file, the line and the remedy, and nothing changes.
    let bad = desk.write("bad.toml", "workers = 1\n[[site]]\nlistn = [\"127.0.0.1:1\"]\n");
    let (is_well, text) = c.push(&bad, &[]);
    assert!(!is_well && text.contains("nothing has changed"), "{text}");
    assert!(text.contains("fleet:bad.toml:3") && text.contains("listen"), "{text}");
    let own = desk.write("own.toml", "[fleet]\nregion = \"x\"\n");
    let (is_well, text) = c.push(&own, &[]);
    assert!(
        !is_well && text.contains("fleet:own.toml:1") && text.contains("each machine"),
        "{text}"
    );
    assert_eq!((words(&takers), c.rollout()["target"].as_u64()), (all("one"), Some(1)));

    // A file comes with those that it includes.
    let with = desk.write("with.toml", "include = [\"sites/*.toml\"]\n");
    desk.write("sites/a.toml", &site("status = 200\nbody = \"two\""));
    let (is_well, text) = a.push(&with, &[]);
    assert!(is_well, "{text}");
    assert_eq!(words(&takers), all("two"));
    let (_, text) = said(&c.server, &["fleet", "revisions"]);
    assert!(text.contains("with.toml, sites/a.toml") && text.contains("  runs"), "{text}");

    let (is_well, text) = said(&c.server, &["fleet", "rollback", "--wait", "60"]);
    assert!(is_well && text.contains("3 machines run revision 1"), "{text}");
    assert_eq!(words(&takers), all("one"));
    let (is_well, text) = said(&c.server, &["fleet", "rollback", "7"]);
    assert!(!is_well && text.contains("there is no revision 7"), "{text}");

    // A machine that joins takes the one that runs.
    let d = desk.machine("d", &nats.urls(), &application, "");
    eventually_within(SOON, "d has it", || d.word().as_deref() == Some("one"));
    // The servers have nothing that can be read.
    let folder = nats.folder().to_owned();
    let found = Command::new("grep").args(["-rqa", "pushed.test"]).arg(folder).status();
    assert_eq!(found.expect("grep").code(), Some(1), "a file of the servers has the text");
}

#[test]
fn servers_that_lose_the_record_take_no_site_away() {
    let Some((nats, _application, desk, takers)) = three("") else { return };
    let [a, b, _] = &takers;
    a.pushes(&desk.site("one"));
    let gone = nats.request("a:b", "$JS.API.STREAM.DELETE.KV_afpa-rollout", "");
    assert!(gone.contains("\"success\":true"), "{gone}");
    eventually_within(SOON, "the record is asked for again", || {
        let (_, text) = said(&a.server, &["fleet", "revisions"]);
        !text.contains("no answer")
    });
    // The first machine takes it, and goes back to what ran; the others are never without.
    let failing = desk.write("shared.toml", &site("status = 503\nbody = \"ill\""));
    eventually_within(SOON, "it is pushed", || a.push(&failing, &["--no-wait"]).0);
    eventually_within(SOON, "b has it, and is asked", || {
        (0..10).for_each(|_| drop(b.word()));
        let others = [&takers[0], &takers[2]].map(Taker::word);
        assert!(others.iter().all(|word| word.as_deref() == Some("one")), "{others:?}");
        a.rollout()["phase"] == "back"
    });
    eventually_within(SOON, "all have the one before", || words(&takers) == all("one"));
    // A setting that only a start takes into use cannot be watched.
    let text = std::fs::read_to_string(desk.site("two")).expect("read");
    let later = desk.write("later.toml", &format!("workers = 7\n{text}"));
    let (is_well, text) = a.push(&later, &[]);
    assert!(!is_well && text.contains("workers takes effect at a start"), "{text}");
    assert_eq!(words(&takers), all("one"));
}

/// As servers of NATS 2.9 do that have forgotten a bucket: its messages are on their disks, and are there again when a machine
/// makes it anew.
#[test]
fn a_bucket_that_is_made_anew_over_its_messages_holds_no_push_up() {
    let Some((nats, _application, desk, takers)) = three("") else { return };
    let ask = |subject: &str, payload: &[u8]| -> Value {
        let answer = nats.request("a:b", subject, payload);
        let (_, message) = answer.split_once("MSG answer").expect("an answer");
        let (_, content) = message.split_once("\r\n").expect("its content");
        serde_json::from_str(content).unwrap_or_else(|error| panic!("{error}: {answer}"))
    };
    let [a, _, c] = &takers;
    a.pushes(&desk.site("one"));
    let key = "$KV.afpa-rollout.state";
    let last = serde_json::json!({ "last_by_subj": key }).to_string();
    let found = ask("$JS.API.STREAM.MSG.GET.KV_afpa-rollout", last.as_bytes());
    let number = found["message"]["seq"].as_u64().expect("its number");
    let record = found["message"]["data"].as_str().expect("its content");
    let record = base64::engine::general_purpose::STANDARD.decode(record).expect("base64");
    let info = ask("$JS.API.STREAM.INFO.KV_afpa-rollout", b"");
    ask("$JS.API.STREAM.DELETE.KV_afpa-rollout", b"");
    let made = info["config"].to_string();
    ask("$JS.API.STREAM.CREATE.KV_afpa-rollout", made.as_bytes());
    (1..number).for_each(|_| drop(ask(key, b"x")));
    // Until then a machine takes the bucket for the one before.
    eventually_within(SOON, "the new bucket is seen", || {
        takers.iter().all(|taker| {
            look(&taker.server)["trouble"].as_str().is_some_and(|why| why.contains("sealed"))
        })
    });
    assert_eq!(ask(key, &record)["seq"].as_u64(), Some(number));
    // The old record is no order, and the next push takes its place.
    eventually_within(SOON, "it is pushed", || c.push(&desk.site("two"), &[]).0);
    assert_eq!(words(&takers), all("two"));
}

#[test]
fn one_whose_errors_rise_is_rolled_back_by_itself() {
    let Some((_nats, _application, desk, takers)) = three("") else { return };
    let [a, b, _] = &takers;
    a.pushes(&desk.site("one"));
    let failing = desk.write("shared.toml", &site("status = 503\nbody = \"ill\""));
    let (is_well, text) = a.push(&failing, &["--no-wait"]);
    assert!(is_well, "{text}");
    eventually_within(SOON, "b has it, and is asked", || {
        (0..10).for_each(|_| drop(b.word()));
        a.rollout()["phase"] == "back"
    });
    let why = a.rollout()["why"].as_str().expect("a reason").to_owned();
    assert!(why.contains("answers are errors"), "{why}");
    eventually_within(SOON, "b is back", || b.runs() == Some(1));
    assert_eq!(words(&takers), all("one"));
    assert!(said(&a.server, &["fleet"]).1.contains("rolled back to revision 1"));
}

#[test]
fn one_whose_servers_are_slow_is_rolled_back_by_itself() {
    let Some((_nats, _application, desk, takers)) = three("rollout_p99 = \"100ms\"\n") else {
        return;
    };
    let [a, b, _] = &takers;
    let answer = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 2\r\n\r\nok";
    let servers =
        [Duration::ZERO, Duration::from_millis(300)].map(|time| Raw::answering(answer, time));
    let [quick, slow] = servers.each_ref().map(|server| {
        let to = server.to();
        format!(
            "[[site]]\nhosts = [\"*.pushed.test\"]\nlisten = [\"${{PUSHED}}\"]\nto = \"{to}\"\n"
        )
    });
    a.pushes(&desk.write("shared.toml", &quick));
    let (is_well, text) = a.push(&desk.write("shared.toml", &slow), &["--no-wait"]);
    assert!(is_well, "{text}");
    let status = || said(&a.server, &["top", "-n", "1", "--every", "0.1"]).1;
    eventually_within(SOON, "it is shown", || status().contains("revision 2: the first machine"));
    eventually_within(SOON, "b has it, and is asked", || {
        std::thread::scope(|scope| (0..24).for_each(|_| drop(scope.spawn(|| b.word()))));
        a.rollout()["phase"] == "back"
    });
    let why = a.rollout()["why"].as_str().expect("a reason").to_owned();
    assert!(why.contains("99 of 100 answers of servers took"), "{why}");
    eventually_within(SOON, "b is back", || b.runs() == Some(1));
    assert!(status().contains("revision 2 of the fleet was rolled back"), "{}", status());
}

#[test]
fn one_that_a_machine_cannot_take_is_rolled_back() {
    let Some((_nats, _application, desk, takers)) = three("") else { return };
    let [a, b, c] = &takers;
    a.pushes(&desk.site("one"));
    // Another setting of the machine's own file contradicts it there alone.
    let file = b.server.configuration();
    let text = std::fs::read_to_string(&file).expect("read");
    std::fs::write(&file, format!("{text}\n[admin]\nlisten = \"off\"\n")).expect("written");
    let pushed = site("status = 200\nbody = \"two\"") + "\n[admin]\nlisten = \"off\"\n";
    let (is_well, text) = a.push(&desk.write("shared.toml", &pushed), &[]);
    assert!(!is_well && text.contains("b cannot take it"), "{text}");
    assert!(text.contains("rolled back to revision 1") && text.contains("two files"), "{text}");
    assert_eq!((c.runs(), words(&takers)), (Some(1), all("one")));
}

#[test]
fn a_machine_that_was_away_takes_the_current_one_and_starts_with_the_last_without_servers() {
    let Some((mut nats, _application, desk, mut takers)) = three("") else { return };
    takers[0].pushes(&desk.site("one"));
    takers[2].server.kill();
    let silent = || said(&takers[0].server, &["fleet"]).1.contains("silent for");
    eventually_within(SOON, "c is silent", silent);
    let (is_well, text) = takers[0].push(&desk.site("two"), &["--no-wait"]);
    assert!(is_well, "{text}");
    let is_over = |taker: &Taker| taker.rollout()["phase"] == "done";
    eventually_within(SOON, "the others have it", || is_over(&takers[0]));
    takers[2].server.kill_and_restart();
    // It says so when its disk has it.
    eventually_within(SOON, "c takes it", || takers[2].runs() == Some(2));
    assert_eq!(takers[2].word().as_deref(), Some("two"));

    nats.kill(0);
    takers[2].server.kill_and_restart();
    let from_disk = || takers[2].word().as_deref() == Some("two");
    eventually_within(SOON, "it has the last one from its disk", from_disk);
    let (is_well, text) = takers[2].push(&desk.site("three"), &[]);
    assert!(!is_well && text.contains("no server of the fleet can be reached"), "{text}");
    nats.run(0);
    eventually_within(SOON, "it goes on", || takers[2].push(&desk.site("three"), &["--no-wait"]).0);
    eventually_within(SOON, "all have it", || words(&takers) == all("three"));
}

#[test]
fn a_rollout_outlives_its_driver_and_the_servers() {
    let Some((mut nats, _application, desk, mut takers)) = three("") else { return };
    let (is_well, text) = takers[0].push(&desk.site("one"), &["--no-wait"]);
    assert!(is_well, "{text}");
    // Its driver is gone without a word, and the servers for a while.
    takers[0].server.kill();
    nats.kill(0);
    std::thread::sleep(Duration::from_millis(500));
    nats.run(0);
    let phase = |taker: &Taker| taker.rollout()["phase"].as_str().map(str::to_owned);
    eventually_within(SOON, "another one drives it to its end", || {
        matches!(phase(&takers[1]).as_deref(), Some("done" | "back"))
    });
    takers[0].server.kill_and_restart();
    let wanted = look(&takers[1].server)["configuration"]["wanted"].as_u64();
    eventually_within(SOON, "all run what it says", || {
        takers.iter().all(|taker| taker.runs() == wanted)
    });
}

#[test]
fn without_the_setting_nothing_is_asked_and_nothing_taken() {
    let Some(nats) = Nats::start(1) else { return };
    let (application, desk) = (Application::start(), Desk::new());
    let a = desk.machine("a", &nats.urls(), &application, "");
    let b = crate::bed::machine("b", &nats.urls(), &application, ("", ""));
    gather(&[&a.server, &b], &["a", "b"]);
    // b is no machine that it waits for.
    a.pushes(&desk.site("one"));
    assert!(look(&b)["configuration"].is_null());
    let (is_well, text) = said(&b, &["fleet", "push", &desk.site("x").display().to_string()]);
    assert!(!is_well && text.contains("write `configuration = true`"), "{text}");
    // A stranger with the rights of a machine, but without the secret, changes nothing.
    let (is_well, _) = said(&b, &["fleet", "revisions"]);
    assert!(!is_well);
    nats.put("$KV.afpa-rollout.state", "{\"target\":9}");
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(2) {
        assert_eq!((a.runs(), a.word().as_deref()), (Some(1), Some("one")));
        std::thread::sleep(Duration::from_millis(100));
    }
}
