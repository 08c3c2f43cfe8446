//! The send engine in C does what its model does, step by step.
//!
//! The same headers run as an ordinary process, for very many steps, and in the kernel by
//! BPF_PROG_TEST_RUN. After every step the whole state is compared.

#[allow(unreachable_pub)]
mod compiled;

#[allow(dead_code)]
#[path = "engine/"]
mod engine {
    pub(crate) mod in_kernel;
    pub(crate) mod script;
    pub(crate) mod step;
    pub(crate) mod user_space;
}

use engine::in_kernel::Kernel;
use engine::script::{Engine, play};
use engine::user_space::Process;

/// Answers whose every step is compared. An answer has some forty steps. AFPA_ANSWERS asks for more in user
/// space: what clients take back after all is rare.
const IN_USER_SPACE: u64 = 4_000;
const IN_KERNEL: u64 = 1_000;
/// The verifier looks at a million instructions of a program; the answering one needs its share.
const VERIFIER_BUDGET: u32 = 200_000;

fn hold_against_model(engine: &mut impl Engine, answers: u64) {
    let mut steps = 0;
    for seed in 0..answers {
        steps += play(engine, seed);
    }
    println!("FIGURE {steps} steps of {answers} answers agree");
    assert!(steps > answers * 10, "{steps} steps are too few to say anything");
}

#[test]
fn the_engine_agrees_with_its_model_in_user_space() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut process) = Process::start(folder.path()) else { return };
    let answers = std::env::var("AFPA_ANSWERS").ok().and_then(|answers| answers.parse().ok());
    hold_against_model(&mut process, answers.unwrap_or(IN_USER_SPACE));
}

#[test]
fn the_engine_agrees_with_its_model_in_the_kernel() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut kernel) = Kernel::load(folder.path()) else { return };
    hold_against_model(&mut kernel, IN_KERNEL);
    let verified = kernel.verified();
    println!("FIGURE verified instructions of the engine's steps: {verified}");
    assert!((1..VERIFIER_BUDGET).contains(&verified), "{verified} leave no room for the programs");
}
