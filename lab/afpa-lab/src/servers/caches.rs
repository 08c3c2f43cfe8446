//! Peers that are caches before a server: HAProxy and Varnish. Their origin is the lab's own `sped`,
//! on the same core, which has nothing to do once the cache is warm.

use anyhow::{Result, bail};

use super::running::Launch;
use super::{Programs, Running, Server, ServerSetup, installed, reference, template};

/// HAProxy with its cache, Varnish.
pub(super) fn peers(programs: &Programs) -> Vec<Box<dyn Server>> {
    let programs = programs.clone();
    vec![Box::new(HaProxy(programs.clone())), Box::new(Varnish(programs))]
}

struct HaProxy(Programs);

impl Server for HaProxy {
    fn name(&self) -> &str {
        "haproxy"
    }

    fn about(&self) -> &str {
        "HAProxy: one thread, answers from its cache"
    }

    fn lacks(&self) -> Option<String> {
        installed::lacks("haproxy", "haproxy").or_else(|| reference::lacks(&self.0))
    }

    fn version(&self) -> String {
        version("haproxy", "-v")
    }

    fn start<'a>(&self, setup: &ServerSetup<'a>) -> Result<Running<'a>> {
        let text = include_str!("../../../servers/haproxy.cfg");
        let file = template::write(setup, "haproxy.cfg", text)?;
        // -db: in the foreground.
        let launch = program("haproxy")?.arg("-db").arg("-f").arg(&file);
        let running = Running::nothing(setup).with_configuration(file);
        let running = running.and(setup, origin(setup, &self.0), template::origin(setup))?;
        running.and(setup, launch, setup.address)
    }
}

struct Varnish(Programs);

impl Server for Varnish {
    fn name(&self) -> &str {
        "varnish"
    }

    fn about(&self) -> &str {
        "Varnish: a pool of threads, answers from its memory"
    }

    fn lacks(&self) -> Option<String> {
        // It compiles its configuration.
        let varnish = installed::lacks("varnishd", "varnish");
        let compiler = || installed::lacks("cc", "build-essential");
        varnish.or_else(compiler).or_else(|| reference::lacks(&self.0))
    }

    fn version(&self) -> String {
        version("varnishd", "-V")
    }

    fn start<'a>(&self, setup: &ServerSetup<'a>) -> Result<Running<'a>> {
        let text = include_str!("../../../servers/varnish.vcl");
        let file = template::write(setup, "varnish.vcl", text)?;
        let launch = varnishd(program("varnishd")?, setup).arg("-f").arg(&file);
        let running = Running::nothing(setup).with_configuration(file);
        let running = running.and(setup, origin(setup, &self.0), template::origin(setup))?;
        running.and(setup, launch, setup.address)
    }
}

/// The parameters that its documentation names for a machine with one core for it.
fn varnishd(launch: Launch, setup: &ServerSetup<'_>) -> Launch {
    let threads = template::workers(setup).max(100);
    launch
        .arg("-F") // in the foreground
        .arg("-n")
        .arg(setup.folder.join("varnish")) // its shared memory: not in the system's place
        .args(["-j", "none"]) // the lab starts it as root, like the others
        .args(["-a", &setup.address.to_string()])
        .args(["-T", "none"]) // no administration
        .args(["-s", "malloc,1G"]) // room for the working set
        // A pool for each core; its threads, one for each busy connection, from the start: threads
        // are then neither made nor ended while the lab measures.
        .args(["-p", "thread_pools=1"])
        .args(["-p", &format!("thread_pool_min={threads}")])
        .args(["-p", &format!("thread_pool_max={}", threads.max(5000))])
        .args(["-p", "timeout_idle=300"]) // the generators close when they are done
        .args(["-p", "listen_depth=4096"])
}

/// A server that has the files.
fn origin(setup: &ServerSetup<'_>, programs: &Programs) -> Launch {
    reference::launch(programs, "sped", template::origin(setup), setup)
}

fn program(name: &str) -> Result<Launch> {
    match installed::find(name) {
        Some(program) => Ok(Launch::new(program)),
        None => bail!("{name} is not installed"),
    }
}

fn version(name: &str, argument: &str) -> String {
    installed::find(name).map_or_else(String::new, |path| installed::version(&path, argument))
}
