//! `afpa attach` with answers of several segments.

use std::time::Duration;

use afpa_testkit::tree::patterned;
use afpa_testkit::{Client, eventually, eventually_within};
use afpa_tests::attach::{Attached, Kind, Lab};

const SIZES: [usize; 6] = [1_500, 4_096, 8_192, 14_336, 40_000, 65_536];
const LONG: [&str; 2] = ["--answer-max", "69632"];

fn files(lab: &Lab) {
    for size in SIZES {
        lab.file(&format!("/{size}.html"), patterned(size));
    }
}

fn ask(client: &mut Client, size: usize) {
    client.send(format!("GET /{size}.html HTTP/1.1\r\nHost: 10.77.0.1:8080\r\n\r\n"));
}

/// A client that takes little before the test reads from it.
fn narrow(lab: &Lab) -> Client {
    let connect = || Client::connect_narrow(Lab::address(), 4096).expect("connected");
    lab.bed().client().run(connect).expect("the namespace")
}

fn under_way(attached: &Attached) -> u64 {
    attached.statistics().expect("it runs")["transfers"].as_u64().expect("a count")
}

fn answers_as_the_server_does(kind: Kind) {
    let lab = lab!(kind);
    files(&lab);
    let mut plain = lab.connect();
    let without_date = |mut response: afpa_testkit::Response| {
        response.fields.retain(|(name, _)| name != "Date");
        response
    };
    let own: Vec<_> = SIZES
        .iter()
        .map(|size| {
            ask(&mut plain, *size);
            without_date(plain.receive())
        })
        .collect();
    let attached = lab.attach(&LONG);
    assert_eq!(attached.pinned(), SIZES.len() as u64, "{:?}", attached.statistics());
    let mut client = lab.connect();
    for _ in 0..5 {
        for (size, own) in SIZES.iter().zip(&own) {
            ask(&mut client, *size);
            assert!(without_date(client.receive()) == *own, "{size}");
        }
    }
    assert_eq!(attached.answered(), 5 * SIZES.len() as u64, "{:?}", attached.statistics());
    eventually("every answer is at its end", || under_way(&attached) == 0);
}

#[test]
fn long_answers_of_nginx() {
    answers_as_the_server_does(Kind::Nginx);
}

#[test]
fn long_answers_of_apache() {
    answers_as_the_server_does(Kind::Apache);
}

#[test]
fn answers_longer_than_told_are_left_to_the_server() {
    let lab = lab!(Kind::Nginx);
    files(&lab);
    lab.file("/small.html", "small");
    let attached = lab.attach(&["--answer-max", "1460"]);
    assert_eq!(attached.pinned(), 1);
    let mut client = lab.connect();
    for size in SIZES {
        ask(&mut client, size);
        assert!(client.receive().body == patterned(size));
    }
    assert_eq!(attached.answered(), 0);
}

/// The connection is the server's, so it outlives the attachment that answered on it; and so does the answer.
#[test]
fn an_answer_under_way_outlives_a_killed_attachment() {
    let lab = lab!(Kind::Nginx);
    files(&lab);
    let attached = lab.attach(&LONG);
    let mut clients: Vec<_> = (0..10).map(|_| narrow(&lab)).collect();
    clients.iter_mut().for_each(|client| ask(client, 65_536));
    eventually("all are under way", || under_way(&attached) == 10);
    attached.kill();
    // Half of them take it while nobody is there, the others when the next one is.
    let later = clients.split_off(5);
    let mut read = |mut client: Client| {
        assert!(client.receive().body == patterned(65_536));
        ask(&mut client, 40_000);
        assert!(client.receive().body == patterned(40_000));
    };
    clients.into_iter().for_each(&mut read);
    let next = lab.attach(&LONG);
    later.into_iter().for_each(&mut read);
    eventually_within(Duration::from_secs(20), "nothing is under way", || under_way(&next) == 0);
}

#[test]
fn detaching_waits_for_answers_under_way() {
    let lab = lab!(Kind::Nginx);
    files(&lab);
    let attached = lab.attach(&LONG);
    let mut client = narrow(&lab);
    ask(&mut client, 65_536);
    eventually("it is under way", || under_way(&attached) == 1);
    std::thread::scope(|scope| {
        let detached = scope.spawn(|| lab.detach(&["--wait", "20", "--force"]));
        std::thread::sleep(Duration::from_millis(300));
        assert!(client.receive().body == patterned(65_536));
        drop(client);
        let (well, said) = detached.join().expect("ended");
        assert!(well, "{said}");
    });
    assert!(attached.wait(), "it ended by itself");
}
