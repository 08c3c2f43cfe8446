//! Messages about the fast path at a start, in `afpa check`, in statistics and in metrics.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use afpa_netlab::Bed;
use afpa_testkit::server::program;
use afpa_testkit::strace::Strace;
use afpa_testkit::{Client, Server, Tree, eventually, figure, skip};
use afpa_tests::monitoring;

use crate::lab::{Lab, PORT, answers, stats, warm};

fn site() -> Tree {
    let tree = Tree::new();
    tree.file("hello.txt", "hello");
    tree
}

#[test]
fn it_says_that_it_is_in_use_and_where() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let server = lab.server(&tree, |_| ());
    assert!(server.log().contains("fast path  in use on lo, eth0"), "{}", server.log());
    warm(&server, "/hello.txt");
    let seen = stats(&server)["fast_path"].clone();
    assert_eq!(seen["state"], "in use on lo, eth0", "{seen}");
    assert_eq!(seen["objects"], 1, "{seen}");
    assert_eq!(seen["interfaces"], serde_json::json!(["lo", "eth0"]), "{seen}");
    let counted = |name: &str, reason: &str| {
        seen["packets_by_interface"][name][reason].as_u64().unwrap_or_default()
    };
    assert!(counted("eth0", "answered") > 0 && counted("eth0", "pass_not_pinned") > 0, "{seen}");
    assert_eq!(counted("eth0", "answered"), seen["packets"]["answered"].as_u64().expect("a count"));
    assert_eq!(counted("lo", "answered"), 0, "{seen}");
    let metrics = Client::connect(&server.control()).expect("control").get("/metrics");
    let monitored = monitoring::names();
    let own = monitored.iter().filter(|name| name.starts_with("afpa_fast_path_"));
    assert_eq!(monitoring::absent_from(metrics.text(), own), Vec::<&String>::new());
    let has = |line: &str| metrics.text().lines().any(|found| found.starts_with(line));
    assert!(has("afpa_fast_path_packets_total{reason=\"answered\"} "), "{}", metrics.text());
    assert!(has("afpa_fast_path_packets_total{reason=\"pass_not_pinned\"} "));
    assert!(has("afpa_fast_path_interface_packets_total{interface=\"eth0\",reason=\"answered\"} "));
    assert!(has("afpa_fast_path_attached{interface=\"eth0\"} 1"));
    assert!(has("afpa_fast_path_answering 1") && has("afpa_fast_path_objects 1"));
    let table = server.command(&["stats", "--all"]);
    let table = String::from_utf8_lossy(&table.stdout);
    assert!(table.contains("\nFast path\n") && table.contains("eth0"), "{table}");
}

/// From the start of the process to the first answer of the kernel. A machine that does something else takes longer.
#[test]
fn the_kernel_answers_soon_after_the_start() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let begun = Instant::now();
    let server = lab.server(&tree, |_| ());
    warm(&server, "/hello.txt");
    let took = begun.elapsed();
    figure!("from the start of afpa serve to the first answer of the kernel: {took:.2?}");
    assert!(took < Duration::from_secs(30), "{took:?}");
}

const FIRST: SocketAddr = SocketAddr::new(IpAddr::V4(Bed::SERVER_V4), PORT);

/// A server with the fast path that may not listen yet.
fn launch(lab: &Lab, tree: &Tree) -> Server {
    Server::launch(tree.path(), |launch| {
        launch.inside(lab.namespace(), afpa_testkit::Endpoint::Tcp(FIRST)).fast_path("on");
    })
}

/// The first connection that it takes.
fn first_client() -> Client {
    let mut first = None;
    eventually("a connection", || {
        first = TcpStream::connect(FIRST).ok();
        first.is_some()
    });
    Client::of(first.expect("connected"))
}

/// A client that connected while programs are loaded would wait for them. So the server does not listen until they are
/// there.
#[test]
fn nobody_connects_before_the_programs_are_there() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let server = launch(&lab, &tree);
    let mut client = first_client();
    assert_eq!(lab.attached(), 4, "two programs on two interfaces: {}", server.log());
    assert_eq!(client.get("/hello.txt").text(), "hello");
}

/// The kernel's answers are to wait for no thread of ours: a connection that comes before the first heartbeat is user
/// mode's for as long as it lives.
#[test]
fn the_first_connection_is_answered_however_late_threads_begin() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let server = launch(&lab, &tree);
    let late = match Strace::delaying_threads(server.pid(), Duration::from_millis(300)) {
        Ok(late) => late,
        Err(why) => skip!("{why}"),
    };
    let mut client = first_client();
    eventually("the kernel answers it", || {
        assert_eq!(client.get("/hello.txt").text(), "hello");
        answers(&server) > 0
    });
    drop(late);
}

#[test]
fn off_attaches_nothing() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let server = lab.server_on(PORT, &tree, |launch| {
        launch.fast_path("off");
    });
    assert!(server.log().contains("fast path  off, as configured"), "{}", server.log());
    assert_eq!(server.get("/hello.txt").text(), "hello");
    assert_eq!(stats(&server)["fast_path"]["state"], "off, as configured");
    assert_eq!(lab.attached(), 0);
}

