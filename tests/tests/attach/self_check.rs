//! The self-check: some of the kernel's answers are compared with the server's.

use afpa_testkit::{Client, eventually};
use afpa_tests::attach::{Attached, Kind};
use afpa_tests::slots;

fn compared(attached: &Attached, found: &str) -> u64 {
    let all = attached.statistics().expect("it runs");
    all["self_checks"][found].as_u64().unwrap_or_default()
}

fn get(client: &mut Client) -> String {
    client.send("GET /small.html HTTP/1.1\r\nHost: 10.77.0.1:8080\r\n\r\n");
    client.receive().text().to_owned()
}

/// First the kernel says what the server says. Then one bit of an answer changes in the kernel's memory.
#[test]
fn a_wrong_byte_in_the_kernel_ends_its_answers() {
    let lab = lab!(Kind::Nginx);
    let (right, wrong) = ("of the attachment's check, o", "of the attachment's check, p");
    lab.file("small.html", right);
    let attached = lab.attach(&["--self-check", "1", "--revalidate", "1"]);
    let mut client = lab.connect();
    eventually("some are compared", || {
        get(&mut client);
        compared(&attached, "same") >= 2
    });
    assert_eq!(compared(&attached, "different"), 0, "{}", lab.log());
    slots::spoil(right.as_bytes(), wrong.as_bytes());
    eventually("the difference is found", || {
        get(&mut client);
        compared(&attached, "different") > 0
    });
    assert_eq!(get(&mut client), right, "the server answers");
    let seen = attached.statistics().expect("it runs");
    assert_eq!(seen["state"], "not in use: the self-check found a wrong answer", "{seen}");
    let log = lab.log();
    assert!(log.contains("the kernel sent \"p\", and the server says \"o\""), "{log}");
    assert!(log.contains("--- the server"), "both answers are kept: {log}");
}
