//! The phases of the load: one after the other another strategy is the best.

use afpa_generator::Object;

use super::contestants::{CHOOSES, FIXED};
use crate::bench::{Case, Method, Metric, TcLoad};
use crate::fast_path::mix;

/// In the order in which a server lives through them.
pub(super) fn phases() -> Vec<Case> {
    let object = |size: u64| vec![(1, Object::new(format!("/{size}.html"), size))];
    vec![
        phase("64-kept", "64 B on 64 connections that are kept", object(64), 64, false),
        phase("64-once", "64 B, one request a connection", object(64), 64, true),
        phase("8k-kept", "8 KB on 64 connections that are kept", object(8 << 10), 64, false),
        phase("mix-once", "SPECweb96's sizes, one request a connection", mix(), 64, true),
        phase("64k-kept", "64 KB on 64 connections that are kept", object(64 << 10), 64, false),
        phase("mix-kept", "SPECweb96's sizes on 256 connections that are kept", mix(), 256, false),
        phase("64-few", "64 B on 2 connections that are kept", object(64), 2, false),
    ]
}

fn phase(
    name: &str,
    title: &str,
    objects: Vec<(u32, Object)>,
    connections: u32,
    once: bool,
) -> Case {
    let servers: Vec<&str> = std::iter::once(CHOOSES).chain(FIXED).collect();
    Case {
        connections,
        method: Method::Tc(TcLoad { once, ..TcLoad::default() }),
        metrics: &[Metric::CoreTime],
        quick: true,
        ..Case::new(name, title, &servers, objects)
    }
}
