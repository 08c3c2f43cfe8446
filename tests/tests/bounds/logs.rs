//! The queue of the access log: the lines that wait to be written.

use std::fs::File;
use std::io::Read as _;
use std::process::Command;

use afpa_testkit::{
    Server, Tree, eventually,
    exclusive::exclusive,
    held::{Growth, MIB},
    skip,
};

/// The log is a pipe that nobody reads, and each record as long as it gets.
#[test]
fn a_log_that_nobody_takes_holds_its_queue_and_no_more() {
    const QUEUE: u64 = MIB;
    let _alone = exclusive();
    let tree = Tree::new();
    tree.file("hello.txt", "hello");
    let pipe = tree.at("access.log");
    let made = Command::new("mkfifo").args(["--mode=666"]).arg(&pipe).status();
    if !made.is_ok_and(|status| status.success()) {
        skip!("no mkfifo");
    }
    // Open at both ends, so that the server need not wait for a reader. It never reads.
    let mut reader = File::options().read(true).write(true).open(&pipe).expect("opened");
    let mut server = Server::start(tree.path(), |launch| {
        launch.arg("--workers").arg("1").arg("--access-log").arg(&pipe);
    });
    server.settle();
    let before = server.held();
    let mut client = server.connect();
    let long = "x".repeat(1800);
    let request = format!(
        "GET /hello.txt?{long} HTTP/1.1\r\nHost: h\r\nReferer: {long}\r\nUser-Agent: {long}\r\n\r\n"
    );
    for _ in 0..200 {
        client.send(request.repeat(16));
        for _ in 0..16 {
            assert_eq!(client.receive().status, 200);
        }
    }
    // The buffers of the queue, and the lines that are formatted at a time, with the escapes of their bytes.
    let bound = Growth { memory: QUEUE + 6 * MIB, descriptors: 4, threads: 2 };
    server.held().since(before).is_at_most("records that nobody takes", bound);
    drop(client);
    std::thread::spawn(move || while reader.read(&mut [0; 65536]).is_ok() {});
    server.signal(rustix::process::Signal::TERM);
    eventually("it ends when the log is taken", || !server.is_running());
}
