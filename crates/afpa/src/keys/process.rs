//! The process that reads.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use afpa_config::{LONGEST_TLS_FILE, not_a_tls_file};
use anyhow::Context as _;
use nix::unistd::{Gid, Uid};
use rustix::thread::CapabilitySet;

use super::wire::{self, List, Question};
use super::{Version, place};
use crate::privileges::Identity;

/// Answers on standard input, a socket, until the other side has gone.
///
/// # Errors
/// When standard input is no socket of AFPA, or the process cannot become the user of the list.
pub fn answer() -> anyhow::Result<()> {
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    let mut socket = UnixStream::from(socket);
    let List { user, uid, gid, files } =
        wire::read_list(&mut socket).context("only afpa starts this process")?;
    let identity = Identity { name: user, uid: Uid::from_raw(uid), gid: Gid::from_raw(gid) };
    identity.assume(CapabilitySet::DAC_READ_SEARCH)?;
    while let Some((question, number)) = wire::read_question(&mut socket)? {
        let answer = match files.get(number as usize) {
            Some(path) => look(path, question),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        wire::write_answer(&mut socket, answer)?;
    }
    Ok(())
}

fn look(path: &Path, question: Question) -> io::Result<Vec<u8>> {
    let mut file = File::open(place::settled(path)?)?;
    let about = file.metadata()?;
    if !about.is_file() || about.len() > LONGEST_TLS_FILE {
        return Err(not_a_tls_file());
    }
    if question == Question::Version {
        return Ok(wire::version_to_bytes(Version::from(&about)));
    }
    let mut bytes = Vec::new();
    file.by_ref().take(LONGEST_TLS_FILE).read_to_end(&mut bytes)?;
    Ok(bytes)
}
