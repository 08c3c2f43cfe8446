//! A configuration of several files, with variables: the example of its page.

use std::fs;
use std::path::Path;
use std::process::Command;

use afpa_testkit::server::{free_address, program};
use afpa_testkit::{Client, Endpoint, Server, Tree, eventually};
use rustix::process::Signal;

/// The example of `docs/several-files.md`.
fn example() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/several-files.md");
    let page = fs::read_to_string(page).expect("the page");
    let (_, example) = page.split_once("```toml\n").expect("an example");
    example.split("```").next().expect("its end").to_owned()
}

#[test]
fn the_example_is_served_reloaded_and_printed() {
    let tree = Tree::new();
    tree.file("index.html", "main");
    let (mut address, other) = (String::new(), free_address());
    let server = Server::start(tree.path(), |launch| {
        launch.written(|endpoint| {
            address = endpoint.to_string();
            example()
        });
        launch.listen(Endpoint::Tcp(other)).env("ADDRESS", &address).env("WORKERS", "1");
        let home = launch.home().to_owned();
        fs::write(home.join("release.txt"), "one\n").expect("a file");
        fs::create_dir(home.join("sites")).expect("a folder");
        std::os::unix::fs::symlink(tree.path(), home.join("www")).expect("a link");
        let site = format!(
            "[[site]]\nlisten = [\"{other}\"]\nroot = \"../www\"\nheaders = {{ X-Other = \"${{NONE:-a}}\" }}\n"
        );
        fs::write(home.join("sites/other.toml"), site).expect("a file");
    });
    let field = |name: &str| server.get("/").field(name).map(str::to_owned);
    assert_eq!(server.get("/").text(), "main");
    assert_eq!(field("X-Release").as_deref(), Some("one"));
    assert_eq!(field("X-Price").as_deref(), Some("5 ${USD}"));
    let beside = || Client::to(other).get("/").field("X-Other").map(str::to_owned);
    assert_eq!(beside().as_deref(), Some("a"));

    // A bad file changes nothing, and its message has file, line and column.
    let sites = server.home().join("sites/other.toml");
    let good = fs::read_to_string(&sites).expect("the file");
    fs::write(server.home().join("release.txt"), "two\n").expect("a file");
    fs::write(&sites, good.replace("NONE:-a", "NOT_SET")).expect("a file");
    server.signal(Signal::HUP);
    eventually("the fault is named", || {
        let log = server.log();
        log.contains("sites/other.toml:4:24: error: the variable NOT_SET is not set")
    });
    assert_eq!(field("X-Release").as_deref(), Some("one"));
    fs::write(&sites, good.replace("NONE:-a", "NONE:-b")).expect("a file");
    server.signal(Signal::HUP);
    eventually("both files are read again", || {
        field("X-Release").as_deref() == Some("two") && beside().as_deref() == Some("b")
    });

    let mut check = Command::new(program());
    check.args(["check", "--print"]).arg(server.configuration());
    let printed = check.env("ADDRESS", address).env_remove("WORKERS").output().expect("it runs");
    let printed = String::from_utf8(printed.stdout).expect("UTF-8");
    for line in ["workers = 2\n", "X-Release = \"${file:release.txt}\"", "X-Other = \"b\""] {
        assert!(printed.contains(line), "{line} is not in\n{printed}");
    }
}
