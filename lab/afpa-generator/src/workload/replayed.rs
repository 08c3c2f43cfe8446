//! An access log as a workload.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::order::Order;
use super::{Object, Request, Workload};
use crate::log::{
    Entry, LogLimits, SyntheticLog, is_world_cup, read_log, read_world_cup, sessions,
};

const LONGEST_NAME: usize = 40;
const RULE: &str = "Requests of one client that come less than 15 s after its last one share a \
                    connection, which then ends; connections follow each other as fast as the \
                    server answers. Status 304 is asked for with If-Modified-Since, 404 by a name \
                    that is not there. Paths are replaced by numbers and a well-known \
                    extension; a file is as long as the \
                    longest answer that the log has for it.";

/// A workload from a log in common log format, or in the World Cup's.
///
/// # Errors
///
/// When the log cannot be read, has no usable entry, or needs more than `limits` allow.
pub fn replay(name: &str, mut log: impl BufRead, limits: &LogLimits) -> Result<Workload> {
    let (entries, passed_over) = match is_world_cup(log.fill_buf()?) {
        true => read_world_cup(log, limits)?,
        false => read_log(log, limits)?,
    };
    // Good as a file's name.
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let file: String = name.chars().map(plain).take(LONGEST_NAME).collect();
    let about = format!(
        "{} requests of the log {name} ({passed_over} lines were passed over). {RULE}",
        entries.len()
    );
    build(&format!("replay-{file}"), &format!("Replay of {name}"), about, &entries, limits)
}

/// A workload from a log's file, within the usual limits.
pub(super) fn of_file(file: &str) -> Result<Workload> {
    let log = File::open(file).with_context(|| format!("cannot read the log {file}"))?;
    let name = Path::new(file).file_name().unwrap_or_default().to_string_lossy();
    replay(&name, BufReader::new(log), &LogLimits::default())
        .with_context(|| format!("the log {file}"))
}

/// A workload from the made-up log.
pub(super) fn synthetic() -> Result<Workload> {
    let entries = SyntheticLog::default().make();
    let about = format!(
        "{} requests of a made-up log: sizes, popularity, pages and silences by the distributions \
         of Barford and Crovella (1998). {RULE}",
        entries.len()
    );
    let title = "Replay of a made-up log";
    build("replay-synthetic", title, about, &entries, &LogLimits::default())
}

fn build(
    name: &str,
    title: &str,
    about: String,
    entries: &[Entry],
    limits: &LogLimits,
) -> Result<Workload> {
    let objects = Files::of(entries);
    ensure!(objects.files.len() <= limits.files, "the log has more than {} files", limits.files);
    let total: u64 = objects.files.iter().map(|file| file.body.length()).sum();
    ensure!(total <= limits.working_set, "the log's files have {total} bytes altogether");
    let mut requests = Vec::new();
    // Equal requests have one number, from all clients.
    let mut numbers: HashMap<(&str, u16), u32> = HashMap::new();
    let mut connections = Vec::new();
    for session in sessions(entries) {
        let mut connection = Vec::with_capacity(session.len());
        for entry in session.into_iter().filter_map(|index| entries.get(index)) {
            let number = *numbers.entry(objects.key(entry)).or_insert_with(|| {
                requests.push(objects.request(entry));
                // The number of requests fits: it is at most that of the entries, which are limited.
                requests.len() as u32 - 1
            });
            connection.push(number);
        }
        connections.push(connection);
    }
    Ok(Workload {
        name: name.into(),
        family: "replay".into(),
        title: title.into(),
        point: None,
        about,
        requests,
        objects: objects.files,
        order: Order::Sessions(connections),
    })
}

/// The files behind a log's paths.
struct Files<'e> {
    files: Vec<Object>,
    /// Index in `files`, by the log's path.
    by_path: HashMap<&'e str, usize>,
}

impl<'e> Files<'e> {
    /// A path is a file if the log has at least one entry for it with another status than 404.
    fn of(entries: &'e [Entry]) -> Self {
        let mut lengths: Vec<u64> = Vec::new();
        let mut extensions: Vec<&'static str> = Vec::new();
        let mut by_path = HashMap::new();
        for entry in entries.iter().filter(|entry| entry.status != 404) {
            let index = *by_path.entry(entry.path.as_str()).or_insert(lengths.len());
            match lengths.get_mut(index) {
                Some(length) => *length = (*length).max(entry.bytes),
                None => {
                    lengths.push(entry.bytes);
                    extensions.push(extension(&entry.path));
                }
            }
        }
        // Other people chose the names in the log, and they may be hostile; numbers are not.
        let file = |(index, (length, extension)): (usize, (u64, &str))| {
            Object::new(format!("/replay/{}/{index}.{extension}", index % 256), length)
        };
        let files = lengths.into_iter().zip(extensions).enumerate().map(file).collect();
        Self { files, by_path }
    }

