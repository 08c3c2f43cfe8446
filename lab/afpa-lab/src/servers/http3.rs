//! Servers of HTTP/3: AFPA, nginx and HAProxy of Debian 13, Caddy. Each serves files by TLS on one port, by UDP and by TCP.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};

use super::installed::Origin;
use super::running::Launch;
use super::{Programs, Running, Server, ServerSetup, afpa, files, installed, template};

/// Their names.
pub const SECURE: [&str; 4] = ["afpa", "nginx", "haproxy", "caddy"];

/// The certificate of all, for a name.
#[derive(Debug)]
pub struct Certificate {
    /// For clients, in DER.
    pub der: Vec<u8>,
    /// The name.
    pub name: String,
    chain: String,
    key: String,
}

/// A server of HTTP/3.
#[derive(Debug)]
pub struct Secure {
    name: &'static str,
    afpa: PathBuf,
    certificate: Arc<Certificate>,
}

impl Certificate {
    /// A new one, with a key of ECDSA on P-256.
    ///
    /// # Errors
    ///
    /// When it cannot be made.
    pub fn make(name: &str) -> Result<Self> {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()])
            .context("cannot make a certificate")?;
        Ok(Self {
            der: made.cert.der().to_vec(),
            name: name.to_owned(),
            chain: made.cert.pem(),
            key: made.signing_key.serialize_pem(),
        })
    }

    /// Where a configuration finds it.
    fn write(&self, setup: &ServerSetup<'_>) -> Result<()> {
        for (name, text) in [
            ("chain.pem", &self.chain),
            ("key.pem", &self.key),
            ("both.pem", &[self.chain.as_str(), &self.key].concat()),
        ] {
            let path = setup.folder.join(name);
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }
}

impl Secure {
    /// The server of that name.
    pub fn named(name: &str, programs: &Programs, certificate: &Arc<Certificate>) -> Option<Self> {
        let name = SECURE.into_iter().find(|known| *known == name)?;
        Some(Self { name, afpa: programs.afpa.clone(), certificate: Arc::clone(certificate) })
    }

    /// The origin of its program, which has its name; `None`: it is ours.
    fn origin(&self) -> Option<Origin> {
        match self.name {
            "afpa" => None,
            "caddy" => Some(Origin::Here),
            _ => Some(Origin::Debian13),
        }
    }

    /// Connections that it may have.
    pub fn most_connections(&self) -> u32 {
        if self.name == "haproxy" { 9_500 } else { u32::MAX }
    }

    fn template(&self) -> (&'static str, &'static str) {
        match self.name {
            "afpa" => ("afpa.toml", include_str!("../../../servers/http3-afpa.toml")),
            "nginx" => ("nginx.conf", include_str!("../../../servers/http3-nginx.conf")),
            "haproxy" => ("haproxy.cfg", include_str!("../../../servers/http3-haproxy.cfg")),
            _ => ("Caddyfile", include_str!("../../../servers/http3-Caddyfile")),
        }
    }
}

/// The environment that `packaging/root/afpa.service` gives it.
const TUNABLES: &str = "glibc.malloc.tcache_count=500";

impl Server for Secure {
    fn name(&self) -> &str {
        self.name
    }

    fn about(&self) -> &str {
        "files by TLS: HTTP/3 and HTTP/2"
    }

    fn lacks(&self) -> Option<String> {
        match self.origin() {
            None => afpa::lacks(&self.afpa),
            Some(origin) => origin.lacks(self.name, self.name),
        }
    }

    fn version(&self) -> String {
        match self.origin() {
            None => installed::version(&self.afpa, "--version"),
            Some(Origin::Here) => format!("Caddy {}", Origin::Here.version(self.name, "version")),
            Some(Origin::Debian13) => Origin::Debian13.version(self.name, "-v"),
        }
    }

    fn start<'a>(&self, setup: &ServerSetup<'a>) -> Result<Running<'a>> {
        if let Some(why) = self.lacks() {
            bail!("{why}");
        }
        let launch = match self.origin() {
            None => Launch::new(&self.afpa),
            Some(origin) => Launch::of(origin, self.name)?,
        };
        self.certificate.write(setup)?;
        let (name, text) = self.template();
        let file = template::write(setup, name, text)?;
        let launch = match self.name {
            "afpa" => {
                let launch = launch.env("GLIBC_TUNABLES", TUNABLES);
                let launch = launch.args(["serve", "--config"]).arg(&file);
                if template::is_root() { launch.args(["--user", "root"]) } else { launch }
            }
            "nginx" => files::nginx(launch, setup.folder, &file),
            "haproxy" => launch.args(["-db", "-f"]).arg(&file),
            _ => files::caddy(launch, setup, &file),
        };
        Running::nothing(setup).with_configuration(file).and(setup, launch, setup.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_name_and_says_what_it_lacks() {
        let programs = Programs { afpa: "/nowhere/afpa".into(), lab: "/nowhere/lab".into() };
        let certificate = Arc::new(Certificate::make("lab.example").unwrap());
        let named = |name| Secure::named(name, &programs, &certificate);
        for name in SECURE {
            assert_eq!(named(name).unwrap().name(), name);
        }
        let afpa = named("afpa").unwrap();
        assert!(afpa.lacks().is_some_and(|why| why.contains("/nowhere/afpa")));
        for name in ["nginx", "haproxy"] {
            assert_eq!(named(name).unwrap().lacks(), Origin::Debian13.lacks(name, "none"));
        }
        assert!(named("h2o").is_none());
    }
}
