//! Caches before a server: HAProxy, Varnish, nginx, and AFPA. Their origin is the lab's own `sped`,
//! on the same core, which has nothing to do once the cache is warm.

use std::path::PathBuf;

use anyhow::Result;

use super::installed::Origin;
use super::running::Launch;
use super::{Programs, Running, Server, ServerSetup, installed, reference, template};

/// HAProxy, Varnish, nginx with their caches; AFPA with its own, in user mode and in the kernel.
pub(super) fn caches(programs: &Programs) -> Vec<Box<dyn Server>> {
    let own = |kernel| Afpa { kernel, programs: programs.clone() };
    vec![
        Box::new(HaProxy(programs.clone(), Origin::Here)),
        Box::new(HaProxy(programs.clone(), Origin::Debian13)),
        Box::new(Varnish(programs.clone(), Origin::Here)),
        Box::new(Varnish(programs.clone(), Origin::Debian13)),
        Box::new(Nginx(programs.clone())),
        Box::new(own(false)),
        Box::new(own(true)),
    ]
}

struct Nginx(Programs);

impl Server for Nginx {
    fn name(&self) -> &str {
        "nginx-cache"
    }

    fn about(&self) -> &str {
        "nginx, answers from its cache of a server's answers"
    }

    fn lacks(&self) -> Option<String> {
        installed::lacks("nginx", "nginx").or_else(|| reference::lacks(&self.0))
    }

    fn version(&self) -> String {
        Origin::Here.version("nginx", "-v")
    }

    fn start<'a>(&self, setup: &ServerSetup<'a>) -> Result<Running<'a>> {
        let text = include_str!("../../../servers/nginx-cache.conf");
        let file = template::write(setup, "nginx-cache.conf", text)?;
        let launch =
            Launch::of(Origin::Here, "nginx")?.arg("-p").arg(setup.folder).arg("-c").arg(&file);
        let launch = launch.arg("-e").arg(setup.folder.join("errors.txt"));
        behind(setup, &self.0, file, launch)
    }
}

struct Afpa {
    kernel: bool,
    programs: Programs,
}

impl Server for Afpa {
    fn name(&self) -> &str {
        if self.kernel { "afpa-cache-kernel" } else { "afpa-cache" }
    }

    fn about(&self) -> &str {
        match self.kernel {
            true => "AFPA, a server's answers from its cache, small ones in softirq",
            false => "AFPA in user mode, a server's answers from its cache",
        }
    }

    fn lacks(&self) -> Option<String> {
        super::afpa::lacks(&self.programs.afpa).or_else(|| reference::lacks(&self.programs))
    }

    fn version(&self) -> String {
        installed::version(&self.programs.afpa, "--version")
    }

    fn ages(&self) -> bool {
        true
    }

    fn start<'a>(&self, setup: &ServerSetup<'a>) -> Result<Running<'a>> {
        let text = include_str!("../../../servers/afpa-cache.toml");
        let file = template::write(setup, "afpa-cache.toml", text)?;
        let fast_path = if self.kernel { "on" } else { "off" };
        let launch = Launch::new(&self.programs.afpa).args(["serve", "--config"]).arg(&file);
        behind(setup, &self.programs, file, launch.args(["--fast-path", fast_path]))
    }
}

/// Starts the origin, then the cache before it.
fn behind<'a>(
    setup: &ServerSetup<'a>,
    programs: &Programs,
    configuration: PathBuf,
    launch: Launch,
) -> Result<Running<'a>> {
    let running = Running::nothing(setup).with_configuration(configuration);
    let running = running.and(setup, origin(setup, programs), template::origin(setup))?;
    running.and(setup, launch, setup.address)
}

struct HaProxy(Programs, Origin);

impl Server for HaProxy {
    fn name(&self) -> &str {
        match self.1 {
            Origin::Here => "haproxy",
            Origin::Debian13 => "haproxy-debian13",
        }
    }

    fn about(&self) -> &str {
        match self.1 {
            Origin::Here => "HAProxy: one thread, answers from its cache",
            Origin::Debian13 => "Debian 13's HAProxy, configured like the other",
        }
    }

    fn lacks(&self) -> Option<String> {
        self.1.lacks("haproxy", "haproxy").or_else(|| reference::lacks(&self.0))
    }

    fn version(&self) -> String {
        self.1.version("haproxy", "-v")
    }

    fn start<'a>(&self, setup: &ServerSetup<'a>) -> Result<Running<'a>> {
        let text = include_str!("../../../servers/haproxy.cfg");
        let file = template::write(setup, "haproxy.cfg", text)?;
        // -db: in the foreground.
        let launch = Launch::of(self.1, "haproxy")?.arg("-db").arg("-f").arg(&file);
        behind(setup, &self.0, file, launch)
    }
}

struct Varnish(Programs, Origin);

impl Server for Varnish {
    fn name(&self) -> &str {
        match self.1 {
            Origin::Here => "varnish",
            Origin::Debian13 => "varnish-debian13",
        }
    }

    fn about(&self) -> &str {
        match self.1 {
            Origin::Here => "Varnish: a pool of threads, answers from its memory",
            Origin::Debian13 => "Debian 13's Varnish, configured like the other",
        }
    }

    fn lacks(&self) -> Option<String> {
        // Varnish compiles its configuration.
        let varnish = self.1.lacks("varnishd", "varnish");
        let compiler = || installed::lacks("cc", "build-essential");
        varnish.or_else(compiler).or_else(|| reference::lacks(&self.0))
    }

    fn version(&self) -> String {
        self.1.version("varnishd", "-V")
    }

    fn start<'a>(&self, setup: &ServerSetup<'a>) -> Result<Running<'a>> {
        let text = include_str!("../../../servers/varnish.vcl");
        let file = template::write(setup, "varnish.vcl", text)?;
        let launch = varnishd(Launch::of(self.1, "varnishd")?, setup).arg("-f").arg(&file);
        behind(setup, &self.0, file, launch)
    }
}

/// The parameters that Varnish's documentation names for a machine with one core for it.
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
