//! Configurations that are pushed meanwhile, and whether machines run those that they report.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use afpa_testkit::random::Random;
use afpa_testkit::{Client, eventually_within};
use serde_json::{Value, json};

use super::load::{Load, Talk, read};
use super::place::{Machine, Place};
use crate::bed::{SOON, look};

/// A change takes less.
const CHANGE: Duration = Duration::from_secs(4);

/// The machine at which something is pushed has checked it by then.
const CHECKED: Duration = Duration::from_secs(8);

/// A record that was not read for so long is lost.
const LOST: Duration = Duration::from_secs(20);

impl Load<'_> {
    /// Pushes one after another at any machine until the end.
    pub(super) fn push(&self, seed: u64) {
        let mut random = Random::new(seed);
        for number in 1.. {
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_millis(1000 + random.below(6000) as u64) {
                if self.ends.load(Ordering::Relaxed) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            let word = format!("p{number}");
            let machine = &self.machines[random.below(self.machines.len())];
            if let Some(revision) = push(machine, &word) {
                self.ledger.pushed.lock().expect("no panic").insert(revision, word);
            }
        }
    }

    /// Compares the revision that a machine reports with the one that it serves, until the end.
    pub(super) fn compare(&self, number: usize) {
        let machine = &self.machines[number];
        let mut wrong: Option<(Instant, u64, String)> = None;
        while !self.ends.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(200));
            let goings = machine.goings();
            let (before, word, after) = (reported(machine), served(machine), reported(machine));
            let known = before
                .and_then(|one| self.ledger.pushed.lock().expect("no panic").get(&one).cloned());
            let (Some(revision), Some(word), Some(known)) =
                (before.filter(|_| before == after), word, known)
            else {
                continue;
            };
            if word == known || !machine.was_there(goings) {
                wrong = None;
                continue;
            }
            match &wrong {
                Some((since, one, other)) if (*one, other) == (revision, &word) => {
                    if since.elapsed() >= CHANGE {
                        let why = format!(
                            "{} reports {revision}, {known}, and serves {word}",
                            machine.name
                        );
                        self.ledger.misreported.lock().expect("no panic").push(why);
                        return;
                    }
                }
                _ => wrong = Some((Instant::now(), revision, word)),
            }
        }
    }
}

/// The revision of a site whose answer is a word, if the machine has taken the order.
fn push(machine: &Machine, word: &str) -> Option<u64> {
    let text = format!(
        "[[site]]\nhosts = [\"pushed.test\"]\nlisten = [\"${{SITE}}\"]\n[[site.path]]\nprefix = \"/\"\n\
         [[site.path.content]]\nstatus = 200\nbody = \"{word}\"\n"
    );
    let files = json!({ "files": [{ "name": "shared.toml", "text": text }] }).to_string();
    let mut client = Client::connect(&machine.control).ok()?;
    let length = files.len();
    let head =
        format!("POST /fleet/push HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n\r\n");
    client.try_send(head + &files).ok()?;
    let number = read(&mut client)?["number"].as_u64()?;
    let (mut talk, begun) = (Talk::new(&machine.control), Instant::now());
    while begun.elapsed() < CHECKED {
        let outcome = talk.get(&format!("/fleet/outcome?number={number}")).ok()?;
        let outcome: Value = serde_json::from_str(outcome.text()).ok()?;
        match outcome["state"].as_str()? {
            "waiting" => std::thread::sleep(Duration::from_millis(50)),
            "done" => return outcome["revision"].as_u64(),
            _ => return None,
        }
    }
    None
}

fn reported(machine: &Machine) -> Option<u64> {
    let answer = Talk::new(&machine.control).get("/fleet").ok()?;
    let look: Value = serde_json::from_str(answer.text()).ok()?;
    look["configuration"]["runs"].as_u64()
}

fn served(machine: &Machine) -> Option<String> {
    let mut client = Client::connect(&machine.site).ok()?;
    client.try_send("GET / HTTP/1.1\r\nHost: pushed.test\r\nConnection: close\r\n\r\n").ok()?;
    let answer = client.try_receive(afpa_testkit::Asked::Body).ok()?;
    (answer.status == 200).then(|| answer.text().to_owned())
}

/// Waits until the last roll-out is over, and every machine runs what it says. Servers that have lost the record say nothing:
/// then something is pushed once more, as people would. Returns how often.
#[track_caller]
pub(super) fn settle(place: &Place) -> usize {
    let (mut pushed, mut said) = (0, String::new());
    let mut begun = Instant::now();
    eventually_within(3 * SOON, "every machine runs what it is to run", || {
        let looks = place.machines.iter().map(|machine| {
            let look = look(&machine.server.lock().expect("no panic"));
            look["configuration"].clone()
        });
        let looks: Vec<Value> = looks.collect();
        let is_over =
            |own: &Value| matches!(own["rollout"]["phase"].as_str(), None | Some("done" | "back"));
        if looks.iter().all(|own| is_over(own) && own["runs"] == own["wanted"]) {
            return true;
        }
        let now = format!("{looks:?}");
        if now != said {
            place.story.add(format_args!("configurations: {now}"));
            said = now;
        }
        let is_lost = looks.iter().any(|own| own["rollout"].is_null() && own["runs"].is_u64());
        if is_lost && begun.elapsed() > LOST {
            let revision = push(&place.machines[0], &format!("last{pushed}"));
            place.story.add(format_args!("pushed once more: {revision:?}"));
            pushed += usize::from(revision.is_some());
            begun = Instant::now();
        }
        std::thread::sleep(Duration::from_millis(200));
        false
    });
    pushed
}
