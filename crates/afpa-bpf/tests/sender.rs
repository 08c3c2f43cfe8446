//! The TCP sender gives the same numbers in the kernel as in user space, where crates/afpa-tcp-sim tests it.
//!
//! Two compilers and two instruction sets run the same C: the whole state is compared after each step.

mod sender {
    pub(crate) mod in_kernel;
}

use afpa_tcp_sim::script;
use afpa_tcp_sim::worker::Worker;
use sender::in_kernel::Kernel;

/// Transfers whose every step is compared. A transfer has some seventy steps.
const TRANSFERS: u64 = 500;
/// The verifier looks at a million instructions of a program; the programs that send need their share.
const VERIFIER_BUDGET: u32 = 200_000;

#[test]
fn the_sender_gives_the_same_numbers_in_the_kernel_and_in_user_space() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut kernel) = Kernel::load(folder.path()) else { return };
    let mut worker = Worker::default();
    let mut steps = 0;
    for seed in 0..TRANSFERS {
        steps += script::play(seed, |now, step| {
            let state = kernel.step(now, step);
            let expected = worker.step(0, now, step);
            assert_eq!(state, expected, "script {seed}: {step:?}");
            state
        });
    }
    println!("FIGURE {steps} steps of {TRANSFERS} transfers agree");
    assert!(steps > TRANSFERS * 10, "{steps} steps are too few to say anything");
    let verified = kernel.verified();
    println!("FIGURE verified instructions of the sender's steps: {verified}");
    assert!((1..VERIFIER_BUDGET).contains(&verified), "{verified} leave no room for the programs");
}
