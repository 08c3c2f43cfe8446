//! `[police]`: prefixes, here and in files, and rates.

use std::fs;
use std::path::{Path, PathBuf};

use afpa_police::{Limits, PoliceSettings, Prefix, Rate, read_lines};

use crate::finding::Finding;
use crate::police_classes::{self, PoliceClass};
use crate::reader::Reader;
use crate::settings::Settings;
use crate::units::Unfit;

/// Prefixes of all lists together: the kernel's table has room for twice as many.
const MOST_PREFIXES: usize = 100_000;

/// Which clients are let in, and how often.
#[derive(Clone, Debug, PartialEq)]
pub struct Police {
    /// Prefixes and rates. The prefixes of files are among them when the configuration was loaded.
    pub settings: PoliceSettings,
    /// Files of allowed prefixes.
    pub allow_files: Vec<PathBuf>,
    /// Files of denied prefixes.
    pub deny_files: Vec<PathBuf>,
    /// `[[police.class]]`.
    pub classes: Vec<PoliceClass>,
}

impl Police {
    /// All that the police decide by.
    pub fn all_settings(&self) -> PoliceSettings {
        let classes = self.classes.iter().map(|class| class.class.clone()).collect();
        PoliceSettings { classes, ..self.settings.clone() }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Self {
        let mut s = reader.section("police");
        let default = Limits::default();
        let allow = s.texts("allow", "prefixes", Vec::new(), prefix);
        let deny = s.texts("deny", "prefixes", Vec::new(), prefix);
        let (allow_files, deny_files) = (s.paths("allow_files"), s.paths("deny_files"));
        let mut rate = |rate_key, burst_key, default: Rate| {
            let most = Rate::MOST as usize;
            Rate {
                per_second: number(s.count(rate_key, default.per_second as usize, 0..=most)),
                burst: number(s.count(burst_key, default.burst as usize, 1..=most)),
            }
        };
        let limits = Limits {
            client_connections: rate(
                "client_connections_per_second",
                "client_connections_burst",
                default.client_connections,
            ),
            connections: rate("connections_per_second", "connections_burst", default.connections),
            client_requests: rate(
                "client_requests_per_second",
                "client_requests_burst",
                default.client_requests,
            ),
            requests: rate("requests_per_second", "requests_burst", default.requests),
            ..default
        };
        let settings = PoliceSettings { allow, deny, limits, classes: Vec::new() };
        let classes = police_classes::read(reader);
        Police { settings, allow_files, deny_files, classes }
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

pub(crate) fn prefix(text: &str) -> Result<Prefix, Unfit> {
    text.parse().map_err(|why: afpa_police::NotAPrefix| Unfit::new(why.to_string(), why.remedy()))
}

/// Rates that the buckets cannot count.
pub(crate) fn consistency(police: &Police, settings: &Settings) -> Vec<Finding> {
    let Limits { client_connections, connections, client_requests, requests, .. } =
        police.settings.limits;
    let rates = [
        ("client_connections_burst", client_connections),
        ("connections_burst", connections),
        ("client_requests_burst", client_requests),
        ("requests_burst", requests),
    ];
    let too_long = rates.into_iter().filter(|(_, rate)| rate.seconds() > Rate::LONGEST_SECONDS);
    let findings = too_long.map(|(key, rate)| {
        let most = u64::from(rate.per_second) * u64::from(Rate::LONGEST_SECONDS);
        let cause = format!("`{key}` takes more than an hour to come back at this rate");
        Finding::error(settings.location("police", key), cause, format!("use at most {most}"))
    });
    findings.collect()
}

/// Puts the prefixes of the files into the lists.
pub(crate) fn read_files(police: &mut Police, settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Police { settings: lists, allow_files, deny_files, classes: _ } = police;
    for (key, files, list) in [
        ("allow_files", allow_files, &mut lists.allow),
        ("deny_files", deny_files, &mut lists.deny),
    ] {
        for file in files {
            match read_file(file) {
                Ok(prefixes) => list.extend(prefixes),
                Err((cause, remedy)) => {
                    let location = settings.location("police", key);
                    findings.push(Finding::error(location, cause, remedy));
                }
            }
        }
    }
    let count = lists.allow.len() + lists.deny.len();
    if count > MOST_PREFIXES {
        let location = settings.location("police", "deny_files");
        let cause = format!("there are {count} prefixes, and room for {MOST_PREFIXES}");
        findings.push(Finding::error(location, cause, "join those that lie beside each other"));
    }
    findings
}

/// The prefixes of a file; on an error, its cause and the remedy.
pub(crate) fn read_file(file: &Path) -> Result<Vec<Prefix>, (String, String)> {
    let name = file.display();
    let text = fs::read_to_string(file).map_err(|error| {
        let remedy = match error.kind() {
            std::io::ErrorKind::NotFound => "create it, or name another file",
            std::io::ErrorKind::PermissionDenied => {
                "make it readable for the user that afpa becomes, who reads it again at a reload"
            }
            _ => "name a text file with one prefix a line",
        };
        (format!("{name}: {error}"), remedy.to_owned())
    })?;
    read_lines(&text).map_err(|(line, why)| (format!("{name}:{line}: {why}"), why.remedy()))
}

/// The prefixes of files that are named on a command line.
///
/// # Errors
/// With the file, the line and the remedy.
pub fn prefixes_of_files(files: &[impl AsRef<Path>]) -> Result<Vec<Prefix>, String> {
    let mut all = Vec::new();
    for file in files {
        let read = read_file(file.as_ref());
        all.extend(read.map_err(|(cause, remedy)| format!("{cause} ({remedy})"))?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use crate::{Machine, Overrides, load};

    /// A configuration with this `[police]`, and a file beside it.
    fn loaded(police: &str, file: &str) -> Result<crate::Loaded, String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("bad.txt"), file).unwrap();
        let path: PathBuf = folder.path().join("afpa.toml");
        let text = format!("[police]\n{police}\n[[site]]\nroot = \"/\"\n");
        std::fs::write(&path, text).unwrap();
        load(Some(&path), &Overrides::default(), &Machine::probe()).map_err(|error| {
            error.to_string().replace(&folder.path().display().to_string(), "FOLDER")
        })
    }

    #[test]
    fn prefixes_of_the_file_and_of_files_are_joined() {
        let loaded = loaded(
            "allow = [\"10.1.0.0/16\"]\ndeny = [\"10.0.0.0/8\"]\ndeny_files = [\"bad.txt\"]",
            "# bots\n192.0.2.0/24 # all of it\n2001:db8::/32\n",
        );
        let settings = loaded.unwrap().config.police.settings;
        let denied: Vec<String> = settings.deny.iter().map(ToString::to_string).collect();
        assert_eq!(denied, ["10.0.0.0/8", "192.0.2.0/24", "2001:db8::/32"]);
        assert_eq!(settings.allow.len(), 1);
        assert!(!settings.limits.client_connections.limits());
    }

    #[test]
    fn a_wrong_prefix_has_a_file_a_line_and_a_remedy() {
        let error = loaded("deny = [\"10.0.0.1/8\"]", "").unwrap_err();
        assert!(error.contains("afpa.toml:2:9: error: `deny`: \"10.0.0.1/8\" has bits"), "{error}");
        assert!(error.contains("= write 10.0.0.0/8 for all of it, or 10.0.0.1"), "{error}");
        let error = loaded("deny_files = [\"bad.txt\"]", "::1\n\n300.0.0.0/8\n").unwrap_err();
        assert!(error.contains("FOLDER/bad.txt:3: \"300.0.0.0/8\" is neither"), "{error}");
        assert!(error.contains("= write for example 192.0.2.0/24"), "{error}");
        let error = loaded("allow_files = [\"none.txt\"]", "").unwrap_err();
        assert!(error.contains("none.txt: No such file"), "{error}");
        assert!(error.contains("= create it, or name another file"), "{error}");
    }

    #[test]
    fn a_burst_that_never_comes_back_is_refused() {
        let error = loaded("requests_per_second = 2\nrequests_burst = 7201", "").unwrap_err();
        assert!(error.contains("`requests_burst` takes more than an hour"), "{error}");
        assert!(error.contains("= use at most 7200"), "{error}");
        loaded("requests_per_second = 2\nrequests_burst = 7200", "").unwrap();
        loaded("requests_burst = 1000000", "").unwrap();
    }
}
