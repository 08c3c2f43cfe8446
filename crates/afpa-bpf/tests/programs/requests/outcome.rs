//! One request, and its outcome.

use std::time::Duration;

use afpa_bpf::{FastPath, Reason, Settings};

use crate::support::{Lent, SERVER_V4, Sample, World};
use afpa_testkit::{Asked, Response, eventually};

pub(crate) fn world(settings: Settings) -> Option<(World, Lent)> {
    let mut world = World::new()?;
    world.file("kernel.html", b"from nginx");
    world.nginx("");
    world.await_server();
    let fast_path = world.fast_path(settings)?;
    Sample::new(b"from the kernel").pin(&fast_path, "/kernel.html");
    Some((world, fast_path))
}

/// Send one request on its own connection: does the kernel answer, and if not, why?
pub(crate) fn outcome(
    world: &World,
    fast_path: &FastPath,
    request: &str,
) -> Result<Response, Vec<Reason>> {
    fast_path.clock.beat();
    let before = fast_path.stats.counters().expect("counters");
    let mut client = world.connect(SERVER_V4);
    client.send(request);
    let silent = [Reason::PassTranslated, Reason::PassNoPayload];
    let passes = |reason: &Reason| reason.text().starts_with("passed") && !silent.contains(reason);
    // The server's side may run later than the client's.
    let mut counters = before.since(&before);
    eventually("it was answered or passed", || {
        std::thread::sleep(Duration::from_millis(10));
        counters = fast_path.stats.counters().expect("counters").since(&before);
        let mut counted = counters.iter().filter(|(_, count)| *count > 0);
        counters.answered() > 0 || counted.any(|(reason, _)| passes(&reason))
    });
    if counters.answered() == 1 {
        let asked = if request.starts_with("HEAD") { Asked::Head } else { Asked::Body };
        return Ok(client.try_receive(asked).expect("a response"));
    }
    Err(counters
        .iter()
        .filter(|(reason, count)| *count > 0 && passes(reason))
        .map(|(reason, _)| reason)
        .collect())
}
