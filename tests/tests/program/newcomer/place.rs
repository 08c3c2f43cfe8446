//! A machine of the newcomer's own: folders of a tree for `/srv`, `/etc` and `/var`, and addresses of the test for those of a page.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use afpa_testkit::server::{free_address, program};
use afpa_testkit::{Client, Endpoint, Launch, Response, Running, Server, Tree, eventually};

/// Folders of pages that lie in the tree.
const TOPS: &[&str] = &["/srv/", "/etc/", "/var/"];

/// A page of `docs/`, whose examples are used as they stand there.
pub(super) struct Page {
    name: &'static str,
    text: String,
}

impl Page {
    pub(super) fn of(name: &'static str) -> Self {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        Self { name, text: fs::read_to_string(docs.join(name)).expect("the page") }
    }

    /// All its blocks of a language: a case that does not know one of them fails.
    #[track_caller]
    pub(super) fn blocks<const COUNT: usize>(&self, language: &str) -> [String; COUNT] {
        let begin = format!("```{language}\n");
        let rests = self.text.split(&begin).skip(1);
        let all = rests.filter_map(|rest| rest.split("```").next()).map(str::to_owned);
        let all: Vec<String> = all.collect();
        let count = all.len();
        all.try_into().unwrap_or_else(|_| panic!("{} has {count} blocks {language}", self.name))
    }

    /// The words of the command that begins so, in a block or in the text, without a comment behind it.
    #[track_caller]
    pub(super) fn command(&self, begin: &str) -> Vec<String> {
        let at = self.text.find(begin);
        let at = at.unwrap_or_else(|| panic!("{} has no command {begin}", self.name));
        let line = self.text[at..].split(['\n', '`']).next().unwrap_or_default();
        let line = line.split(" #").next().unwrap_or_default();
        line.split_whitespace().map(|word| word.trim_matches('\'').to_owned()).collect()
    }

    /// Its lines that begin so.
    #[track_caller]
    pub(super) fn lines(&self, begin: &str) -> Vec<&str> {
        let lines: Vec<&str> = self.text.lines().filter(|line| line.starts_with(begin)).collect();
        assert!(!lines.is_empty(), "{} has no line {begin}", self.name);
        lines
    }

    /// Asserts that the page claims this; then a case may show it.
    #[track_caller]
    pub(super) fn claims(&self, words: &str) {
        let flat = self.text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(words), "{} does not say {words:?} any more", self.name);
    }
}

/// The folders and addresses.
#[derive(Default)]
pub(super) struct Place {
    tree: Tree,
    replaced: Vec<(String, String)>,
    site: String,
    beside: Vec<(String, String)>,
    environment: Vec<(String, String)>,
}

impl Place {
    /// Where a path of a page lies.
    pub(super) fn at(&self, path: &str) -> PathBuf {
        self.tree.at(path.trim_start_matches('/'))
    }

    /// Writes a file, with the folders that it needs.
    pub(super) fn file(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        self.tree.file(path.trim_start_matches('/'), content)
    }

    pub(super) fn remove(&self, path: &str) {
        self.tree.remove(path.trim_start_matches('/'));
    }

    /// A folder into which the user that AFPA becomes may write.
    pub(super) fn open_folder(&self, path: &str) {
        self.tree.dir(path.trim_start_matches('/'));
        self.tree.set_mode(path.trim_start_matches('/'), 0o777);
    }

    /// Has another word stand in the place of one of the examples.
    pub(super) fn replace(&mut self, from: &str, to: impl Into<String>) {
        self.replaced.push((from.to_owned(), to.into()));
    }

    /// Words stand for themselves again.
    pub(super) fn forget_replaced(&mut self) {
        self.replaced.clear();
    }

    /// A line of the site that the example leaves to the operator's surroundings.
    pub(super) fn site(&mut self, line: &str) {
        self.site += &format!("{line}\n");
    }

    /// A file in the folder of the configuration.
    pub(super) fn beside(&mut self, name: &str, content: &str) {
        self.beside.push((name.to_owned(), content.to_owned()));
    }

