//! `afpa fleet push`, `rollback` and `revisions`: the configuration of a fleet.

use std::path::Path;
use std::time::{Duration, Instant};

use afpa_config::files_of;
use afpa_fleet::{FleetLook, LONGEST_FILES, Outcome, Phase, Taker};
use anyhow::{Context as _, bail};
use serde::Deserialize;

use crate::control::Socket;

/// The time between two questions.
const ASK: Duration = Duration::from_millis(100);

/// The longest time that a check and the servers may take.
const CHECKED: Duration = Duration::from_secs(120);

/// The servers show a new record within this time.
const SEEN: Duration = Duration::from_secs(10);

/// Pushes a file, with all that it includes, or the files of a folder, and tells how far the machines are.
///
/// # Errors
/// When it cannot be read or is refused, or was rolled back.
pub(super) fn push(socket: &Socket, path: &Path, no_wait: bool) -> anyhow::Result<()> {
    let mut files = files_of(path)?;
    if files.files.is_empty() {
        bail!("{} has no files *.toml: name a file, or a folder with some", path.display());
    }
    if files.bytes() > LONGEST_FILES {
        let most = LONGEST_FILES / 1024;
        bail!("{} has more than {most} KiB with all that it includes", path.display());
    }
    let folder = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
    for file in &mut files.files {
        let short =
            Path::new(&file.name).strip_prefix(folder).map(|name| name.display().to_string());
        file.name = short.unwrap_or(std::mem::take(&mut file.name));
    }
    let answer = socket.post_content("/fleet/push", &files.encode());
    let revision = outcome(socket, &answer.map_err(super::fleet::without_fleet)?)?;
    let revision = revision.context("it has no revision")?;
    tell(&format!("this is revision {revision}\n"))?;
    if no_wait {
        return Ok(());
    }
    let (mut told, begun) = (String::new(), Instant::now());
    loop {
        let look = look(socket)?;
        let rollout = look.configuration.and_then(|one| one.rollout);
        let other = rollout.as_ref().filter(|rollout| rollout.target != revision);
        if let Some(other) = other.filter(|_| !told.is_empty() || begun.elapsed() > SEEN) {
            bail!("another order came: revision {} is to run now", other.target);
        }
        let Some(rollout) = rollout.filter(|rollout| rollout.target == revision) else {
            // The record is read once a second.
            std::thread::sleep(ASK);
            continue;
        };
        let state = rollout.to_string();
        match &rollout.phase {
            Phase::Back { .. } => bail!("{state}"),
            _ if state != told => tell(&format!("{state}\n"))?,
            _ => {}
        }
        if rollout.phase == Phase::Done {
            return Ok(());
        }
        told = state;
        std::thread::sleep(ASK);
    }
}

/// Goes back to a revision. Returns its effect, in words.
///
/// # Errors
/// When there is none, or a machine does not run it in time.
pub(super) fn roll_back(
    socket: &Socket,
    revision: Option<u64>,
    wait: Duration,
) -> anyhow::Result<String> {
    let order = match revision {
        Some(revision) => format!("/fleet/rollback?revision={revision}"),
        None => "/fleet/rollback".to_owned(),
    };
    let answer = socket.post(&order).map_err(super::fleet::without_fleet)?;
    let revision = outcome(socket, &answer)?;
    let said = revision.map_or("no revision".to_owned(), |number| format!("revision {number}"));
    let deadline = Instant::now() + wait;
    loop {
        let takers = Taker::of(&look(socket)?.members);
        let lacks = takers.iter().filter(|taker| taker.runs != revision);
        let lacks: Vec<_> = lacks.map(|taker| taker.name.as_str()).collect();
        if lacks.is_empty() {
            return Ok(format!("{} machines run {said}\n", takers.len()));
        }
        if Instant::now() >= deadline {
            bail!("{said} is to run, and these do not run it yet: {}", lacks.join(", "));
        }
        std::thread::sleep(ASK);
    }
}

/// The revisions, as a table.
///
/// # Errors
/// When no process can be asked, or nothing was pushed.
pub(super) fn revisions(socket: &Socket, as_json: bool) -> anyhow::Result<String> {
    let look = look(socket)?.configuration;
    let look = look.context(
        "this machine takes no configuration of the fleet: write `configuration = true` in [fleet]",
    )?;
    let listed = look.rollout.as_ref().map(|rollout| &rollout.revisions[..]).unwrap_or_default();
    if as_json {
        return Ok(format!("{}\n", serde_json::to_string(listed)?));
    }
    let Some(rollout) = &look.rollout else {
        return Ok("nothing was pushed to this fleet yet\n".to_owned());
    };
    let mut text = String::from("REVISION  WHEN                  BY\n");
    for one in listed {
        let mark = match one.revision {
            revision if Some(revision) == rollout.running() => "  runs",
            revision if revision == rollout.target && !rollout.is_over() => "  on its way",
            _ => "",
        };
        let when = afpa_http::HttpDate::new(one.at);
        text.push_str(&format!(
            "{:<8}  {when}  {}  {} ({} bytes){mark}\n",
            one.revision,
            one.by,
            one.files.join(", "),
            one.bytes
        ));
    }
    text.push_str(&format!("\n{rollout}\n"));
    Ok(text)
}

/// Waits for the outcome of an order.
fn outcome(socket: &Socket, answer: &str) -> anyhow::Result<Option<u64>> {
    #[derive(Deserialize)]
    struct Sent {
        number: u64,
    }
    let sent: Sent = serde_json::from_str(answer).context("the running afpa sent no JSON")?;
    let deadline = Instant::now() + CHECKED;
    while Instant::now() < deadline {
        let answer = socket.get(&format!("/fleet/outcome?number={}", sent.number))?;
        match serde_json::from_str(&answer).context("it sent no JSON")? {
            Outcome::Waiting => std::thread::sleep(ASK),
            Outcome::Done { revision } => return Ok(revision),
            Outcome::Refused { why } => bail!("nothing has changed: {why}"),
        }
    }
    bail!("no answer within {} s: look at `afpa fleet`", CHECKED.as_secs())
}

fn tell(text: &str) -> anyhow::Result<()> {
    afpa_say::result(text.as_bytes()).context("cannot write to standard output")
}

fn look(socket: &Socket) -> anyhow::Result<FleetLook> {
    let answer = socket.get("/fleet").map_err(super::fleet::without_fleet)?;
    serde_json::from_str(&answer).context("the running afpa sent no JSON")
}