/// One fast path for a port: the second process logs which process has it.
#[test]
fn a_second_one_on_the_port_serves_from_user_mode_or_not_at_all() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let first = lab.server(&tree, |_| ());
    let launch = |mode: &'static str| {
        Server::launch(tree.path(), |launch| {
            let address = "127.0.0.1:8080".parse().expect("an address");
            launch.inside(lab.namespace(), afpa_testkit::Endpoint::Tcp(address)).fast_path(mode);
        })
    };
    let whose = format!("port 8080 has a fast path already, of process {} (", first.pid());
    let mut second = launch("on");
    let status = second.wait(Duration::from_secs(20)).expect("it ends");
    assert!(!status.success() && second.log().contains(&whose), "{}", second.log());
    assert!(second.log().contains(&format!("`kill {}`", first.pid())), "{}", second.log());
    second.kill();
    let mut second = launch("auto");
    eventually("it serves", || second.log().contains("  control "));
    let line = format!("fast path  not in use: {whose}");
    assert!(second.log().contains(&line), "{}", second.log());
    second.kill();
    assert_eq!(lab.attached(), 4, "two programs on two interfaces");
    warm(&first, "/hello.txt");
}

#[test]
fn unwatched_files_are_left_to_user_mode() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let mut server = Server::launch(tree.path(), |launch| {
        launch.fast_path("on").set(|settings| {
            settings.set("coherency.watch", "false");
        });
    });
    let status = server.wait(Duration::from_secs(20)).expect("it ends");
    let log = server.log();
    assert!(
        !status.success() && log.contains("no fast path: changes of files are not watched"),
        "{log}"
    );
    server.kill();
    drop(lab);
}

#[test]
fn a_start_that_fails_leaves_nothing() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    tree.set_mode(".", 0o700);
    let mut server = Server::launch(tree.path(), |launch| {
        let address = "10.77.0.1:8080".parse().expect("an address");
        launch.inside(lab.namespace(), afpa_testkit::Endpoint::Tcp(address)).fast_path("on");
    });
    let status = server.wait(Duration::from_secs(10)).expect("it ends");
    assert!(!status.success() && server.log().contains("may not read"), "{}", server.log());
    // The links went with the process; the kernel takes them off when it comes to it.
    eventually("nothing is attached", || lab.attached() == 0);
    server.kill();
}

/// Runs as user 65534, which has no rights; nothing can be attached anywhere.
#[test]
fn without_rights_it_says_what_is_missing() {
    if !rustix::process::geteuid().is_root() {
        skip!("not root: cannot become somebody else");
    }
    let tree = site();
    let socket = tree.outside("sockets/x", "");
    let folder = socket.parent().expect("a folder");
    std::fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o777))
        .expect("mode");
    let serve = |mode: &str| {
        let mut command = Command::new(program());
        command.arg("serve").arg(tree.path()).args(["--fast-path", mode]);
        command.args(["--listen", "127.0.0.1:0", "--user", "65534", "--control"]);
        command.arg(folder.join("control.sock")).uid(65534).gid(65534);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().expect("afpa")
    };
    let on = serve("on").wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&on.stderr).into_owned();
    assert_eq!(on.status.code(), Some(1), "{text}");
    assert!(text.contains("no fast path: ") && text.contains("CAP_BPF"), "{text}");

    let mut auto = serve("auto");
    let mut summary = String::new();
    let mut lines = std::io::BufReader::new(auto.stderr.take().expect("a pipe"));
    while !summary.contains("  control ") {
        let read = std::io::BufRead::read_line(&mut lines, &mut summary).expect("its words");
        assert!(read > 0, "it ended: {summary}");
    }
    auto.kill().expect("killed");
    auto.wait().expect("ended");
    let line = summary.lines().find(|line| line.starts_with("  fast path ")).expect("a line");
    assert!(line.contains("not in use: ") && line.contains("CAP_BPF"), "{line}");
}

#[test]
fn check_says_whether_it_would_be_in_use() {
    let tree = site();
    let file = tree.outside("afpa.toml", format!("[[site]]\nroot = {:?}\n", tree.path()));
    let check = |mode: &str| {
        let text = format!("[fast_path]\nmode = \"{mode}\"\n[[site]]\nroot = {:?}\n", tree.path());
        std::fs::write(&file, text).expect("written");
        let output = Command::new(program()).arg("check").arg(&file).output().expect("afpa");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(check("off").contains("\nfast path: off, as configured\n"));
    let auto = check("auto");
    let line = auto.lines().find_map(|line| line.strip_prefix("fast path: ")).expect("a line");
    let available = afpa_bpf::FastPath::load(afpa_bpf::Settings::default()).is_ok();
    let expected = if available { "would be in use on lo" } else { "would not be in use: " };
    assert!(line.starts_with(expected), "{line}");
}

#[test]
fn check_says_of_each_site_whether_the_kernel_answers_it() {
    let tree = site();
    let root = tree.path();
    let text = format!(
        "[[site]]\nname = \"one\"\nhosts = [\"one.test\"]\nroot = {root:?}\n\
         [[site]]\nhosts = [\"*.two.test\"]\nroot = {root:?}\n\
         [[site]]\nname = \"app\"\nhosts = [\"app.test\"]\nto = \"127.0.0.1:3000\"\n\
         [[site]]\nname = \"off\"\nhosts = [\"off.test\"]\nto = \"127.0.0.1:3000\"\n\
         cache = {{ mode = \"off\" }}\n"
    );
    let file = tree.outside("afpa.toml", text);
    let output = Command::new(program()).arg("check").arg(&file).output().expect("afpa");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    for line in [
        "  one         yes\n",
        "  *.two.test  no: its hosts are patterns\n",
        "  app         yes\n",
        "  off         no: nothing of it is cached\n",
    ] {
        assert!(told.contains(line), "{line}{told}");
    }
}
