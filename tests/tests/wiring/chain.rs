//! Other programs at the same hooks.

use afpa_bpf::{Reason, TcxHook, TcxProgram};
use afpa_netlab::Bed;
use afpa_tests::tcp::{Lab, Plan, Sample};

use crate::support::{lab, nothing_was_dropped, user_mode_is_right};

const HOOKS: [TcxHook; 2] = [TcxHook::Ingress, TcxHook::Egress];

fn on_the_server<T: Send>(lab: &Lab, work: impl FnOnce(u32) -> T + Send) -> T {
    let done = lab
        .bed
        .server()
        .run(|| work(nix::net::if_::if_nametoindex(Bed::DEVICE).expect("an interface")));
    done.expect("the server's side")
}

/// Somebody's program is there already, and accepts everything: what stands behind it is not asked any more.
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

/// Somebody's program comes later and goes before ours. Nothing is answered on that interface until it is gone, since it
/// may end the chain; what passes it is translated on.
#[test]
fn answers_stop_while_another_program_stands_before_ours() {
    let Some(lab) = lab() else { return };
    let mut client = lab.client();
    for hook in HOOKS {
        lab.converse(&mut client);
        let other = TcxProgram::passing_on(hook).expect("loaded");
        on_the_server(&lab, |index| other.attach_first(index)).expect("attached");
        let behind = on_the_server(&lab, |_| lab.fast_path().look_at_chains()).expect("asked");
        assert_eq!(behind.len(), 1);
        let reply = client.get("/kernel.html");
        assert!(!reply.is_from_kernel(), "{reply:?}");
        assert!(lab.count(Reason::PassNotFirst) > 0, "{}", lab.tally());
        user_mode_is_right(&mut client);
        on_the_server(&lab, |index| other.detach(index)).expect("detached");
        let behind = on_the_server(&lab, |_| lab.fast_path().look_at_chains()).expect("asked");
        assert!(behind.is_empty());
        lab.converse(&mut client);
    }
    client.end();
    nothing_was_dropped(&lab);
}
