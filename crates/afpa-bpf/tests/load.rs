//! The object loads, with head-room below the verifier's limit.

use afpa_bpf::{FastPath, Settings};

/// The verifier gives up at a million instructions; ours must stay well below.
const VERIFIER_BUDGET: u32 = 400_000;

#[test]
fn programs_load_within_the_verifier_budget() {
    let fast_path = match FastPath::load(Settings::default()) {
        Ok(fast_path) => fast_path,
        Err(error) if error.reason.contains("verifier") => panic!("{error}"),
        Err(error) => return println!("SKIP: {error}"),
    };
    for program in fast_path.program_statistics().expect("programs can be asked") {
        println!("{program:?}");
        assert!(program.verified_instructions < VERIFIER_BUDGET, "{program:?}");
    }
}
