//! Servers that run side by side from first to last, and take turns in being measured: AFPA and its peers in
//! `afpa-lab compare` and `afpa-lab proxy`.
//!
//! An idle server costs nothing, and no server is measured with colder caches than another.

mod figure;
mod result;
mod summary;
mod table;
mod turn;

use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use afpa_generator::{Object, Workload};
use anyhow::{Context, Result};

use crate::answers;
use crate::bench::{Bench, Case, Metric};
use crate::servers::{Programs, Running, Server, ServerSetup};

pub(crate) use result::{Description, write};
pub(crate) use summary::{CaseSummary, MetricSummary, Summary};
pub(crate) use turn::{Turn, generator};

/// The place where the servers of an experiment run, and the folder of its results.
pub struct Setup<'s> {
    /// The servers' core.
    pub server_core: usize,
    /// The client's core.
    pub client_core: usize,
    /// AFPA, and this program.
    pub programs: Programs,
    /// The servers' own folders; removed by the caller.
    pub work: &'s Path,
    /// The document root, in `work`.
    pub root: PathBuf,
    /// Where results go.
    pub folder: &'s Path,
}

/// A server that runs.
#[derive(Debug)]
pub(crate) struct Peer<'f> {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    pub(crate) version: String,
    pub(crate) running: Running<'f>,
    /// Lengths of its answers' heads, by path.
    heads: HashMap<String, u64>,
}

impl Setup<'_> {
    /// Files of all cases, below one root that everybody may read.
    pub(crate) fn make_files(&self, cases: &[Case]) -> Result<()> {
        let root = self.root.as_path();
        fs::create_dir_all(root)?;
        for folder in [self.work, root] {
            fs::set_permissions(folder, Permissions::from_mode(0o755))?;
        }
        cases.iter().try_for_each(|case| Workload::given(case.objects.clone()).make_files(root))
    }

    /// A folder for a server's configuration and logs.
    pub(crate) fn folder_of(&self, name: &str) -> Result<PathBuf> {
        let folder = self.work.join(name);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(folder)
    }

    /// Starts a server where the caller is, beside those that run already; keeps its configuration.
    pub(crate) fn start<'f>(
        &'f self,
        server: &dyn Server,
        ip: IpAddr,
        folder: &'f Path,
    ) -> Result<Peer<'f>> {
        let address = SocketAddr::new(ip, free_port()?);
        let setup = ServerSetup {
            namespace: None,
            core: self.server_core,
            address,
            root: &self.root,
            folder,
            connections: 64,
        };
        let running = server.start(&setup).with_context(|| server.name().to_owned())?;
        self.keep_configuration(server.name(), &running)?;
        let (name, version) = (server.name().to_owned(), server.version());
        Ok(Peer { name, address, version, running, heads: HashMap::new() })
    }

    /// Copies the configuration that a server was started with to the results.
    pub(crate) fn keep_configuration(&self, name: &str, running: &Running<'_>) -> Result<()> {
        let Some(file) = running.configuration() else { return Ok(()) };
        let ending = file.extension().unwrap_or_default().to_string_lossy();
        fs::copy(file, self.folder.join(format!("{name}.{ending}")))?;
        Ok(())
    }
}

/// Asks every server for every file, `times` times, before the measurements.
///
/// # Errors
///
/// When an answer is wrong.
pub(crate) fn check(
    peers: &mut [Peer<'_>],
    cases: &[Case],
    times: u32,
    bench: &Bench,
) -> Result<()> {
    // Each file once, in the order of the cases.
    let mut objects: Vec<&Object> = Vec::new();
    for (_, object) in cases.iter().flat_map(|case| &case.objects) {
        if !objects.contains(&object) {
            objects.push(object);
        }
    }
    for peer in &mut *peers {
        for object in &objects {
            let length = answers::head_length(&peer.name, peer.address, object, times)?;
            peer.heads.insert(object.path.clone(), length);
        }
    }
    let names: Vec<&str> = peers.iter().map(|peer| peer.name.as_str()).collect();
    bench.say(&format!("answers: right in status, length and content from {}", names.join(", ")));
    Ok(())
}

impl Peer<'_> {
    /// Bytes of content among those that came: all but the heads.
    fn content(&self, case: &Case, bytes: u64, requests: u64) -> f64 {
        let weights: u32 = case.objects.iter().map(|(weight, _)| *weight).sum();
        let head = |path: &str| self.heads.get(path).copied().unwrap_or(0) as f64;
        let heads =
            case.objects.iter().map(|(weight, object)| f64::from(*weight) * head(&object.path));
        bytes as f64 - requests as f64 * heads.sum::<f64>() / f64::from(weights.max(1))
    }
}

/// The peer of that name.
pub(crate) fn named<'p, 'f>(peers: &'p [Peer<'f>], name: &str) -> Result<&'p Peer<'f>> {
    peers.iter().find(|peer| peer.name == name).with_context(|| format!("{name} does not run"))
}

/// A port on which no process listens, here and now.
pub(crate) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// A metric in a line of figures.
pub(crate) fn short(metric: Metric) -> &'static str {
    match metric {
        Metric::Requests => "requests/s",
        Metric::RequestsPerCore => "requests a core",
        Metric::Bytes => "bytes/s",
        Metric::BytesPerCore => "bytes a core",
        Metric::CoreTime => "core time",
        Metric::P50 => "p50",
        Metric::P99 => "p99",
        Metric::P999 => "p99.9",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_taken_off_by_their_share() {
        let objects = [(4, "/small.html", 512), (1, "/app/tiny", 102)];
        let objects = objects.map(|(weight, path, size)| (weight, Object::new(path, size)));
        let case = Case::new("mix", "mix", &["x"], objects.to_vec());
        let heads = [("/small.html", 200), ("/app/tiny", 300)];
        let peer = Peer {
            name: "x".into(),
            address: ([127, 0, 0, 1], 1).into(),
            version: String::new(),
            running: Running::none(),
            heads: heads.map(|(path, length)| (path.to_owned(), length)).into(),
        };
        assert_eq!(peer.content(&case, 100_000, 100), 100_000.0 - 22_000.0);
    }
}
