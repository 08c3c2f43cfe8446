//! The text of `afpa fleet`, and orders for all machines of a fleet.

use std::time::{Duration, Instant};

use afpa_fleet::{Fate, FleetLook, MemberLook, OrderLook, PeerCounts, PeerWord, Refused, Standing};
use anyhow::{Context as _, bail};
use serde::Deserialize;

use crate::control::Socket;

/// The first and the longest time between two questions after an order.
const ASK: Duration = Duration::from_millis(5);
const ASK_SELDOM: Duration = Duration::from_millis(100);

/// Gives an order to all machines, and waits for them as long as `wait` allows. Returns its effect, in words.
///
/// # Errors
/// When no process can be asked, the order is refused, or a machine has not carried it out.
pub(super) fn send(socket: &Socket, order: &str, wait: Duration) -> anyhow::Result<String> {
    #[derive(Deserialize)]
    struct Sent {
        number: u64,
        here: String,
    }
    let answer = socket.post(order).map_err(without_fleet)?;
    let sent: Sent = serde_json::from_str(&answer).context("the running afpa sent no JSON")?;
    let (deadline, mut pause) = (Instant::now() + wait, ASK);
    loop {
        let answer = socket.get(&format!("/fleet/order?number={}", sent.number))?;
        let look: OrderLook = serde_json::from_str(&answer).context("it sent no JSON")?;
        let is_late = Instant::now() >= deadline;
        match judge(&look, is_late) {
            Some(Ok(said)) => return Ok(format!("{}\n{said}", sent.here)),
            Some(Err(said)) => bail!("{}; {said}", sent.here),
            None => std::thread::sleep(pause),
        }
        pause = (pause * 2).min(ASK_SELDOM);
    }
}

