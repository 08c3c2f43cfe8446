//! Configurations of AFPA and of nginx for the same sites.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::settings::{Server, Settings, make_folder};

/// The content of a page after its change.
pub(super) const CHANGED: &str = "it was changed";

/// Folders and certificates of an experiment.
pub(super) struct Files {
    work: PathBuf,
    sites: usize,
    certificates: usize,
    shared: bool,
}

impl Files {
    pub(super) fn make(settings: &Settings, work: &Path) -> Result<Self> {
        let &Settings { sites, certificates, shared, .. } = settings;
        let files = Self { work: work.to_owned(), sites, certificates, shared };
        for site in 0..if shared { 1 } else { sites } {
            make_folder(&files.root(site))?;
            files.restore(site)?;
        }
        make_folder(&files.work.join("tls"))?;
        for site in 0..certificates {
            let names = hosts(site).map(String::from).to_vec();
            let made =
                rcgen::generate_simple_self_signed(names).context("cannot make a certificate")?;
            fs::write(files.tls(site, "pem"), made.cert.pem())?;
            fs::write(files.tls(site, "key"), made.signing_key.serialize_pem())?;
        }
        Ok(files)
    }

    pub(super) fn work(&self) -> &Path {
        &self.work
    }

    fn root(&self, site: usize) -> PathBuf {
        self.work.join("roots").join(format!("s{}", if self.shared { 0 } else { site }))
    }

    fn tls(&self, site: usize, what: &str) -> PathBuf {
        self.work.join("tls").join(format!("{site}.{what}"))
    }

    fn page(&self, site: usize) -> String {
        format!("this is site {}", if self.shared { 0 } else { site })
    }

    /// Whether this is the page of a site.
    pub(super) fn is(&self, site: usize, body: &str) -> bool {
        body == self.page(site)
    }

    pub(super) fn change(&self, site: usize) -> Result<()> {
        self.write(site, CHANGED)
    }

    pub(super) fn restore(&self, site: usize) -> Result<()> {
        self.write(site, &self.page(site))
    }

    /// Replaces the page by another file, as editors and deployments do.
    fn write(&self, site: usize, content: &str) -> Result<()> {
        let root = self.root(site);
        let new = root.join(".new");
        fs::write(&new, content).with_context(|| format!("cannot write {}", new.display()))?;
        Ok(fs::rename(new, root.join("index.html"))?)
    }

    /// Writes the configuration of a server that listens on the first address, and with TLS on the second.
    pub(super) fn configure(&self, server: Server, addresses: [SocketAddr; 2]) -> Result<PathBuf> {
        let (name, text) = match server {
            Server::Afpa => ("afpa.toml", self.afpa(addresses)),
            Server::Nginx => ("nginx.conf", self.nginx(addresses)),
        };
        let path = self.work.join(name);
        fs::write(&path, text)?;
        Ok(path)
    }

    fn afpa(&self, [plain, tls]: [SocketAddr; 2]) -> String {
        let mut text = format!(
            "workers = 1\n[fast_path]\nmode = \"off\"\n[control]\npath = \"{}\"\n",
            self.work.join("afpa.sock").display()
        );
        for site in 0..self.certificates {
            let (chain, key) = (self.tls(site, "pem"), self.tls(site, "key"));
            let _ = write!(
                text,
                "[[certificate]]\nchain = \"{}\"\nkey = \"{}\"\n",
                chain.display(),
                key.display()
            );
        }
        for site in 0..self.sites {
            let [first, second] = hosts(site);
            let tls = if site < self.certificates {
                format!("tls = [\"{tls}\"]\n")
            } else {
                String::new()
            };
            let _ = write!(
                text,
                "[[site]]\nlisten = [\"{plain}\"]\n{tls}hosts = [\"{first}\", \"{second}\"]\nroot = \"{}\"\n",
                self.root(site).display()
            );
        }
        text
    }

    /// Like Debian's configuration in the points that matter: names are hashed, files are not remembered, one worker.
    fn nginx(&self, [plain, tls]: [SocketAddr; 2]) -> String {
        let work = self.work.display();
        let mut text = format!(
            "daemon off;\nworker_processes 1;\npid {work}/nginx.pid;\nerror_log {work}/nginx.log;\nevents {{ worker_connections 1024; }}\n\
             http {{\naccess_log off;\nsendfile on;\nserver_names_hash_max_size 131072;\nserver_names_hash_bucket_size 128;\n"
        );
        for site in 0..self.sites {
            let [first, second] = hosts(site);
            let mut tls_lines = String::new();
            if site < self.certificates {
                let (chain, key) = (self.tls(site, "pem"), self.tls(site, "key"));
                let _ = write!(
                    tls_lines,
                    " listen {tls} ssl; ssl_certificate {}; ssl_certificate_key {};",
                    chain.display(),
                    key.display()
                );
            }
            let _ = writeln!(
                text,
                "server {{ listen {plain};{tls_lines} server_name {first} {second}; root {}; }}",
                self.root(site).display()
            );
        }
        text + "}\n"
    }
}

fn hosts(site: usize) -> [String; 2] {
    [format!("h{site}.example"), format!("www.h{site}.example")]
}
