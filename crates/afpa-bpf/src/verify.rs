//! Brings the programs into the kernel: on all processors, and so that a program that the kernel refuses costs only the
//! features that need it.
//!
//! Nearly all of the time is the verifier's. It runs in the system call that loads a program, so programs are loaded
//! by several threads, each with an object of its own over the same maps. The threads have ended when this returns.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libbpf_rs::{MapCore, Object, ObjectBuilder, OpenObject, PrintLevel};

/// Programs by name, or the verifier's message if it refused one.
pub(crate) type Verified = HashMap<String, Result<OwnedFd, String>>;

/// The verifier's work for the programs that take long, in units of ten milliseconds of a processor (AMD EPYC).
const WEIGHTS: [(&str, usize); 8] = [
    ("afpa_answer", 32),
    ("afpa_egress", 13),
    ("afpa_transfer", 8),
    ("afpa_ingress", 7),
    ("afpa_rtx_timer", 7),
    ("afpa_unusual", 5),
    ("afpa_handshake", 3),
    ("afpa_socketless", 2),
];

fn weight(program: &str) -> usize {
    WEIGHTS.iter().find(|(name, _)| *name == program).map_or(1, |(_, weight)| *weight)
}

/// Has libbpf leave its messages to [`words`].
pub(crate) fn keep_complaints() {
    libbpf_rs::set_print(Some((PrintLevel::Warn, keep_complaint)));
}

/// The object as it was built.
pub(crate) fn open_object() -> libbpf_rs::Result<OpenObject> {
    keep_complaints();
    ObjectBuilder::default().name("afpa")?.open_memory(&crate::OBJECT.unpacked()?)
}

/// Creates the maps of `open`, and loads no program. Returns the programs' names with them.
pub(crate) fn create_maps(mut open: OpenObject) -> libbpf_rs::Result<(Object, Vec<String>)> {
    let mut programs = Vec::new();
    for mut program in open.progs_mut() {
        program.set_autoload(false);
        programs.push(program.name().to_string_lossy().into_owned());
    }
    Ok((open.load()?, programs))
}

/// Loads these programs over the maps of `object`.
pub(crate) fn load_programs(object: &Object, programs: Vec<String>) -> Verified {
    let maps: Vec<_> = object.maps().map(|map| (map.name().to_owned(), map)).collect();
    let maps: Vec<_> = maps.iter().map(|(name, map)| (name.clone(), map.as_fd())).collect();
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let shares = shares(programs, processors);
    std::thread::scope(|scope| {
        let maps = &maps[..];
        let work = |share: Vec<String>| scope.spawn(move || load_share(&share, maps));
        let running: Vec<_> = shares.into_iter().map(work).collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    })
}

/// Shares of about the same weight.
fn shares(mut programs: Vec<String>, count: usize) -> Vec<Vec<String>> {
    programs.sort_by_key(|program| std::cmp::Reverse(weight(program)));
    let mut shares = vec![(0, Vec::new()); count.clamp(1, programs.len().max(1))];
    for program in programs {
        if let Some(lightest) = shares.iter_mut().min_by_key(|(weight, _)| *weight) {
            lightest.0 += weight(&program);
            lightest.1.push(program);
        }
    }
    shares.into_iter().map(|(_, share)| share).collect()
}

/// All at once; when one of them is refused, each by itself.
fn load_share(share: &[String], maps: &[(OsString, BorrowedFd<'_>)]) -> Verified {
    if let Ok(programs) = load_together(share, maps) {
        return programs;
    }
    let alone = share.iter().flat_map(|program| {
        load_together(std::slice::from_ref(program), maps)
            .unwrap_or_else(|why| HashMap::from([(program.clone(), Err(why))]))
    });
    alone.collect()
}

fn load_together(
    wanted: &[String],
    maps: &[(OsString, BorrowedFd<'_>)],
) -> Result<Verified, String> {
    let _before = verdict();
    let load = || -> libbpf_rs::Result<Verified> {
        let mut open = open_object()?;
        for mut map in open.maps_mut() {
            if let Some((_, descriptor)) = maps.iter().find(|(name, _)| name == map.name()) {
                map.reuse_fd(*descriptor)?;
            }
        }
        for mut program in open.progs_mut() {
            let name = program.name().to_string_lossy().into_owned();
            program.set_autoload(wanted.contains(&name));
        }
        let object = open.load()?;
        let mut programs = Verified::new();
        for program in object.progs() {
            let name = program.name().to_string_lossy().into_owned();
            if wanted.contains(&name) {
                programs.insert(name, Ok(program.as_fd().try_clone_to_owned()?));
            }
        }
        Ok(programs)
    };
    load().map_err(|error| words(&error))
}

/// The verifier's message, or else the error.
pub(crate) fn words(error: &dyn std::error::Error) -> String {
    verdict().map_or_else(|| format!("{error:#}"), |verdict| format!("verifier: {verdict}"))
}

thread_local! {
    /// The last message of libbpf or the verifier on this thread: an error number alone explains nothing.
    static COMPLAINT: RefCell<String> = const { RefCell::new(String::new()) };
}

fn keep_complaint(_: PrintLevel, text: String) {
    if text.contains("BEGIN PROG LOAD LOG") {
        COMPLAINT.replace(text);
    }
}

/// The verifier's last words before its statistics, once.
fn verdict() -> Option<String> {
    let log = COMPLAINT.take();
    if std::env::var_os("AFPA_BPF_VERBOSE").is_some() {
        afpa_say::error(&format!("{log}\n"));
    }
    log.lines()
        .rev()
        .find(|line| !line.starts_with("processed") && !line.contains("PROG LOAD LOG"))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn programs_are_shared_out_by_their_weight() {
        let all = || names(&["afpa_probe", "afpa_ingress", "afpa_answer", "afpa_transfer"]);
        let two = shares(all(), 2);
        assert_eq!(two[0], names(&["afpa_answer"]));
        assert_eq!(two[1], names(&["afpa_transfer", "afpa_ingress", "afpa_probe"]));
        for count in [0, 1, 3, 4, 64] {
            let shares = shares(all(), count);
            assert_eq!(shares.len(), count.clamp(1, 4));
            assert_eq!(shares.concat().len(), 4, "each once");
        }
        assert_eq!(shares(Vec::new(), 2), [names(&[])]);
    }
}