/// The end of an order; `None`: it may still be carried out in time.
fn judge(look: &OrderLook, is_late: bool) -> Option<Result<String, String>> {
    let Standing { settled, done, waiting, silent } = &look.standing;
    match &look.fate {
        Fate::Refused { why } => Some(Err(format!("the servers of the fleet refuse it: {why}"))),
        Fate::Queued if is_late => {
            let why = match (look.connected, &look.held) {
                (true, Some(why)) => format!("the servers of the fleet do not take it yet ({why})"),
                (true, None) => "the servers of the fleet do not take it yet".to_owned(),
                (false, _) => "no server of the fleet can be reached".to_owned(),
            };
            Some(Err(format!("{why}: it is done here alone, waits, and is sent when that changes")))
        }
        Fate::Queued => None,
        Fate::Logged(_) if look.standing.is_done() => {
            let machines = if done.len() == 1 { "machine has" } else { "machines have" };
            Some(Ok(format!("{} {machines} done it: {}\n", done.len(), done.join(", "))))
        }
        Fate::Logged(_) if !is_late && (!settled || !waiting.is_empty()) => None,
        Fate::Logged(_) => {
            let mut lacks: Vec<String> =
                waiting.iter().map(|name| format!("{name} has not done it yet")).collect();
            lacks.extend(silent.iter().map(|(name, seconds)| {
                format!("{name} is silent for {seconds} s, and does it when it is back")
            }));
            if lacks.is_empty() {
                lacks.push("other machines have not been heard yet".to_owned());
            }
            Some(Err(format!("{}; done by {}", lacks.join("; "), list(done))))
        }
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The error for people: the operations of a fleet are there with a fleet alone.
pub(super) fn without_fleet(error: anyhow::Error) -> anyhow::Error {
    match error.to_string().contains("no such operation") {
        true => anyhow::anyhow!("the running afpa is in no fleet: write [fleet] with `servers`"),
        false => error,
    }
}

/// The members, as a table.
pub(super) fn table(look: &FleetLook) -> String {
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(look.members.iter().map(|member| row(member, look)));
    let widths: Vec<usize> = (0..HEAD.len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.push_str(&summary(look));
    text
}

const HEAD: [&str; 10] = [
    "NAME",
    "REGION",
    "STATE",
    "ORDER",
    "LAG",
    "HITS",
    "ANSWERS/S",
    "CONFIGURATION",
    "REVISION",
    "VERSION",
];

fn row(member: &MemberLook, look: &FleetLook) -> [String; 10] {
    let beat = &member.beat;
    let state = match member.silent {
        Some(seconds) => format!("silent for {seconds} s"),
        None if member.is_own => "this one".to_owned(),
        None => "live".to_owned(),
    };
    let place = beat.purges.map_or(0, |place| place.sequence);
    let lag = look.last_purge.saturating_sub(place);
    let word = |word: &str| if word.is_empty() { "-" } else { word }.to_owned();
    [
        word(&beat.name),
        word(&beat.region),
        state,
        place.to_string(),
        lag.to_string(),
        format!("{}.{} %", beat.hits / 10, beat.hits % 10),
        beat.rate.to_string(),
        word(&beat.configuration),
        revision(member, look),
        word(&beat.version),
    ]
}

/// The revision of the fleet's configuration that a member runs, and the one that it is to run.
fn revision(member: &MemberLook, look: &FleetLook) -> String {
    let rollout = look.configuration.as_ref().and_then(|one| one.rollout.as_ref());
    let number = |revision: Option<u64>| revision.map_or("-".to_owned(), |one| one.to_string());
    let runs = number(member.beat.revision);
    let Some(rollout) = rollout.filter(|_| member.beat.takes) else { return runs };
    let wanted = rollout.wanted(&member.beat.name);
    let is_refused = |refused: &Refused| Some(refused.revision) == wanted;
    match &member.beat.refused {
        _ if wanted == member.beat.revision => runs,
        Some(refused) if is_refused(refused) => format!("{runs}, cannot take {}", number(wanted)),
        _ => format!("{runs}, takes {}", number(wanted)),
    }
}

fn summary(look: &FleetLook) -> String {
    let mut text = match (look.connected, look.word_ms) {
        (true, Some(ms)) => format!("\nlast word of the servers: {} ms ago", ms),
        (true, None) => "\nconnected, and no word about orders yet".to_owned(),
        (false, Some(ms)) => {
            format!("\nno server can be reached; last word: {} s ago", ms / 1000)
        }
        (false, None) => "\nno server can be reached".to_owned(),
    };
    if let Some(trouble) = &look.trouble {
        text.push_str(&format!(" ({trouble})"));
    }
    if look.waiting > 0 {
        text.push_str(&format!("\n{} orders wait for the servers", look.waiting));
    }
    if let Some(turn) = look.keys {
        let of = |member: &MemberLook| member.beat.turns_keys && member.silent.is_none();
        let maker = look.members.iter().find(|member| of(member));
        let maker = maker.map_or("nobody now", |member| &member.beat.name);
        text.push_str(&format!("\nshared keys of turn {turn}; the next ones come from {maker}"));
    }
    if let Some(why) = &look.key_trouble {
        text.push_str(&format!("\nno shared keys come: {why}"));
    }
    if let Some(count) = look.certificates {
        text.push_str(&format!("\nrecords of certificates that all machines have: {count}"));
    }
    if let Some(why) = &look.certificate_trouble {
        text.push_str(&format!("\nno certificates come: {why}"));
    }
    for name in &look.twins {
        text.push_str(&format!(
            "\ntwo machines are named {name}: give each its own `name` in [fleet]"
        ));
    }
    for (name, ahead) in &look.clocks {
        let side = if *ahead < 0 { "behind" } else { "ahead of" };
        let seconds = ahead.unsigned_abs();
        text.push_str(&format!("\nthe clock of {name} is {seconds} s {side} this machine's"));
    }
    let rollout = look.configuration.as_ref().and_then(|one| one.rollout.as_ref());
    if let Some(rollout) = rollout {
        text.push_str(&format!("\n{rollout}"));
    }
    if let Some(counts) = look.peers {
        text.push_str(&peers(counts, look));
    }
    let counts = look.counts;
    text.push_str(&format!(
        "\ndone here for the fleet: {} purges, {} denials; everything dropped {} times, made stale {} times\n",
        counts.purges, counts.bans, counts.flushes, counts.softened
    ));
    text
}

/// The machines that ask one another for answers.
fn peers(counts: PeerCounts, look: &FleetLook) -> String {
    let mut text = String::new();
    for MemberLook { beat, silent, .. } in &look.members {
        let Some(peer) = beat.peer.as_ref().filter(|_| silent.is_none()) else { continue };
        let PeerWord { address, rate, shed, hot } = peer;
        let given_up = u32::from(*shed) * 100 / 256;
        text.push_str(&format!(
            "\n{} answers the others at {address}: {rate} questions/s, {} hot URLs, {given_up} % of its keys given up",
            beat.name,
            hot.len()
        ));
    }
    let PeerCounts { answered, refused, failed, served, turned_away, strange, .. } = counts;
    text.push_str(&format!(
        "\nasked the others here: {answered} answered, {refused} refused, {failed} failed; asked by the others: {served} answered, {turned_away} refused, {strange} by strangers"
    ));
    if look.asks_nobody {
        text.push_str("\nthis machine asks no other one, as an order to purge could not be sent: `afpa purge --fleet --below /` makes up for it");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use afpa_fleet::Position;

    fn look(fate: Fate, standing: Standing) -> OrderLook {
        OrderLook { fate, connected: false, held: None, standing }
    }

    #[test]
    fn an_order_ends_when_all_have_done_it_or_somebody_is_named() {
        let logged = || Fate::Logged(Position { log: 1, sequence: 1 });
        let (a, b) = (|| vec!["a".to_owned()], || vec!["b".to_owned()]);
        let settled = Standing { settled: true, done: a(), ..Standing::default() };
        let done = judge(&look(logged(), settled.clone()), false);
        assert_eq!(done, Some(Ok("1 machine has done it: a\n".to_owned())));
        let unsettled = Standing { settled: false, ..settled.clone() };
        assert_eq!(judge(&look(logged(), unsettled), false), None);
        let waits = Standing { waiting: b(), ..settled.clone() };
        assert_eq!(judge(&look(logged(), waits.clone()), false), None);
        let said = judge(&look(logged(), waits), true).unwrap().unwrap_err();
        assert_eq!(said, "b has not done it yet; done by a");
        let silent = Standing { silent: vec![("c".to_owned(), 9)], ..settled };
        let said = judge(&look(logged(), silent), false).unwrap().unwrap_err();
        assert!(said.starts_with("c is silent for 9 s"), "{said}");
        assert_eq!(judge(&look(Fate::Queued, Standing::default()), false), None);
        let said = judge(&look(Fate::Queued, Standing::default()), true).unwrap().unwrap_err();
        assert!(said.contains("no server of the fleet can be reached"), "{said}");
        let held = Some("no space".to_owned());
        let look = OrderLook { connected: true, held, ..look(Fate::Queued, Standing::default()) };
        assert!(judge(&look, true).unwrap().unwrap_err().contains("(no space)"));
    }
}
