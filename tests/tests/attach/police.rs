//! Denied clients of a server that knows nothing of them.

use std::net::SocketAddr;
use std::time::Duration;

use afpa_netlab::Bed;
use afpa_testkit::{Client, eventually};
use afpa_tests::attach::{Attached, Kind, Lab};
use rustix::process::{Pid, Signal, kill_process};

const FRIEND: &str = "10.77.64.1";
const OTHER: &str = "10.77.64.2";

fn connect(lab: &Lab, from: &str) -> std::io::Result<Client> {
    let (from, to) = (from.parse().expect("an address"), Lab::address());
    let connect = move || Client::connect_within(Duration::from_millis(300), from, to);
    lab.bed().client().run(connect).expect("the namespace")
}

#[track_caller]
fn is_served(lab: &Lab, from: &str) {
    let mut client = connect(lab, from).unwrap_or_else(|error| panic!("{from}: {error}"));
    client.send("GET /small.html HTTP/1.1\r\nHost: 10.77.0.1:8080\r\n\r\n");
    assert_eq!(client.receive().text(), "small");
}

fn denied(attached: &Attached) -> u64 {
    let statistics = attached.statistics().expect("it runs");
    statistics["police"]["refused_connections"]["denied"].as_u64().expect("a count")
}

#[test]
fn denied_clients_do_not_reach_the_server() {
    let lab = lab!(Kind::Nginx);
    lab.file("small.html", "small");
    let interface = lab.bed().client().interface(Bed::DEVICE);
    interface.add_addresses(["10.77.64.2/16"]).expect("an address");
    let list = lab.folder.path().join("denied.txt");
    std::fs::write(&list, "10.77.64.0/24\n").expect("written");
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&list, readable).expect("readable for everybody");
    let file = list.display().to_string();
    let attached = lab.attach(&["--deny-file", &file, "--allow", FRIEND]);
    is_served(&lab, FRIEND);
    assert!(connect(&lab, OTHER).is_err());
    assert!(attached.pinned() > 0 && denied(&attached) > 0, "{:?}", attached.statistics());

    // Another one may be running on this machine.
    let own = attached.id().to_string();
    let (_, said) = lab.run_afpa(&["deny", "list", "--pid", &own]);
    assert!(said.contains("10.77.64.0/24") && said.contains("configuration"), "{said}");
    let (done, said) = lab.run_afpa(&["deny", "del", "10.77.64.0/24", "--pid", &own]);
    assert!(!done && said.contains("is denied by the configuration"), "{said}");

    let id = Pid::from_raw(attached.id().cast_signed()).expect("an id");
    std::fs::write(&list, "10.77.64.0/24\nnonsense\n").expect("written");
    kill_process(id, Signal::HUP).expect("it runs");
    eventually("it complains", || lab.log().contains("denied.txt:2: \"nonsense\" is neither"));
    assert!(connect(&lab, OTHER).is_err());
    std::fs::write(&list, "# nobody\n").expect("written");
    kill_process(id, Signal::HUP).expect("it runs");
    eventually("it is let in", || connect(&lab, OTHER).is_ok());
    is_served(&lab, OTHER);

    let (done, said) = lab.run_afpa(&["deny", "add", OTHER, "--pid", &own]);
    assert!(done && said == "10.77.64.2 is denied\n", "{said}");
    assert!(connect(&lab, OTHER).is_err());
    is_served(&lab, FRIEND);
    let (_, table) = lab.run_afpa(&["stats", "--pid", &own]);
    assert!(table.contains("Police refused connections"), "{table}");
    let (done, listed) = lab.run_afpa(&["call", "deny", "--pid", &own]);
    assert!(done && listed.contains(OTHER), "without parameters: {listed}");
    let (done, said) = lab.run_afpa(&["deny", "del", OTHER, "--pid", &own]);
    assert!(done, "{said}");
    is_served(&lab, OTHER);
}

