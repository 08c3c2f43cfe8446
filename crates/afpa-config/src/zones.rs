//! `[[zone]]` and `[dns]`: names that AFPA answers for itself, and the files of their records.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Component, Path, PathBuf};

use afpa_dns::{Finding as InZone, Name, ReadZone, read_zone};
use afpa_framework::Network;

use crate::items::Item;
use crate::reader::{Reader, Section};
use crate::rules;
use crate::settings::Instance;
use crate::units::Unfit;
use crate::whole_file::read_whole;

/// Bytes of the longest zone file.
const LONGEST: usize = 256 << 20;
const PORT: u16 = 53;

/// A `[[zone]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneSettings {
    /// Its name, with a dot at the end.
    pub name: Name,
    /// The file of its records.
    pub file: PathBuf,
    /// Where questions are taken, by UDP and TCP.
    pub listen: Vec<SocketAddr>,
    /// Secondaries that get a NOTIFY of a new version.
    pub notify: Vec<SocketAddr>,
    /// Secondaries that may have it whole.
    pub transfer: Vec<Network>,
    /// The key with which transfers and NOTIFY are signed.
    pub key: Option<Name>,
    /// Which `[[zone]]`.
    pub instance: Instance,
}

/// `[dns]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsSettings {
    /// Answers a second for each prefix of clients that have not proven their address; 0: no limit.
    pub rate: usize,
    /// Bytes of the longest answer by UDP.
    pub udp_size: usize,
    /// The socket of a reader of dnstap.
    pub dnstap: Option<PathBuf>,
    /// It gets one in so many answers.
    pub dnstap_sample: usize,
}

impl DnsSettings {
    pub(crate) fn read(mut s: Section<'_, '_>) -> Self {
        Self {
            rate: s.count("rate", 200, 0..=100_000),
            udp_size: s.count("udp_size", 1232, 512..=4096),
            dnstap: s.optional_path("dnstap"),
            dnstap_sample: s.count("dnstap_sample", 1000, 1..=1_000_000_000),
        }
    }
}

impl ZoneSettings {
    /// `None`: it has no name, which is reported.
    pub(crate) fn read<'i>(reader: &mut Reader<'i>, item: &Item<'i>) -> Option<Self> {
        let mut s = reader.at(item);
        let name = s.required("name", "name of a zone", zone_name);
        let everywhere = vec![SocketAddr::from(([0, 0, 0, 0], PORT))];
        let key = s.text_or("key", "name of a [[dns.key]]", "none", zone_name);
        let zone = Self {
            key: key.and_then(|key| Name::parse(&key, &Name::root()).ok()),
            name: Name::root(),
            file: s.required_path("file"),
            listen: s.texts("listen", "addresses", everywhere, rules::tcp),
            notify: s.texts("notify", "addresses", Vec::new(), secondary),
            transfer: s.texts("transfer", "addresses and networks", Vec::new(), rules::network),
            instance: item.instance,
        };
        let name = Name::parse(&name?, &Name::root()).ok()?;
        Some(Self { name, ..zone })
    }
}

pub(crate) fn zone_name(text: &str) -> Result<String, Unfit> {
    match Name::parse(text, &Name::root()) {
        Ok(name) if name == Name::root() => {
            Err(Unfit::new("the root is not ours", "write for example \"example.org\""))
        }
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(Unfit::new(
            format!("\"{text}\" is no name: {error}"),
            "write for example \"example.org\"",
        )),
    }
}

/// An address, with port 53 unless it has another.
fn secondary(text: &str) -> Result<SocketAddr, Unfit> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok((address, PORT).into());
    }
    text.parse().map_err(|_| {
        let cause = format!("\"{text}\" is no address of a secondary");
        Unfit::new(cause, "write for example \"192.0.2.53\" or \"[2001:db8::53]:5353\"")
    })
}

/// A zone that was read from its file, and the files that it came from.
#[derive(Debug)]
pub struct ReadZoneFile {
    /// The zone with its findings.
    pub read: ReadZone,
    /// Its file, and those that it includes.
    pub files: Vec<PathBuf>,
}

/// Reads the file of a zone and those that it includes, which have to be in its folder or below it.
pub fn read_zone_files(zone: &ZoneSettings) -> ReadZoneFile {
    let path = &zone.file;
    let shown = path.display().to_string();
    let mut files = vec![path.clone()];
    let text = match read_text(path) {
        Ok(text) => text,
        Err(why) => {
            let finding = InZone {
                file: shown,
                line: None,
                cause: format!("it cannot be read: {why}"),
                remedy:
                    "give the user that AFPA runs as the right to read it, write it in UTF-8, or name another file"
                        .to_owned(),
                is_error: true,
            };
            let read = ReadZone { zone: None, findings: vec![finding], includes: Vec::new() };
            return ReadZoneFile { read, files };
        }
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    let read = read_zone(&zone.name, &shown, &text, &mut |included| {
        let path = included_path(folder, included)?;
        files.push(path.clone());
        read_text(&path)
    });
    ReadZoneFile { read, files }
}

/// A file within the folder; links that lead out of it count as out of it.
fn included_path(folder: &Path, included: &str) -> Result<PathBuf, String> {
    let path = Path::new(included);
    let is_below =
        path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let whole = folder.join(path);
    let real = |path: &Path| fs::canonicalize(path).map_err(|error| error.to_string());
    if !is_below || !real(&whole)?.starts_with(real(folder)?) {
        return Err("it is not in the folder of the zone file".to_owned());
    }
    Ok(whole)
}

fn read_text(path: &Path) -> Result<String, String> {
    let bytes = read_whole(path, LONGEST).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|_| "it is not text in UTF-8".to_owned())
}
