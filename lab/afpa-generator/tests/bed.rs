//! All generators on a test bed, against the same small server.

mod origin;

use std::time::Duration;

use afpa_generator::{
    ClientSetup, Generator, Load, Measured, Workload, agreement, family, generators,
};
use afpa_netlab::{Bed, BedOptions, missing_privilege};
use origin::Manners;

/// wrk counts in whole seconds.
fn load(generator: &dyn Generator, persistent: bool) -> Load {
    let milliseconds = if generator.name() == "wrk" { 1000 } else { 300 };
    Load {
        connections: 4,
        warm_up: Duration::ZERO,
        duration: Duration::from_millis(milliseconds),
        persistent,
        rate: None,
    }
}

fn run(bed: &Bed, generator: &dyn Generator, workload: &Workload, load: &Load) -> Measured {
    let server = || origin::start(Bed::SERVER_V4.into(), workload, Manners::default());
    let (to, seen) = bed.server().run(server).unwrap();
    let client = ClientSetup {
        to,
        interface: Bed::DEVICE.into(),
        first_source: Bed::client_address(to.ip(), 0),
        sources: 1,
        core: 0,
        answers_at_once: false,
        ages: false,
    };
    let mut samples = 0;
    let work = || generator.run(&client, workload, load, &mut || samples += 1);
    let measured = bed.client().run(work).unwrap();
    let name = format!("{} {} {}", generator.name(), workload.name, load.persistent);
    let measured = measured.unwrap_or_else(|error| panic!("{name}: {error:#}"));
    println!("{name}: {:.0}/s {measured:?}", measured.requests_per_second());
    assert_eq!(samples, 2, "{name}");
    assert_eq!(measured.errors, 0, "{name}: {measured:?}");
    assert!(measured.requests > 10, "{name}: {measured:?}");
    assert!(measured.latency.p50 > 1.0 && measured.latency.p99 >= measured.latency.p50, "{name}");
    std::thread::sleep(Duration::from_millis(50));
    let asked = seen.of(|s| &s.requests);
    assert!(asked >= measured.requests, "{name}: the server saw {asked}: {measured:?}");
    measured
}

/// Each generator that is installed, on a workload that needs shares, one that needs header fields and
/// one with many segments.
#[test]
fn generators_do_what_they_say_they_can() {
    if let Some(reason) = missing_privilege() {
        eprintln!("SKIP: {reason}");
        return;
    }
    let bed = Bed::create(&BedOptions::default()).unwrap();
    for (name, sizes) in [("webstone", 512), ("conditional", 4096), ("specweb96", 1)] {
        let workload = family(name, &[sizes], true).unwrap().remove(0);
        for generator in generators() {
            if let Some(reason) = generator.lacks() {
                eprintln!("SKIP: {}: {reason}", generator.name());
                continue;
            }
            for persistent in [true, false] {
                let load = load(&*generator, persistent);
                match generator.can(&workload, &load) {
                    Ok(()) => drop(run(&bed, &*generator, &workload, &load)),
                    Err(why) => println!("{}: {why}", generator.name()),
                }
            }
        }
    }
}

/// All generators have the same mean of bytes a request: the workload decides the shares.
#[test]
fn generators_agree_on_what_is_asked() {
    if let Some(reason) = missing_privilege() {
        eprintln!("SKIP: {reason}");
        return;
    }
    let bed = Bed::create(&BedOptions::default()).unwrap();
    let workload = family("proxy", &[], true).unwrap().remove(0);
    let mut measured = Vec::new();
    for generator in generators().into_iter().filter(|generator| generator.lacks().is_none()) {
        let found = run(&bed, &*generator, &workload, &load(&*generator, true));
        let each = found.bytes as f64 / found.requests as f64;
        // The server's head, and 102 bytes.
        assert!((140.0..145.0).contains(&each), "{}: {each}", generator.name());
        measured.push((generator.name().to_owned(), found));
    }
    let all: Vec<(&str, &Measured)> = measured.iter().map(|(n, m)| (n.as_str(), m)).collect();
    println!("{:?}", agreement(&all));
}
