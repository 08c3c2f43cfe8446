//! The three servers behind a proxy that is measured.

use std::fs;
use std::net::SocketAddr;

use anyhow::{Context, Result};

use super::running::Launch;
use super::{Programs, Running, ServerSetup, files, installed, template};

/// How many there are.
pub(crate) const BACKENDS: usize = 3;

/// The servers behind the proxies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// AFPA: one process that listens three times.
    Afpa,
    /// nginx: a process for each.
    Nginx,
}

impl Backend {
    /// The reason why they cannot run here; `None` if they can.
    pub fn lacks(self, programs: &Programs) -> Option<String> {
        match self {
            Self::Afpa => super::afpa::lacks(&programs.afpa),
            Self::Nginx => installed::lacks("nginx", "nginx"),
        }
    }

    /// Starts the servers on these addresses. In a namespace of its own AFPA answers small files in the kernel.
    ///
    /// # Errors
    ///
    /// When one of them cannot be configured or started.
    pub(crate) fn start<'a>(
        self,
        setup: &ServerSetup<'a>,
        addresses: &[SocketAddr; BACKENDS],
        programs: &Programs,
    ) -> Result<Running<'a>> {
        match self {
            Self::Afpa => start_afpa(setup, addresses, programs),
            Self::Nginx => start_nginx(setup, addresses),
        }
    }
}

fn start_afpa<'a>(
    setup: &ServerSetup<'a>,
    addresses: &[SocketAddr; BACKENDS],
    programs: &Programs,
) -> Result<Running<'a>> {
    let text = include_str!("../../../servers/backend-afpa.toml");
    let file = template::write(setup, "afpa.toml", &template::with_backends(text, addresses))?;
    let launch = Launch::new(&programs.afpa)
        .args(["serve", "--config"])
        .arg(&file)
        .arg("--control")
        .arg(setup.folder.join("control.sock"))
        .args(["--fast-path", if setup.namespace.is_some() { "on" } else { "off" }]);
    let running = Running::nothing(setup).with_configuration(file);
    running.and(setup, launch, addresses[BACKENDS - 1])
}

fn start_nginx<'a>(
    setup: &ServerSetup<'a>,
    addresses: &[SocketAddr; BACKENDS],
) -> Result<Running<'a>> {
    let program = installed::find("nginx").context("nginx is not installed")?;
    let text = include_str!("../../../servers/backend-nginx.conf");
    let mut running = Running::nothing(setup);
    for address in addresses {
        let folder = setup.folder.join(address.port().to_string());
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let own = ServerSetup { address: *address, folder: &folder, ..*setup };
        let file = template::write(&own, "nginx.conf", text)?;
        let launch = files::nginx(Launch::new(&program), &folder, &file);
        running = running.with_configuration(file).and(&own, launch, *address)?;
    }
    Ok(running)
}
