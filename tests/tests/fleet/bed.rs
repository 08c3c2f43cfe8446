//! Servers of NATS, machines that are a fleet, and an application whose content has a version.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use afpa_testkit::aloud::say;
use afpa_testkit::server::{free_address, free_listener};
use afpa_testkit::{Running, Server, eventually_within};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::origin::{Asked, Origin, ok};

/// Elections, reconnects and silence take seconds each.
pub(crate) const SOON: Duration = Duration::from_secs(90);

/// Servers of NATS with JetStream: one alone, or a cluster.
pub(crate) struct Nats {
    servers: Vec<NatsServer>,
    folder: TempDir,
}

struct NatsServer {
    address: SocketAddr,
    arguments: Vec<String>,
    running: Option<Running>,
}

impl Nats {
    /// `None` says SKIP.
    pub(crate) fn start(count: usize) -> Option<Self> {
        Self::start_with(count, |_| Vec::new())
    }

    /// With more arguments, for the address of each. `None` says SKIP.
    pub(crate) fn start_with(
        count: usize,
        more: impl Fn(SocketAddr) -> Vec<String>,
    ) -> Option<Self> {
        if !Self::is_there() {
            say("SKIP", "no nats-server");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let addresses: Vec<_> = (0..count).map(|_| (free_address(), free_address())).collect();
        let routes: Vec<_> = addresses.iter().map(|(_, route)| format!("nats://{route}")).collect();
        let servers = addresses.iter().enumerate().map(|(number, (address, route))| {
            let store = folder.path().join(number.to_string());
            let mut arguments = vec![
                format!("--addr={}", address.ip()),
                format!("--port={}", address.port()),
                format!("--server_name=n{number}"),
                "--jetstream".to_owned(),
                format!("--store_dir={}", store.display()),
            ];
            if count > 1 {
                arguments.push(format!("--cluster=nats://{route}"));
                arguments.push("--cluster_name=afpa".to_owned());
                arguments.push(format!("--routes={}", routes.join(",")));
            }
            arguments.extend(more(*address));
            NatsServer { address: *address, arguments, running: None }
        });
        let mut nats = Self { servers: servers.collect(), folder };
        (0..count).for_each(|number| nats.run(number));
        Some(nats)
    }

    /// Whether this machine has the program.
    pub(crate) fn is_there() -> bool {
        let found = Command::new("nats-server").arg("--version").stdout(Stdio::null()).status();
        found.is_ok_and(|status| status.success())
    }

    /// Starts one, again, with what it has stored.
    pub(crate) fn run(&mut self, number: usize) {
        let server = &mut self.servers[number];
        let mut command = Command::new("nats-server");
        command.args(&server.arguments).stdout(Stdio::null()).stderr(Stdio::null());
        server.running = Some(Running::start(&mut command));
        let address = server.address;
        eventually_within(SOON, "nats-server listens", || TcpStream::connect(address).is_ok());
    }

    pub(crate) fn kill(&mut self, number: usize) {
        if let Some(mut running) = self.servers[number].running.take() {
            running.kill();
        }
    }

    pub(crate) fn signal(&self, number: usize, signal: Signal) {
        let running = self.servers[number].running.as_ref().expect("it runs");
        let pid = Pid::from_raw(running.id().cast_signed()).expect("a process");
        kill_process(pid, signal).expect("signalled");
    }

    pub(crate) fn address(&self, number: usize) -> SocketAddr {
        self.servers[number].address
    }

    /// The first server's answer to a message.
    pub(crate) fn request(
        &self,
        credentials: &str,
        subject: &str,
        payload: impl AsRef<[u8]>,
    ) -> String {
        let payload = payload.as_ref();
        let (user, pass) = credentials.split_once(':').expect("a user and a password");
        let mut stream = TcpStream::connect(self.address(0)).expect("connected");
        stream.set_read_timeout(Some(SOON)).expect("a patience");
        let count = payload.len();
        let text = format!(
            "CONNECT {{\"verbose\":false,\"user\":\"{user}\",\"pass\":\"{pass}\"}}\r\n\
             SUB answer 1\r\nPUB {subject} answer {count}\r\n"
        );
        stream.write_all(&[text.as_bytes(), payload, b"\r\n"].concat()).expect("sent");
        let (mut answer, mut bytes) = (String::new(), [0; 4096]);
        while !(answer.contains("MSG answer") && answer.ends_with("}\r\n")) {
            let count = stream.read(&mut bytes).expect("an answer");
            assert!(count > 0, "{answer}");
            answer.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        answer
    }

    /// The payloads of the first messages of a log, so many of them, as a reader gets them who is no machine.
    pub(crate) fn read(&self, log: &str, count: u64) -> Vec<String> {
        let stream = TcpStream::connect(self.address(0)).expect("connected");
        stream.set_read_timeout(Some(SOON)).expect("a patience");
        let wanted = format!(
            "{{\"stream_name\":\"{log}\",\"config\":{{\"deliver_subject\":\"read\",\"ack_policy\":\"none\"}}}}"
        );
        let length = wanted.len();
        let text = format!(
            "CONNECT {{\"verbose\":false}}\r\nSUB read 1\r\n\
             PUB $JS.API.CONSUMER.CREATE.{log} {length}\r\n{wanted}\r\n"
        );
        (&stream).write_all(text.as_bytes()).expect("sent");
        let (mut reader, mut payloads) = (BufReader::new(&stream), Vec::new());
        while (payloads.len() as u64) < count {
            let mut line = String::new();
            reader.read_line(&mut line).expect("a line");
            assert!(!line.is_empty() && !line.starts_with("-ERR"), "{line}, {}", payloads.len());
            if !line.starts_with("MSG ") {
                continue;
            }
            let length = line.trim().rsplit(' ').next().and_then(|length| length.parse().ok());
            let mut payload = vec![0; length.unwrap_or(0_usize) + "\r\n".len()];
            reader.read_exact(&mut payload).expect("a message");
            payloads.push(String::from_utf8_lossy(&payload).trim_end().to_owned());
        }
        payloads
    }

    /// Where they store what they keep.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Puts a message to a stream of the first server, as anybody can.
    pub(crate) fn put(&self, subject: &str, payload: &str) {
        self.request("a:b", subject, payload);
    }

    /// Their URLs as a list of TOML.
    pub(crate) fn urls(&self) -> String {
        urls(self.servers.iter().map(|server| server.address))
    }
}

pub(crate) fn urls(addresses: impl IntoIterator<Item = SocketAddr>) -> String {
    let urls = addresses.into_iter().map(|address| format!("\"nats://{address}\""));
    format!("[{}]", urls.collect::<Vec<_>>().join(", "))
}

/// An application whose answers name the version of their content.
pub(crate) struct Application {
    pub(crate) origin: Origin,
    version: Arc<AtomicUsize>,
}

impl Application {
    pub(crate) fn start() -> Self {
        let version = Arc::new(AtomicUsize::new(1));
        let shown = Arc::clone(&version);
        let origin = Origin::start(move |_: &Asked| {
            let fields = "Cache-Control: max-age=3600\r\nSurrogate-Key: all\r\n";
            ok(fields, &shown.load(Ordering::SeqCst).to_string())
        });
        Self { origin, version }
    }

    /// The next version, which no answer of before has.
    pub(crate) fn change(&self) -> usize {
        self.version.fetch_add(1, Ordering::SeqCst) + 1
    }
}

/// A machine of a fleet. `fleet` are further lines of its section, `more` other sections: those of the site stand behind it.
pub(crate) fn machine(
    name: &str,
    urls: &str,
    application: &Application,
    text: (&str, &str),
) -> Server {
    machine_with(name, urls, application, text, &[])
}

/// With variables in its environment.
pub(crate) fn machine_with(
    name: &str,
    urls: &str,
    application: &Application,
    (fleet, more): (&str, &str),
    variables: &[(&str, &str)],
) -> Server {
    let to = application.origin.to();
    let (before, behind) = if more.starts_with("[site") { ("", more) } else { (more, "") };
    Server::start("/", |launch| {
        for (name, value) in variables {
            launch.env(name, value);
        }
        let home = launch.home().display().to_string();
        launch.written(|listen| {
            format!(
                "[fleet]\nservers = {urls}\nname = \"{name}\"\nstate = \"{home}/fleet\"\n{fleet}\n\
                 {}\n[[site]]\nlisten = [\"{listen}\"]\nto = \"{to}\"\n{behind}",
                before.replace("HOME", &home)
            )
        });
    })
}

/// The version that a machine answers with.
#[track_caller]
pub(crate) fn version(machine: &Server, target: &str) -> usize {
    let answer = machine.get(target);
    answer.text().parse().unwrap_or_else(|_| panic!("{answer:?}"))
}

/// `afpa fleet --json` of a machine.
#[track_caller]
pub(crate) fn look(machine: &Server) -> Value {
    let said = machine.command(&["fleet", "--json"]);
    serde_json::from_slice(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"))
}

/// The names of members that are live and have come as far as everybody else.
pub(crate) fn live(machine: &Server) -> Vec<String> {
    let look = look(machine);
    let members = look["members"].as_array().expect("a list").iter();
    let live = members
        .filter(|member| member["silent"].is_null() && !member["purges"].is_null())
        .filter(|member| member["purges"]["sequence"] == look["last_purge"]);
    live.map(|member| member["name"].as_str().expect("a name").to_owned()).collect()
}

/// Waits until each of these machines sees all of them.
#[track_caller]
pub(crate) fn gather(machines: &[&Server], names: &[&str]) {
    for machine in machines {
        eventually_within(SOON, "all members are seen", || live(machine) == names);
    }
}

/// The words of a command, and whether it was content.
pub(crate) fn said(machine: &Server, arguments: &[&str]) -> (bool, String) {
    let output = machine.command(arguments);
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// The process that a machine is now; `None`: it cannot be asked.
pub(crate) fn process(machine: &Server) -> Option<u32> {
    let stats: Value = serde_json::from_str(&said(machine, &["stats", "--json"]).1).ok()?;
    stats["pid"].as_u64().map(|pid| pid as u32)
}

/// A process that an upgrade has started. It is ended when this is dropped.
pub(crate) struct Next(pub(crate) u32);

impl Drop for Next {
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.0.cast_signed()).expect("a process id");
        let is_there = || kill_process(pid, Signal::TERM).is_ok();
        let start = Instant::now();
        while is_there() && start.elapsed() < SOON {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A way to a server that can be cut: then nothing passes, and both ends see an open connection.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    cut: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Relay {
    pub(crate) fn to(server: SocketAddr) -> Self {
        let listener = free_listener();
        let address = listener.local_addr().expect("an address");
        let (cut, streams) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Vec<_>>>::default());
        let (is_cut, opened) = (Arc::clone(&cut), Arc::clone(&streams));
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(server) else { continue };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone(), to.try_clone());
                    let (from, to) = (from.expect("a copy"), to.expect("a copy"));
                    let is_cut = Arc::clone(&is_cut);
                    std::thread::spawn(move || pass(from, to, &is_cut));
                }
                opened.lock().expect("no panic").extend([near, far]);
            }
        });
        Self { address, cut, streams }
    }

    /// Nothing passes any more.
    pub(crate) fn cut(&self) {
        self.cut.store(true, Ordering::SeqCst);
    }

    /// New connections pass; the old ones end, with what was on its way.
    pub(crate) fn mend(&self) {
        let streams = std::mem::take(&mut *self.streams.lock().expect("no panic"));
        streams.iter().for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
        self.cut.store(false, Ordering::SeqCst);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, is_cut: &AtomicBool) {
    let mut bytes = [0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if !is_cut.load(Ordering::SeqCst) && to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ended = to.shutdown(Shutdown::Both);
}
