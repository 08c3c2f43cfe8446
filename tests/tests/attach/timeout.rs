//! Servers that say for how long they keep idle connections, as all of Node.js do: `Keep-Alive: timeout=2`.

use std::time::{Duration, Instant};

use afpa_tests::attach::Kind;

use crate::answers::{same_answers_with_and_without, the_kernel_answers_what_is_everybodys};
use crate::body;

#[test]
fn node_says_the_same_with_and_without() {
    same_answers_with_and_without(Kind::Node);
}

#[test]
fn node_everybodys_answers_come_from_the_kernel_and_no_others() {
    the_kernel_answers_what_is_everybodys(Kind::Node);
}

/// The server's idle timer sees a request often enough, though `--server-timeout` says more than the server does.
#[test]
fn a_busy_connection_is_not_idle_to_its_server() {
    let lab = lab!(Kind::Node);
    lab.file("small.html", "small");
    let attached = lab.attach(&["--server-timeout", "60"]);
    let before = attached.answered();
    let mut client = lab.connect();
    let (begun, mut asked, mut last) = (Instant::now(), 0, Instant::now());
    while begun.elapsed() < Duration::from_secs(5) {
        if last.elapsed() > Duration::from_millis(1400) {
            println!("SKIP: this machine stood still");
            return;
        }
        last = Instant::now();
        assert_eq!(body(&mut client, "/small.html"), b"small", "{}", lab.log());
        asked += 1;
        std::thread::sleep(Duration::from_millis(20));
    }
    let answered = attached.answered() - before;
    assert!(answered * 4 > asked * 3, "{answered} of {asked}: {:#?}", attached.statistics());
    let passed = &attached.statistics().expect("it runs")["reasons"]["passed: the server's idle timer is due to see a request"];
    assert!(passed.as_u64() >= Some(5), "{passed}");
    // Half a second less than the two that the answer promises, and a second for the way.
    std::thread::sleep(Duration::from_millis(500));
    if last.elapsed() < Duration::from_millis(1400) {
        assert_eq!(body(&mut client, "/small.html"), b"small");
    }
}
