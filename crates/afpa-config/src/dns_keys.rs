//! `[[dns.key]]`: secrets that secondaries and AFPA sign their messages with (TSIG, RFC 8945).

use std::path::PathBuf;

use afpa_dns::Name;
use afpa_dns::key_file::{KeyFileError, secret};
use afpa_dns::tsig::{Algorithm, Key};

use crate::choice::choice;
use crate::finding::Location;
use crate::items::Item;
use crate::reader::Reader;
use crate::settings::Instance;
use crate::whole_file::read_whole;
use crate::zones::zone_name;

/// Bytes of the longest file.
const LONGEST: usize = 4096;

choice! {
    /// How messages are signed.
    DnsAlgorithm {
        /// HMAC with SHA-256.
        Sha256 = "hmac-sha256",
        /// HMAC with SHA-384.
        Sha384 = "hmac-sha384",
        /// HMAC with SHA-512.
        Sha512 = "hmac-sha512",
    }
}

/// A `[[dns.key]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct DnsKeySettings {
    /// Its name, which both ends have to write alike.
    pub name: Name,
    /// How it signs.
    pub algorithm: DnsAlgorithm,
    /// The file of its secret.
    pub file: PathBuf,
    /// Which `[[dns.key]]`.
    pub instance: Instance,
}

/// All of them.
pub(crate) fn read(reader: &mut Reader<'_>) -> Vec<DnsKeySettings> {
    let table = reader.section("dns").table;
    let dns = Item { path: "dns", instance: [0; 4], table, location: Location::Nowhere };
    let items = reader.items("dns.key", Some(&dns));
    let keys = items.into_iter().filter_map(|item| {
        let mut s = reader.at(&item);
        let name = s.required("name", "name of a key", zone_name);
        let algorithm = s.choice("algorithm", DnsAlgorithm::Sha256);
        let file = s.required_path("file");
        let name = Name::parse(&name?, &Name::root()).ok()?;
        Some(DnsKeySettings { name, algorithm, file, instance: item.instance })
    });
    keys.collect()
}

impl DnsKeySettings {
    /// Reads its secret.
    ///
    /// # Errors
    /// A cause and a remedy.
    pub fn read_key(&self) -> Result<Key, (String, &'static str)> {
        let shown = self.file.display();
        let bytes = read_whole(&self.file, LONGEST).map_err(|error| {
            let cause = format!("{shown} cannot be read: {error}");
            (cause, "give the user that AFPA runs as the right to read it, or name another file")
        })?;
        let text = String::from_utf8_lossy(&bytes);
        let algorithm = match self.algorithm {
            DnsAlgorithm::Sha256 => Algorithm::Sha256,
            DnsAlgorithm::Sha384 => Algorithm::Sha384,
            DnsAlgorithm::Sha512 => Algorithm::Sha512,
        };
        let found = secret(&text, &self.name, algorithm).map_err(|error| {
            let remedy = match error {
                KeyFileError::OtherName(_) => "write in `name` how the file and the secondary call it",
                KeyFileError::OtherAlgorithm(_) => {
                    "write that one in `algorithm`, or make another key: `tsig-keygen -a hmac-sha256`"
                }
                KeyFileError::Several | KeyFileError::Endless => "leave one whole key in the file",
                KeyFileError::NoSecret => {
                    "make one: `openssl rand -base64 32`, `tsig-keygen` or `keymgr -t`"
                }
            };
            (format!("{shown} has {error}"), remedy)
        })?;
        Ok(Key::new(&self.name, algorithm, &found))
    }
}
