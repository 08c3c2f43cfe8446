//! How soon after its start the kernel answers.

use std::process::Stdio;
use std::time::{Duration, Instant};

use afpa_testkit::{Running, eventually, figure};
use afpa_tests::attach::{Kind, Lab, PORT};

use crate::body;

/// The limit for a busy machine; the test prints the time that it took.
const LONGEST: Duration = Duration::from_secs(30);

/// From the start of the process to the first answer of the kernel, on a new connection.
fn first_answer(lab: &Lab) -> Duration {
    let begun = Instant::now();
    let attached = lab.attach(&[]);
    eventually("the kernel answers", || {
        assert_eq!(body(&mut lab.connect(), "/small.html"), b"small");
        attached.answered() > 0
    });
    begun.elapsed()
}

#[test]
fn the_kernel_answers_soon_before_a_server_that_is_idle() {
    let lab = lab!(Kind::DebianNginx);
    lab.file("small.html", "small");
    let took = first_answer(&lab);
    figure!("from the start of afpa attach to the first answer of the kernel: {took:.2?}");
    assert!(took < LONGEST, "{took:?}");
}

#[test]
fn the_kernel_answers_soon_before_a_server_that_is_busy() {
    let lab = lab!(Kind::DebianNginx);
    lab.file("small.html", "small");
    lab.file("busy.html", "busy");
    let url = format!("http://10.77.0.1:{PORT}/busy.html");
    let mut wrk = lab.bed().client().command("wrk");
    wrk.args(["--threads", "1", "--connections", "64", "--duration", "20s", &url]);
    if std::process::Command::new("wrk").stdout(Stdio::null()).output().is_err() {
        afpa_testkit::skip!("wrk is not installed");
    }
    let busy = Running::start(wrk.stdout(Stdio::null()));
    let took = first_answer(&lab);
    figure!("the same, while 64 connections ask for as much as they can: {took:.2?}");
    assert!(took < LONGEST, "{took:?}");
    drop(busy);
}
