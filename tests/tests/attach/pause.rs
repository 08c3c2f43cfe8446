//! `afpa pause`: the kernel answers nothing any more, even if the process that drives it hangs.

use afpa_testkit::Client;
use afpa_tests::attach::{Attached, Kind};
use rustix::process::{Pid, Signal, kill_process};

use crate::body;

const LARGE: usize = 100_000;

#[track_caller]
fn signal(attached: &Attached, signal: Signal) {
    let id = Pid::from_raw(attached.id().cast_signed()).expect("an id");
    kill_process(id, signal).expect("it runs");
}

#[test]
fn a_pause_needs_no_help_of_the_process_and_connections_stay_whole() {
    let lab = lab!(Kind::Nginx);
    lab.file("small.html", "small");
    lab.file("large.txt", vec![b'l'; LARGE]);
    let (none, said) = lab.run_afpa(&["pause"]);
    assert!(!none && said.contains("no fast path is on the interfaces"), "{said}");
    let attached = lab.attach(&[]);
    let mut client = lab.connect();
    let before = attached.answered();
    assert_eq!(body(&mut client, "/small.html"), b"small");
    assert_eq!(attached.answered(), before + 1, "the connection has an offset");

    signal(&attached, Signal::STOP);
    let (done, said) = lab.run_afpa(&["pause"]);
    let whose = format!("port 8080: paused, of process {} (", attached.id());
    assert!(done && said.contains(&whose), "{said}");
    let whole = |client: &mut Client| {
        assert_eq!(body(client, "/small.html"), b"small");
        assert_eq!(body(client, "/large.txt"), vec![b'l'; LARGE]);
    };
    whole(&mut client);
    whole(&mut lab.connect());
    signal(&attached, Signal::CONT);
    for _ in 0..3 {
        whole(&mut client);
        whole(&mut lab.connect());
    }
    let paused = attached.statistics().expect("it runs");
    assert_eq!(paused["paused"], true, "{paused}");
    assert_eq!(attached.answered(), before + 1, "only what came before the pause");
    // Another one may be running on this machine.
    let id = attached.id().to_string();
    let (_, table) = lab.run_afpa(&["stats", "--pid", &id]);
    assert!(table.contains("paused: `afpa resume`"), "{table}");

    let (done, said) = lab.run_afpa(&["resume", "--port", "8080"]);
    assert!(done && said.contains("port 8080: answers, of process"), "{said}");
    assert_eq!(body(&mut lab.connect(), "/small.html"), b"small");
    assert_eq!(attached.answered(), before + 2, "{:?}", attached.statistics());
    whole(&mut client);
}
