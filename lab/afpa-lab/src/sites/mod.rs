//! `afpa-lab sites`: the costs of many sites for AFPA and nginx, with the same hosts, folders and certificates: the time
//! until the first answer, memory, threads, descriptors, watches, a reload, the stop.
//!
//! The servers take turns, and each start is a fresh one. While a server reloads, a client asks for one site after the other,
//! each time on a connection of its own: no request may be lost, and a file that is changed meanwhile has to be seen.

mod configuration;
mod process;
mod settings;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::stats::Spread;
use configuration::Files;
use process::{Held, Process};
pub use settings::Settings;
use settings::{PATIENCE, Server};

/// The figures of one start.
struct Turn {
    start: Duration,
    held: Held,
    reload: Duration,
    /// Requests while it reloaded.
    asked: usize,
    after: Held,
    stop: Duration,
}

/// Runs all rounds in `work`, and returns the table.
///
/// # Errors
/// When a server does not start, gives a wrong answer or none, or does not end.
pub fn run(settings: &Settings, work: &Path) -> Result<String> {
    let files = Files::make(settings, work)?;
    let mut turns: [Vec<Turn>; 2] = Default::default();
    for round in 0..settings.rounds {
        let mut order = [Server::Afpa, Server::Nginx];
        order.rotate_left(round % 2);
        for server in order {
            let turn = turn(server, settings, &files).with_context(|| server.name())?;
            turns[server as usize].push(turn);
        }
    }
    Ok(table(settings, &turns))
}

fn turn(server: Server, settings: &Settings, files: &Files) -> Result<Turn> {
    let addresses = [free()?, free()?];
    let configuration = files.configure(server, addresses)?;
    let began = Instant::now();
    let mut process = Process::start(server, settings, &configuration, files.work())?;
    let middle = settings.sites / 2;
    process.until("the first answer", || {
        ask(addresses[0], middle).is_ok_and(|body| files.is(middle, &body))
    })?;
    let start = began.elapsed();
    process.settle()?;
    let held = process.held()?;
    let ended = AtomicBool::new(false);
    let (reload, asked) = std::thread::scope(|scope| {
        let client = scope.spawn(|| ask_all(addresses[0], settings, files, &ended));
        let reload = process.reload();
        files.change(middle)?;
        let seen = process.until("the changed file", || {
            ask(addresses[0], middle).is_ok_and(|body| body == configuration::CHANGED)
        });
        ended.store(true, Ordering::Relaxed);
        let asked = client.join().map_err(|_| anyhow::anyhow!("the client panicked"))?;
        seen?;
        Ok::<_, anyhow::Error>((reload?, asked?))
    })?;
    process.settle()?;
    let after = process.held()?;
    files.restore(middle)?;
    let stop = process.stop()?;
    Ok(Turn { start, held, reload, asked, after, stop })
}

/// Asks until `ended` is set. Returns how often.
fn ask_all(
    to: SocketAddr,
    settings: &Settings,
    files: &Files,
    ended: &AtomicBool,
) -> Result<usize> {
    let mut asked = 0;
    while !ended.load(Ordering::Relaxed) {
        let site = (asked * 7919) % settings.sites;
        let body = ask(to, site).context("a request was lost during the reload")?;
        let is_changed = body == configuration::CHANGED;
        ensure!(is_changed || files.is(site, &body), "a wrong answer for site {site}: {body}");
        asked += 1;
    }
    Ok(asked)
}

/// The content of a site's page, on a connection of its own.
fn ask(to: SocketAddr, site: usize) -> Result<String> {
    let mut stream = TcpStream::connect(to)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET / HTTP/1.1\r\nHost: www.h{site}.example\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.starts_with("HTTP/1.1 200") => Ok(body.to_owned()),
        _ => bail!("no answer: {answer:?}"),
    }
}

fn free() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

fn table(settings: &Settings, turns: &[Vec<Turn>; 2]) -> String {
    let folders = if settings.shared { "one root" } else { "a root each" };
    let mut text = format!(
        "{} sites, {folders}, {} certificates; medians of {} starts (least to most)\n\n",
        settings.sites, settings.certificates, settings.rounds
    );
    text += &format!("{:<34}{:>26}{:>26}\n", "", Server::Afpa.name(), Server::Nginx.name());
    let mut row = |name: &str, unit: &str, of: &dyn Fn(&Turn) -> f64| {
        let cells = turns.each_ref().map(|turns| {
            let spread = Spread::of(turns.iter().map(of));
            spread.map_or_else(String::new, |s| match unit {
                "" => format!("{:.0}", s.median),
                _ => format!("{:.2} ({:.2} to {:.2})", s.median, s.min, s.max),
            })
        });
        text += &format!("{:<34}{:>26}{:>26}\n", format!("{name} {unit}"), cells[0], cells[1]);
    };
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    row("start to the first answer,", "s", &|turn| turn.start.as_secs_f64());
    row("memory (PSS),", "MiB", &|turn| mib(turn.held.memory));
    row("sum of VmRSS,", "MiB", &|turn| mib(turn.held.resident));
    row("threads", "", &|turn| turn.held.threads as f64);
    row("descriptors", "", &|turn| turn.held.descriptors as f64);
    row("inotify instances", "", &|turn| turn.held.instances as f64);
    row("watches (about 1 KiB of kernel each)", "", &|turn| turn.held.watches as f64);
    row("reload,", "s", &|turn| turn.reload.as_secs_f64());
    row("requests meanwhile, none lost", "", &|turn| turn.asked as f64);
    row("memory after it (PSS),", "MiB", &|turn| mib(turn.after.memory));
    row("stop,", "s", &|turn| turn.stop.as_secs_f64());
    text
}