    /// A variable of the environment.
    pub(super) fn env(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// Clients may say who they are, as they can behind a router.
    pub(super) fn believe_clients(&mut self) {
        self.site("forwarded_from = [\"127.0.0.1\"]");
    }

    /// The example with this place's folders and addresses; each that is replaced has to be there.
    #[track_caller]
    pub(super) fn text(&self, example: &str, listen: &str) -> String {
        let mut text = example.to_owned();
        for (from, to) in &self.replaced {
            assert!(text.contains(from), "the example has no {from}:\n{example}");
            text = text.replace(from, to);
        }
        for top in TOPS {
            text = text.replace(&format!("\"{top}"), &format!("\"{}", self.at(top).display()));
        }
        let site = text.split("[[site]]").nth(1).unwrap_or_default();
        let listens = site.lines().any(|line| line.starts_with("listen ="));
        let listen = if listens { String::new() } else { format!("listen = [\"{listen}\"]\n") };
        let site = format!("[[site]]\n{listen}{}", self.site);
        text.replacen("[[site]]\n", &site, 1)
    }

    /// `afpa serve --config` with the example.
    #[track_caller]
    pub(super) fn serve(&self, example: &str) -> Server {
        self.serve_with(example, |_| {})
    }

    /// The same, with changes to the start.
    #[track_caller]
    pub(super) fn serve_with(&self, example: &str, change: impl FnOnce(&mut Launch)) -> Server {
        Server::start("/", |launch| {
            for (name, content) in &self.beside {
                let path = launch.home().join(name);
                fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
                fs::write(path, content).expect("written");
            }
            for (name, value) in &self.environment {
                launch.env(name, value);
            }
            launch.written(|listen| self.text(example, &listen.to_string()));
            change(launch);
        })
    }

    /// A command that goes on until this value is dropped, in the folder of the place.
    #[track_caller]
    pub(super) fn run(&self, command: &[String]) -> Daemon {
        let mut words: Vec<String> = command.iter().map(|word| self.word(word)).collect();
        let at = match words.iter().position(|word| word == "--listen") {
            Some(at) => words[at + 1].parse().expect("an address"),
            None => {
                let at = free_address();
                words.extend(["--listen".to_owned(), at.to_string()]);
                at
            }
        };
        words.extend(["--fast-path", "off", "--control"].map(str::to_owned));
        words.push(self.tree.at("../control.sock").display().to_string());
        let mut run = Command::new(program());
        run.args(&words[1..]).current_dir(self.tree.path());
        let running = Running::start(run.stdin(Stdio::null()).stderr(Stdio::null()));
        eventually(&format!("{words:?} listens"), || Client::connect(&Endpoint::Tcp(at)).is_ok());
        Daemon { at, _running: running }
    }

    /// A command that ends, in the folder of the place; `input` is what it is asked for.
    #[track_caller]
    pub(super) fn done(&self, command: &[String], input: &str) -> Output {
        use std::io::Write as _;
        let words: Vec<String> = command.iter().map(|word| self.word(word)).collect();
        let program = if words[0] == "afpa" { program() } else { PathBuf::from(&words[0]) };
        let mut child = Command::new(&program)
            .args(&words[1..])
            .current_dir(self.tree.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("run {}: {error}", program.display()));
        // It may not read.
        let _ = child.stdin.take().map(|mut pipe| pipe.write_all(input.as_bytes()));
        child.wait_with_output().expect("it ends")
    }

    fn word(&self, word: &str) -> String {
        let mut word = word.to_owned();
        for (from, to) in &self.replaced {
            word = word.replace(from, to);
        }
        match TOPS.iter().any(|top| word.starts_with(top)) && !word.starts_with(&*self.home()) {
            true => self.at(&word).display().to_string(),
            false => word,
        }
    }

    fn home(&self) -> String {
        self.tree.path().display().to_string()
    }
}

/// A command that goes on.
pub(super) struct Daemon {
    at: SocketAddr,
    _running: Running,
}

impl Daemon {
    #[track_caller]
    pub(super) fn get(&self, target: &str) -> Response {
        Client::to(self.at).get(target)
    }

    /// Its address.
    pub(super) fn at(&self) -> SocketAddr {
        self.at
    }
}

/// The output of a command of the program, which succeeds, for the configuration of a server.
#[track_caller]
pub(super) fn route(server: &Server, words: &[&str]) -> String {
    let mut command = Command::new(program());
    let file = server.configuration();
    let output = command.arg("route").args(words).arg("--config").arg(file).output();
    String::from_utf8_lossy(&output.expect("it runs").stdout).into_owned()
}

/// Asks for each target, and compares the status and the begin of the content.
#[track_caller]
pub(super) fn all_say(client: &mut Client, cases: &[(&str, u16, &str)]) {
    for (target, status, begin) in cases {
        let said = client.get(target);
        assert_eq!(said.status, *status, "{target}: {said:?}");
        assert!(said.text().starts_with(begin), "{target}: not {begin:?}: {said:?}");
    }
}

/// A request with content.
#[track_caller]
pub(super) fn send(client: &mut Client, method: &str, target: &str, content: &str) -> Response {
    let length = content.len();
    client.exchange(format!(
        "{method} {target} HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n\r\n{content}"
    ))
}
