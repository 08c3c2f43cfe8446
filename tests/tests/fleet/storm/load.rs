//! Clients that ask, and people who purge.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use afpa_testkit::random::Random;
use afpa_testkit::response::Asked;
use afpa_testkit::{Client, Endpoint, Response};
use serde_json::Value;

use super::ledger::{Application, KEYS, Ledger, Order};
use super::place::Machine;

/// A request of a machine that is there ends within this time.
const PATIENCE: Duration = Duration::from_secs(10);

/// An order is followed for so long.
const FOLLOWED: Duration = Duration::from_secs(10);

pub(super) struct Load<'l> {
    pub(super) application: &'l Application,
    pub(super) ledger: &'l Ledger,
    pub(super) machines: &'l [Machine],
    pub(super) ends: &'l AtomicBool,
}

impl Load<'_> {
    /// Asks a machine until the end.
    pub(super) fn ask(&self, number: usize, seed: u64) {
        let (machine, mut random) = (&self.machines[number], Random::new(seed));
        let mut talk = Talk::new(&machine.site);
        while !self.ends.load(Ordering::Relaxed) {
            let (key, goings, asked) = (random.below(KEYS), machine.goings(), Instant::now());
            let answer = talk.get(&format!("/k/{key}"));
            let version = answer.and_then(|answer| match (answer.status, answer.text().parse()) {
                (200, Ok(version)) => Ok(version),
                _ => Err(format!("{answer:?}")),
            });
            match version {
                Ok(version) => self.ledger.answered(number, (key, version), asked),
                Err(why) if machine.was_there(goings) => {
                    let told = format!("{} after {:?}: {why}", machine.name, asked.elapsed());
                    self.ledger.refused.lock().expect("no panic").push(told);
                }
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
            std::thread::sleep(Duration::from_millis(3));
        }
    }

    /// Purges at a machine until the end.
    pub(super) fn purge(&self, number: usize, seed: u64) {
        let (machine, mut random) = (&self.machines[number], Random::new(seed));
        let mut talk = Talk::new(&machine.control);
        while !self.ends.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(random.below(200) as u64));
            let key = random.below(KEYS);
            let version = self.application.change(key);
            let what = match random.below(4) {
                0 => format!("tag=k{key}"),
                1 => format!("path=/k/{key}&soft=yes"),
                2 if random.one_in(4) => "path=/k/&below=yes".to_owned(),
                _ => format!("path=/k/{key}"),
            };
            let (at, goings) = (Instant::now(), machine.goings());
            let sent = talk.post(&format!("/fleet/purge?{what}"));
            let given = sent.ok().and_then(|sent| json(&sent)?["number"].as_u64());
            let Some(given) = given else {
                self.ledger.counts.not_taken.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            let order = Order { key, version, machine: number, at };
            if self.ledger.ordered(order, || machine.was_there(goings)) {
                self.follow(&mut talk, given, &order);
            }
        }
    }

    fn follow(&self, talk: &mut Talk, given: u64, order: &Order) {
        let machine = &self.machines[order.machine];
        let (goings, mut is_logged) = (machine.goings(), false);
        while order.at.elapsed() < FOLLOWED && machine.was_there(goings) {
            let answer = talk.get(&format!("/fleet/order?number={given}"));
            let Some(look) = answer.ok().and_then(|answer| json(&answer)) else { return };
            // The number may be one of the next process.
            if !machine.was_there(goings) {
                return;
            }
            let standing = &look["standing"];
            let names = |list: &str| standing[list].as_array().map_or(usize::MAX, Vec::len);
            if look["fate"]["state"] == "logged" && !is_logged {
                is_logged = true;
                self.ledger.logged(order);
            }
            let is_done = standing["settled"] == true && names("waiting") + names("silent") == 0;
            if is_logged && is_done {
                return self.ledger.acknowledged(order, names("done"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The next answer, if it is JSON.
pub(super) fn read(client: &mut Client) -> Option<Value> {
    json(&client.try_receive(Asked::Body).ok()?)
}

fn json(answer: &Response) -> Option<Value> {
    serde_json::from_str(answer.text()).ok().filter(|_| answer.status == 200)
}

/// A connection that is made anew when it has ended.
pub(super) struct Talk<'t> {
    to: &'t Endpoint,
    client: Option<Client>,
}

impl<'t> Talk<'t> {
    pub(super) fn new(to: &'t Endpoint) -> Self {
        Self { to, client: None }
    }

    pub(super) fn get(&mut self, target: &str) -> Result<Response, String> {
        let head = format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n");
        // One that was idle may have been closed: clients ask once more then.
        let was_open = self.client.is_some();
        match self.exchange(&head) {
            Err(_) if was_open => self.exchange(&head),
            done => done,
        }
    }

    pub(super) fn post(&mut self, target: &str) -> Result<Response, String> {
        self.client = None;
        self.exchange(&format!("POST {target} HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n"))
    }

    fn exchange(&mut self, head: &str) -> Result<Response, String> {
        let mut client = match self.client.take() {
            Some(client) => client,
            None => Client::connect(self.to).map_err(|error| error.to_string())?,
        };
        client.set_patience(PATIENCE).map_err(|error| error.to_string())?;
        client.try_send(head).map_err(|error| error.to_string())?;
        let answer = client.try_receive(Asked::Body).map_err(|error| error.to_string())?;
        if !answer.says_close() {
            self.client = Some(client);
        }
        Ok(answer)
    }
}