    fn key(&self, entry: &'e Entry) -> (&'e str, u16) {
        // All absent names are alike.
        if entry.status == 404 { ("", 404) } else { (&entry.path, entry.status) }
    }

    fn request(&self, entry: &Entry) -> Request {
        let found = self.by_path.get(entry.path.as_str()).filter(|_| entry.status != 404);
        match found.and_then(|index| self.files.get(*index)) {
            Some(file) if entry.status == 304 => Request::get(file).if_modified(),
            Some(file) => Request::get(file),
            None => Request {
                path: "/replay/absent.html".into(),
                headers: Vec::new(),
                status: 404,
                body: None,
                weight: 1,
            },
        }
    }
}

/// The extension of the path, if servers know it.
fn extension(path: &str) -> &'static str {
    const KNOWN: [&str; 7] = ["html", "css", "js", "txt", "png", "gif", "jpg"];
    let found = path.rsplit_once('.').map_or("", |(_, found)| found);
    KNOWN.into_iter().find(|known| known.eq_ignore_ascii_case(found)).unwrap_or("html")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
a - - [01/Sep/2001:00:00:00 +0000] \"GET /x HTTP/1.0\" 200 10
b - - [01/Sep/2001:00:00:01 +0000] \"GET /y HTTP/1.0\" 304 -
a - - [01/Sep/2001:00:00:05 +0000] \"GET /../../y HTTP/1.0\" 404 99
a - - [01/Sep/2001:00:00:09 +0000] \"GET /y HTTP/1.0\" 200 500
a - - [01/Sep/2001:00:00:30 +0000] \"GET /x HTTP/1.0\" 200 30
";

    #[test]
    fn a_log_becomes_connections_with_answers_to_expect() {
        let workload = replay("test", LOG.as_bytes(), &LogLimits::default()).unwrap();
        let lengths: Vec<u64> = workload.objects().iter().map(|o| o.body.length()).collect();
        assert_eq!(lengths, [30, 500]);
        assert_eq!(
            ["/a.GIF", "/a.sh", "/a", "/a.b/c"].map(extension),
            ["gif", "html", "html", "html"]
        );
        let Order::Sessions(connections) = &workload.order else { panic!("no sessions") };
        assert_eq!(connections, &[vec![0, 1, 2], vec![3], vec![0]]);
        let statuses: Vec<u16> = workload.all_requests().iter().map(|r| r.status).collect();
        assert_eq!(statuses, [200, 404, 200, 304]);
        let steps: Vec<_> = workload.requests(0).take(5).map(|s| (s.request, s.last)).collect();
        assert!(steps.contains(&(2, true)) && steps.contains(&(1, false)), "{steps:?}");
    }

    #[test]
    fn the_world_cup_s_logs_are_known_by_their_bytes() {
        let record = |time: u32, object: u32| {
            let numbers = [time, 7, object, 100 * object].map(u32::to_be_bytes);
            [numbers.concat(), vec![0, 2, 1, 0]].concat()
        };
        let log = [record(894_000_000, 1), record(894_000_005, 2), record(894_000_030, 1)].concat();
        let workload = replay("wc_day6_1", &*log, &LogLimits::default()).unwrap();
        let lengths: Vec<u64> = workload.objects().iter().map(|o| o.body.length()).collect();
        assert_eq!(lengths, [100, 200]);
        let Order::Sessions(connections) = &workload.order else { panic!("no sessions") };
        assert_eq!(connections, &[vec![0, 1], vec![0]]);
    }

    #[test]
    fn a_log_is_read_from_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("access log.1");
        std::fs::write(&file, LOG).unwrap();
        let name = format!("replay:{}", file.display());
        let workload = super::super::family(&name, &[], true).unwrap().remove(0);
        assert_eq!((&*workload.name, &*workload.family), ("replay-access-log-1", "replay"));
        assert_eq!(workload.objects().len(), 2);
        std::fs::write(&file, "nothing").unwrap();
        assert!(super::super::family(&name, &[], true).is_err());
    }

    #[test]
    fn limits_hold() {
        let limits = LogLimits { files: 1, ..LogLimits::default() };
        assert!(replay("test", LOG.as_bytes(), &limits).is_err());
        let limits = LogLimits { working_set: 529, ..LogLimits::default() };
        assert!(replay("test", LOG.as_bytes(), &limits).is_err());
    }

    #[test]
    fn the_made_up_log_is_of_a_size_that_can_be_made() {
        let workload = synthetic().unwrap();
        assert!(workload.working_set() < 300 << 20, "{}", workload.working_set());
        assert!(workload.objects().len() > 1500);
    }
}
