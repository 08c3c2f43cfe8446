//! Servers of HTTP/3: AFPA, nginx and HAProxy of Debian 13, Caddy. Each serves files by TLS on one port, by UDP and by TCP.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};

use super::debian13::Foreign;
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
    program: Result<Found, String>,
    certificate: Arc<Certificate>,
}

#[derive(Debug)]
enum Found {
    Here(PathBuf),
    Debian13(Foreign),
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
    /// The server of that name; `debian13` is where that root is.
    pub fn named(
        name: &str,
        programs: &Programs,
        debian13: &Path,
        certificate: &Arc<Certificate>,
    ) -> Option<Self> {
        let name = SECURE.into_iter().find(|known| *known == name)?;
        let of_debian13 = |program| Foreign::find(debian13, program).map(Found::Debian13);
        let program = match name {
            "afpa" => match afpa::lacks(&programs.afpa) {
                Some(why) => Err(why),
                None => Ok(Found::Here(programs.afpa.clone())),
            },
            "nginx" => of_debian13("usr/sbin/nginx"),
            "haproxy" => of_debian13("usr/sbin/haproxy"),
            _ => installed::find("caddy")
                .map(Found::Here)
                .ok_or_else(|| "caddy is not installed (Debian package caddy)".into()),
        };
        Some(Self { name, program, certificate: Arc::clone(certificate) })
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

impl Server for Secure {
    fn name(&self) -> &str {
        self.name
    }

    fn about(&self) -> &str {
        "files by TLS: HTTP/3 and HTTP/2"
    }

    fn lacks(&self) -> Option<String> {
        self.program.as_ref().err().cloned()
    }

    fn version(&self) -> String {
        let argument = match self.name {
            "afpa" => "--version",
            "caddy" => "version",
            _ => "-v",
        };
        match &self.program {
            Ok(Found::Here(program)) => {
                let said = installed::version(program, argument);
                if self.name == "caddy" { format!("Caddy {said}") } else { said }
            }
            Ok(Found::Debian13(program)) => program.version(argument),
            Err(_) => String::new(),
        }
    }

    fn start<'a>(&self, setup: &ServerSetup<'a>) -> Result<Running<'a>> {
        let launch = match &self.program {
            Ok(Found::Here(program)) => Launch::new(program),
            Ok(Found::Debian13(program)) => program.launch(),
            Err(why) => anyhow::bail!("{why}"),
        };
        self.certificate.write(setup)?;
        let (name, text) = self.template();
        let file = template::write(setup, name, text)?;
        let launch = match self.name {
            "afpa" => {
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
        let named = |name| Secure::named(name, &programs, Path::new("/nowhere"), &certificate);
        for name in SECURE {
            assert_eq!(named(name).unwrap().name(), name);
        }
        let afpa = named("afpa").unwrap();
        assert!(afpa.lacks().is_some_and(|why| why.contains("/nowhere/afpa")));
        let nginx = named("nginx").unwrap().lacks();
        assert!(nginx.is_some_and(|why| why.contains("scripts/debian13")));
        assert!(named("h2o").is_none());
    }
}
