//! A broken or blocked standard error or standard output may lose messages for the operator, and never stops the service.

use std::{
    fs::{self, File},
    io::{Read, Write},
    os::fd::{AsFd, OwnedFd},
    process::{Command, Stdio},
    time::Duration,
};

use afpa_testkit::{Client, Endpoint, Server, Tree, eventually, server::program};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::process::Signal;

fn site() -> Tree {
    let tree = Tree::new();
    tree.file("hello.txt", "hello");
    tree
}

/// A pipe whose reader has gone.
fn broken_pipe() -> OwnedFd {
    std::io::pipe().expect("a pipe").1.into()
}

/// A pipe that is full, and its reader, which reads nothing.
fn full_pipe() -> (impl Read, OwnedFd) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    fill(&writer);
    (reader, writer.into())
}

fn fill(pipe: impl AsFd) {
    ioctl_fionbio(&pipe, true).expect("non-blocking");
    let piece = [b'.'; 4096];
    while rustix::io::write(&pipe, &piece).is_ok() {}
    while rustix::io::write(&pipe, b".").is_ok() {}
    assert_eq!(rustix::io::write(&pipe, b"."), Err(Errno::AGAIN));
    ioctl_fionbio(&pipe, false).expect("blocking again");
}

/// Makes the server write messages by good and bad reloads, other signals, orders and statistics. It serves all the while.
fn talk(server: &mut Server) {
    let good = fs::read_to_string(server.configuration()).expect("the configuration");
    for text in [good.clone() + "= =\n", good.clone() + "no_such_setting = 1\n", good] {
        fs::write(server.configuration(), text).expect("write");
        for signal in [Signal::HUP, Signal::USR1] {
            server.signal(signal);
            assert_eq!(server.get("/hello.txt").text(), "hello");
        }
        for order in [["deny", "add"], ["deny", "del"]] {
            let output = server.command(&[order[0], order[1], "198.51.100.7"]);
            assert!(output.status.success(), "{output:?}");
        }
    }
    // Signals are still heard, and reloads done.
    let text = fs::read_to_string(server.configuration()).expect("the configuration");
    let other = text.replace("index.html", "hello.txt");
    fs::write(server.configuration(), other).expect("write");
    server.signal(Signal::HUP);
    eventually("the new index is served", || server.get("/").text() == "hello");
    assert!(server.is_running());
    server.signal(Signal::TERM);
    let ended = server.wait(Duration::from_secs(30)).expect("it ends when it is told to");
    assert!(ended.success(), "{ended:?}");
}

fn start(tree: &Tree, error: OwnedFd) -> Server {
    Server::start(tree.path(), |launch| {
        launch.standard_error(error);
        launch.set(|settings| {
            settings.set("site.index", "[\"index.html\"]");
        });
    })
}

#[test]
fn a_standard_error_that_nobody_reads_any_more_costs_messages_only() {
    talk(&mut start(&site(), broken_pipe()));
}

#[test]
fn a_standard_error_on_a_full_disk_costs_messages_only() {
    let full = File::options().write(true).open("/dev/full").expect("/dev/full");
    talk(&mut start(&site(), full.into()));
}

#[test]
fn a_standard_error_that_cannot_be_written_to_costs_messages_only() {
    talk(&mut start(&site(), File::open("/dev/null").expect("/dev/null").into()));
}

#[test]
fn a_standard_error_that_is_full_and_not_read_stops_nobody() {
    let (mut reader, writer) = full_pipe();
    talk(&mut start(&site(), writer));
    let mut said = String::new();
    reader.read_to_string(&mut said).expect("what was in it");
}

#[test]
fn a_standard_error_that_others_made_non_blocking_is_read_as_it_is() {
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    ioctl_fionbio(&writer, true).expect("non-blocking");
    talk(&mut start(&site(), writer.into()));
    let mut said = String::new();
    reader.read_to_string(&mut said).expect("all messages");
    assert!(said.contains("reloaded") && said.contains("logs are opened"), "{said}");
}

/// As from a shell, which closes them.
#[test]
fn closed_standard_descriptors_cost_messages_only() {
    let tree = site();
    let (home, address) = (Tree::new(), afpa_testkit::server::free_address());
    let control = home.at("control.sock");
    let mut child = Command::new("bash")
        .arg("-c")
        .arg("exec \"$0\" \"$@\" 0<&- 1>&- 2>&-")
        .arg(program())
        .args(["serve", "--fast-path", "off", "--listen", &address.to_string()])
        .args(["--control".as_ref(), control.as_path(), tree.path()])
        .spawn()
        .expect("bash");
    let endpoint = Endpoint::Tcp(address);
    let connect = || Client::connect(&endpoint);
    eventually("it answers", || connect().is_ok());
    assert_eq!(connect().expect("connected").get("/hello.txt").text(), "hello");
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).expect("a process");
    rustix::process::kill_process(pid, Signal::HUP).expect("kill");
    assert_eq!(connect().expect("connected").get("/hello.txt").text(), "hello");
    rustix::process::kill_process(pid, Signal::TERM).expect("kill");
    assert!(child.wait().expect("wait").success());
}

