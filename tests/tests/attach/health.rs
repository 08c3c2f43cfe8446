//! A server that hangs or is gone looks as it does without us.

use std::time::Duration;

use afpa_testkit::{Client, eventually};
use afpa_tests::attach::{Attached, Kind};
use rustix::process::Signal;

const REQUEST: &str = "GET /page.html HTTP/1.1\r\nHost: 10.77.0.1:8080\r\n\r\n";

fn is_well(attached: &Attached) -> bool {
    attached.statistics().expect("it runs")["server"]["answers"] == true
}

#[track_caller]
fn the_kernel_answers(attached: &Attached, client: &mut Client) {
    let before = attached.answered();
    assert_eq!(client.exchange(REQUEST).text(), "content");
    assert_eq!(attached.answered(), before + 1, "{:#?}", attached.statistics());
}

fn stopped(kind: Kind) {
    let lab = lab!(kind);
    lab.file("page.html", "content");
    let attached = lab.attach(&[]);
    for round in 1..3 {
        let mut client = lab.connect();
        the_kernel_answers(&attached, &mut client);
        lab.signal_server(Signal::STOP);
        let began = std::time::Instant::now();
        eventually("the kernel stops answering", || !is_well(&attached));
        println!("{kind:?}: noticed {} ms after SIGSTOP", began.elapsed().as_millis());
        let before = attached.answered();
        client.send(REQUEST);
        client.assert_quiet();
        assert_eq!(attached.answered(), before, "a server that hangs answers nothing");
        lab.signal_server(Signal::CONT);
        assert_eq!(client.receive().text(), "content");
        eventually("the server is well", || is_well(&attached));
        attached.settle();
        the_kernel_answers(&attached, &mut lab.connect());
        assert_eq!(lab.log().matches("does not answer").count(), round, "{}", lab.log());
        assert_eq!(lab.log().matches("answers again").count(), round, "{}", lab.log());
    }
    assert_eq!(attached.statistics().expect("it runs")["server"]["went_away"], 2);
}

#[test]
fn nginx_that_is_stopped_is_not_spoken_for() {
    stopped(Kind::Nginx);
}

#[test]
fn apache_that_is_stopped_is_not_spoken_for() {
    stopped(Kind::Apache);
}

/// It comes back with another rule, which counts from its first answer on.
fn killed(kind: Kind) {
    let lab = lab!(kind);
    lab.file("page.html", "content");
    let attached = lab.attach(&["--revalidate", "3600"]);
    the_kernel_answers(&attached, &mut lab.connect());
    lab.signal_server(Signal::KILL);
    eventually("the kernel stops answering", || !is_well(&attached));
    let configuration = lab.folder.path().join("server.conf");
    let before = std::fs::read_to_string(&configuration).expect("read");
    let after = match kind {
        Kind::Nginx => before.replace(
            "location /secret/",
            "location = /page.html { return 403; } location /secret/",
        ),
        _ => before.replace(
            "<Location /secret/>",
            "<Location /page.html>\nRequire all denied\n</Location>\n<Location /secret/>",
        ),
    };
    assert_ne!(before, after);
    std::fs::write(&configuration, after).expect("written");
    lab.restart_server();
    let mut client = lab.connect();
    for _ in 0..20 {
        assert_eq!(client.exchange(REQUEST).status, 403, "{}", lab.log());
        if is_well(&attached) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    eventually("the server is well", || is_well(&attached));
    attached.settle();
    for _ in 0..5 {
        assert_eq!(lab.connect().exchange(REQUEST).status, 403, "{}", lab.log());
    }
}

#[test]
fn nginx_that_was_killed_comes_back_with_its_new_rules() {
    killed(Kind::Nginx);
}

#[test]
fn apache_that_was_killed_comes_back_with_its_new_rules() {
    killed(Kind::Apache);
}

/// The checks that `afpa attach` sends to the server are no traffic; no counter has them, passed or answered.
#[test]
fn its_own_questions_are_not_counted() {
    let lab = lab!(Kind::Nginx);
    lab.file("page.html", "content");
    let attached = lab.attach(&["--revalidate", "1"]);
    let asked = Duration::from_millis(2500); // for its health three times, and for the page twice
    std::thread::sleep(asked);
    let seen = attached.statistics().expect("it runs");
    let counted = seen["reasons"].as_object().expect("reasons").iter();
    let counted: Vec<_> = counted.filter(|(_, count)| count.as_u64() != Some(0)).collect();
    assert!(counted.is_empty(), "{counted:?}");
    let mut client = lab.connect();
    the_kernel_answers(&attached, &mut client);
}
