//! Other programs at the same hooks.

use afpa_bpf::{Reason, Settings, TcxHook, TcxProgram};
use afpa_netlab::Bed;
use afpa_testkit::Client;
use afpa_tests::tcp::{Lab, Plan, Sample};

use crate::support::{lab, nothing_was_dropped, tc, user_mode_is_right};

const HOOKS: [TcxHook; 2] = [TcxHook::Ingress, TcxHook::Egress];

fn on_the_server<T: Send>(lab: &Lab, work: impl FnOnce(u32) -> T + Send) -> T {
    let done = lab
        .bed
        .server()
        .run(|| work(nix::net::if_::if_nametoindex(Bed::DEVICE).expect("an interface")));
    done.expect("the server's side")
}

/// Another program is there already, and accepts everything: programs behind it would not run.
#[test]
fn programs_stand_before_those_that_were_there() {
    let files: [(&str, &[u8]); 2] =
        [("user.html", b"from nginx"), ("large.html", &afpa_tests::tcp::large())];
    let Some(mut lab) = Lab::without_fast_path(Plan::default(), &files) else { return };
    let accepting = HOOKS.map(|hook| TcxProgram::accepting(hook).expect("loaded"));
    on_the_server(&lab, |index| {
        accepting.iter().for_each(|program| program.attach(index).expect("attached"));
    });
    if !lab.start_fast_path() {
        return;
    }
    Sample::new("from the kernel").pin(lab.fast_path(), "/kernel.html");
    let mut client = lab.client();
    lab.converse(&mut client);
    user_mode_is_right(&mut client);
    lab.converse(&mut client);
    client.end();
}

/// Another program comes later and goes before ours. Nothing is answered on that interface until it is gone, since it
/// may end the chain; segments that pass it are still translated.
#[test]
fn answers_stop_while_another_program_stands_before_ours() {
    let Some(lab) = lab() else { return };
    let mut client = lab.client();
    for hook in HOOKS {
        lab.converse(&mut client);
        let other = TcxProgram::passing_on(hook).expect("loaded");
        on_the_server(&lab, |index| other.attach_first(index)).expect("attached");
        nothing_is_answered(&lab, &mut client);
        on_the_server(&lab, |index| other.detach(index)).expect("detached");
        assert_eq!(behind(&lab), 0);
        lab.converse(&mut client);
    }
    client.end();
    nothing_was_dropped(&lab);
}

/// The same on kernels without tcx, where all programs are filters; somebody's need not be a program of eBPF.
#[test]
fn answers_stop_while_another_filter_stands_before_ours() {
    let settings = Settings { without_tcx: true, ..Settings::default() };
    let Some(lab) = Lab::with_sample(Plan { settings, ..Plan::default() }) else { return };
    let mut client = lab.client();
    for hook in ["ingress", "egress"] {
        add_filter(&lab, hook, 65_000, NOTHING);
        assert_eq!(behind(&lab), 0, "it stands behind ours");
        lab.converse(&mut client);
        add_filter(&lab, hook, 1, NOTHING);
        nothing_is_answered(&lab, &mut client);
        tc(lab.bed.server(), &format!("filter del dev {} {hook} pref 1", Bed::DEVICE));
        assert_eq!(behind(&lab), 0);
        lab.converse(&mut client);
    }
    client.end();
    nothing_was_dropped(&lab);
}

/// Filters that were there already have any priority. Before a filter with the first one of all there is no place.
#[test]
fn filters_stand_before_those_that_were_there() {
    let files: [(&str, &[u8]); 3] = [
        ("user.html", b"from nginx"),
        ("kernel.html", b"from nginx, the pinned one"),
        ("large.html", &afpa_tests::tcp::large()),
    ];
    for (priority, accepted, is_first) in [(5, EVERYTHING, true), (1, NOTHING, false)] {
        let settings = Settings { without_tcx: true, ..Settings::default() };
        let plan = Plan { settings, ..Plan::default() };
        let Some(mut lab) = Lab::without_fast_path(plan, &files) else { return };
        tc(lab.bed.server(), &format!("qdisc add dev {} clsact", Bed::DEVICE));
        for hook in ["ingress", "egress"] {
            add_filter(&lab, hook, priority, accepted);
        }
        if !lab.start_fast_path() {
            return;
        }
        Sample::new("from the kernel").pin(lab.fast_path(), "/kernel.html");
        let mut client = lab.client();
        if is_first {
            assert_eq!(behind(&lab), 0);
            lab.converse(&mut client);
            user_mode_is_right(&mut client);
            lab.converse(&mut client);
        } else {
            nothing_is_answered(&lab, &mut client);
        }
        client.end();
    }
}

/// Of packets whose first word is this, under this mask.
const EVERYTHING: &str = "0 0";
const NOTHING: &str = "0xffffffff 0xffffffff";

/// Adds a filter that accepts packets: filters behind it do not run.
#[track_caller]
fn add_filter(lab: &Lab, hook: &str, priority: u32, accepted: &str) {
    let place = format!("dev {} {hook} pref {priority} protocol all", Bed::DEVICE);
    let filter = format!("u32 match u32 {accepted} at 0 flowid 1:7");
    tc(lab.bed.server(), &format!("filter add {place} {filter}"));
}

/// Interfaces at which somebody else comes first.
fn behind(lab: &Lab) -> usize {
    on_the_server(lab, |_| lab.fast_path().interfaces.look_at_chains()).expect("asked").len()
}

/// Another program comes first. Segments that pass it are still translated.
#[track_caller]
fn nothing_is_answered(lab: &Lab, client: &mut Client) {
    assert_eq!(behind(lab), 1);
    let before = lab.count(Reason::PassNotFirst);
    let reply = client.get("/kernel.html");
    assert!(!reply.is_from_kernel(), "{reply:?}");
    assert!(lab.count(Reason::PassNotFirst) > before, "{}", lab.tally());
    user_mode_is_right(client);
}
