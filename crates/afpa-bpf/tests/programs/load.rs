//! The object loads, with head-room below the verifier's limit.
//! And its tables can be read.

use std::net::SocketAddr;

use afpa_bpf::{FastPath, FlowKey, Settings};

/// The verifier gives up at a million instructions; ours must stay well below.
const VERIFIER_BUDGET: u32 = 250_000;

#[test]
fn programs_load_within_the_verifier_budget() {
    let fast_path = match FastPath::load(Settings::default()) {
        Ok(fast_path) => fast_path,
        Err(error) if error.reason.contains("verifier") => panic!("{error}"),
        Err(error) => return println!("SKIP: {error}"),
    };
    assert_eq!(
        fast_path.lacks(),
        [""; 0],
        "some kernels refuse some programs, this one should not"
    );
    for program in fast_path.program_statistics().expect("programs can be asked") {
        println!("{program:?}");
        assert!(program.verified_instructions < VERIFIER_BUDGET, "{program:?}");
    }
}

/// Sweeps, statistics and the retention of answers rely on it.
#[test]
fn every_connection_of_a_large_table_is_seen() {
    const FLOWS: u32 = 20_000;
    let settings = Settings { flows: FLOWS, ..Settings::default() };
    let fast_path = match FastPath::load(settings) {
        Ok(fast_path) => fast_path,
        Err(error) if error.reason.contains("verifier") => panic!("{error}"),
        Err(error) => return println!("SKIP: {error}"),
    };
    let mut with_offset = [0; size_of::<afpa_bpf::Flow>()];
    with_offset[12] = 1; // `rx_offset`
    for number in 0..FLOWS {
        let client = SocketAddr::from(([10, 0, (number >> 16) as u8, 1], number as u16));
        let key = FlowKey::new(client, SocketAddr::from(([10, 1, 0, 1], 80)));
        fast_path.flows.put_flow(&key, &with_offset).expect("there is room");
    }
    assert_eq!(fast_path.flows.translated_flows().expect("counted"), FLOWS as usize);
}