#[test]
fn an_access_log_on_a_standard_output_that_is_full_costs_lines_only() {
    let tree = site();
    let (_reader, writer) = full_pipe();
    let mut server = Server::start(tree.path(), |launch| {
        launch.standard_output(writer).arg("--access-log").arg("-");
    });
    for _ in 0..50 {
        assert_eq!(server.get("/hello.txt").text(), "hello");
    }
    eventually("the lines are counted as lost", || {
        let output = server.command(&["stats", "--json"]);
        let stats: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        stats["access_log"]["dropped"].as_u64() >= Some(50)
    });
    server.signal(Signal::TERM);
    assert!(server.wait(Duration::from_secs(30)).expect("it ends").success());
}

#[test]
fn a_log_that_is_as_long_as_files_may_be_ends_nothing() {
    let tree = site();
    let mut server = Server::start(tree.path(), |launch| {
        launch.limit('f', 1); // one block of 1024 bytes
        let log = launch.home().join("access.log");
        launch.arg("--access-log").arg(log);
    });
    eventually("the lines are counted as lost", || {
        for _ in 0..50 {
            assert_eq!(server.get("/hello.txt").text(), "hello");
        }
        let output = server.command(&["stats", "--json"]);
        let stats: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        stats["access_log"]["dropped"].as_u64() > Some(0)
    });
    assert!(server.is_running());
}

/// Commands whose standard output is a broken pipe.
#[test]
fn commands_whose_reader_has_seen_enough_end_quietly() {
    let tree = site();
    let server = Server::start(tree.path(), |_| ());
    let control = server.home().join("control.sock").display().to_string();
    let commands: [&[&str]; 7] = [
        &["stats", "--control", &control],
        &["stats", "--json", "--control", &control],
        &["deny", "list", "--control", &control],
        &["completions", "bash"],
        &["doctor"],
        &["--help"],
        &["--version"],
    ];
    for command in commands {
        let output = Command::new(program())
            .args(command)
            .stdin(Stdio::null())
            .stdout(broken_pipe())
            .output()
            .expect("run the program");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code().is_some_and(|code| code < 2), "{command:?}: {output:?}");
        assert!(!said.contains("panicked") && !said.contains("Broken pipe"), "{command:?}: {said}");
    }
    for command in [&["stats", "--pid", "1"][..], &["no-such-command"], &["check", "/none"]] {
        let status = Command::new(program())
            .args(command)
            .stdout(broken_pipe())
            .stderr(broken_pipe())
            .status()
            .expect("run the program");
        assert!(matches!(status.code(), Some(1 | 2)), "{command:?}: {status:?}");
    }
}

#[test]
fn a_result_is_whole_though_its_pipe_is_non_blocking() {
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    fill(&writer);
    ioctl_fionbio(&writer, true).expect("non-blocking");
    let mut child = Command::new(program())
        .args(["completions", "bash"])
        .stdout(writer)
        .spawn()
        .expect("run the program");
    let mut said = String::new();
    reader.read_to_string(&mut said).expect("all of it");
    assert!(child.wait().expect("wait").success());
    assert!(said.trim_end().ends_with("fi"), "{}", &said[said.len() - 60..]);
}

#[test]
fn signals_that_mean_nothing_here_end_nothing() {
    let tree = site();
    let mut server = Server::start(tree.path(), |_| ());
    let signals = [
        Signal::WINCH,
        Signal::ALARM,
        Signal::VTALARM,
        Signal::PROF,
        Signal::IO,
        Signal::POWER,
        Signal::STKFLT,
        Signal::XFSZ,
        Signal::PIPE,
        Signal::URG,
        Signal::CHILD,
        Signal::CONT,
        Signal::TTOU,
    ];
    for signal in signals {
        server.signal(signal);
        assert_eq!(server.get("/hello.txt").text(), "hello");
        assert!(server.is_running(), "{signal:?} ended it");
    }
}

/// A message is written though its terminal or pipe was slow before.
#[test]
fn messages_come_again_when_standard_error_is_read_again() {
    let tree = site();
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    fill(&writer);
    let mut server = start(&tree, writer.into());
    server.signal(Signal::USR1);
    assert_eq!(server.get("/hello.txt").text(), "hello");
    let mut room = vec![0; 1 << 20];
    let _ = reader.read(&mut room).expect("what was in it");
    server.signal(Signal::USR1);
    let mut said = Vec::new();
    while !String::from_utf8_lossy(&said).contains("logs are opened") {
        let count = reader.read(&mut room).expect("the message");
        assert!(count > 0, "the end came before the message");
        said.write_all(&room[..count]).expect("memory");
    }
    assert!(server.is_running());
}