#[test]
fn a_client_connects_as_often_as_it_may() {
    let lab = lab!(Kind::Nginx);
    lab.file("small.html", "small");
    // One token in a second: none comes back while the test counts.
    let attached =
        lab.attach(&["--client-connections-per-second", "1", "--client-connections-burst", "10"]);
    assert!(attached.pinned() > 0, "its own questions are not limited");
    let begun = std::time::Instant::now();
    let connected = (0..30).filter(|_| {
        let connect = || {
            let from = FRIEND.parse().expect("an address");
            Client::connect_within(Duration::from_millis(20), from, Lab::address()).is_ok()
        };
        lab.bed().client().run(connect).expect("the namespace")
    });
    let connected = connected.count();
    let most = 10 + begun.elapsed().as_secs() as usize + 1;
    assert!((10..=most).contains(&connected), "{connected} of at most {most}");
}

/// The rate is so low that no token comes back while the test counts.
#[test]
fn a_class_has_its_share_before_a_server_that_knows_nothing_of_it() {
    let lab = lab!(Kind::Nginx);
    lab.file("small.html", "small");
    let interface = lab.bed().client().interface(Bed::DEVICE);
    interface.add_addresses(["10.77.64.2/16"]).expect("an address");
    let all = ["--connections-per-second", "1", "--connections-burst", "40"];
    let attached = lab.attach(&[&all[..], &["--class", "friends=50:10.77.64.1"]].concat());
    let connected = |from: &str, count: u32| {
        let from = from.parse().expect("an address");
        let one =
            move || Client::connect_within(Duration::from_millis(20), from, Lab::address()).is_ok();
        (0..count).filter(|_| lab.bed().client().run(one).expect("the namespace")).count()
    };
    let others = connected(OTHER, 60);
    assert!(others >= 40, "what nobody else has asked for is theirs, too: {others}");
    let friends = connected(FRIEND, 20);
    assert!(friends >= 18, "half of 40, less what the start has taken: {friends}");
    let statistics = attached.statistics().expect("it runs");
    let classes = &statistics["police"]["classes"];
    assert!(classes["others"]["refused_connections"].as_u64() > Some(5), "{classes}");
    assert_eq!(classes["friends"]["share_percent"], 50, "{classes}");
}

#[test]
fn what_is_wrong_is_said_before_anything_is_attached() {
    let lab = lab!(Kind::Nginx);
    let listen: SocketAddr = Lab::address();
    let said = lab.attach_in_vain_with(&listen.to_string(), &["--deny", "10.0.0.1/8"]);
    assert!(said.contains("write 10.0.0.0/8 for all of it, or 10.0.0.1"), "{said}");
    let said = lab.attach_in_vain_with(&listen.to_string(), &["--deny-file", "/nowhere"]);
    assert!(said.contains("/nowhere: No such file") && said.contains("(create it"), "{said}");
    let listen_all = listen.to_string();
    let said = lab.attach_in_vain_with(&listen_all, &["--class", "a=30:10.0.0.0/8"]);
    assert!(said.contains("--connections-per-second"), "{said}");
    let rate = ["--connections-per-second", "100"];
    let said = lab.attach_in_vain_with(&listen_all, &[&rate[..], &["--class", "a:30"]].concat());
    assert!(said.contains("write for example office=30:10.0.0.0/8"), "{said}");
    let two = ["--class", "a=60:10.0.0.0/8", "--class", "b=50:11.0.0.0/8"];
    let said = lab.attach_in_vain_with(&listen_all, &[&rate[..], &two[..]].concat());
    assert!(said.contains("all --class together have 110 per cent: lower them to 100"), "{said}");
    let slow = ["--connections-per-second", "1", "--connections-burst", "10000"];
    let said = lab.attach_in_vain_with(&listen.to_string(), &slow);
    assert!(said.contains("takes more than an hour to come back"), "{said}");
    assert!(!lab.has_programs());
}
