//! The heartbeats: those of the others, and our own with everything that is looked at once a beat.

use std::convert::Infallible;
use std::time::Duration;

use async_nats::Client;
use futures_util::StreamExt as _;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use super::{Agent, PAUSE};
use crate::machine::Readings;
use crate::members::BEAT;
use crate::message::Heartbeat;
use crate::state::unix;

/// Heartbeats that say that places have moved are gathered for so long.
const GATHER: Duration = Duration::from_millis(5);

/// A server that says nothing about the logs for so long, though it is connected, may be cut off from the others.
const DEAF: Duration = Duration::from_secs(5);

/// Beats without a server before the log says so.
const UNREACHED: u32 = 3;

impl Agent {
    /// Hears the others, for ever.
    pub(super) async fn listen(&self, client: &Client) -> Infallible {
        loop {
            if let Ok(mut beats) = client.subscribe(self.way.subject("member")).await {
                while let Some(message) = beats.next().await {
                    let heard = Heartbeat::decode_by(&message.payload, self.way.secret.as_ref());
                    let Ok(mut beat) = heard else { continue };
                    beat.ahead = ahead(beat.clock);
                    if beat.peer.is_some() {
                        self.shared.heard_peer(&beat.instance);
                    }
                    if self.shared.lock().members.heard(beat, self.shared.now()) {
                        self.shared.moved.notify_one();
                    }
                    self.shared.desk.heard.notify_waiters();
                }
            }
            sleep(PAUSE).await;
        }
    }

    /// Says that we are here, for ever.
    pub(super) async fn beat(&self, client: &Client) -> Infallible {
        let mut tick = interval(BEAT);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut before = (Instant::now(), self.machine.readings());
        let mut softened = Duration::ZERO;
        let (mut was_connected, mut unreached, mut deaf_since) = (false, 0, None);
        loop {
            tokio::select! {
                _ = tick.tick() => {
                    let now = (Instant::now(), self.machine.readings());
                    self.note_readings(&before, &now);
                    before = now;
                    self.note_running();
                    self.shared.tick_peers();
                    self.soften(&mut softened);
                    self.take_in_left();
                    self.tell_twins();
                    self.tell_clocks();
                    self.complain(&mut unreached).await;
                    self.go_elsewhere(&mut deaf_since, client).await;
                }
                () = self.shared.moved.notified() => sleep(GATHER).await,
            }
            let is_connected = self.shared.lock().connected;
            if is_connected {
                let asks = !was_connected;
                let beat = Heartbeat { asks, ..self.shared.next_beat() };
                let _ = client.publish(self.way.subject("member"), self.spoken(&beat)).await;
            }
            was_connected = is_connected;
        }
    }

    fn note_readings(
        &self,
        (then, before): &(Instant, Readings),
        (now, readings): &(Instant, Readings),
    ) {
        let answers = readings.answers.saturating_sub(before.answers);
        let hits = readings.hits.saturating_sub(before.hits);
        let ms = u64::try_from((*now - *then).as_millis()).unwrap_or(u64::MAX).max(1);
        let mut state = self.shared.lock();
        let since = self.shared.now();
        let load = state.window.add(since, readings.clone(), &*self.machine);
        let beat = &mut state.beat;
        beat.load = load;
        beat.rate = answers.saturating_mul(1000) / ms;
        beat.hits = (hits.saturating_mul(1000) / answers.max(1)).min(1000);
        beat.connections = readings.connections;
        beat.configuration.clone_from(&readings.configuration);
    }

    /// Kept answers are stale when there was no word for too long, and so are those that were kept since then.
    fn soften(&self, softened: &mut Duration) {
        let Some(limit) = self.way.settings.stale_after else { return };
        let (silence, now) = (self.shared.silence(), self.shared.now());
        if silence < limit {
            *softened = Duration::ZERO;
        } else if *softened == Duration::ZERO || now.saturating_sub(*softened) >= limit {
            if *softened == Duration::ZERO {
                tracing::warn!(
                    "no word of the fleet for {} s: kept answers are validated before they are used",
                    silence.as_secs()
                );
            }
            *softened = now;
            self.machine.soften();
            self.shared.lock().counts.softened += 1;
        }
    }

    /// One line when the servers have not been reached for some beats.
    async fn complain(&self, unreached: &mut u32) {
        let is_connected = self.shared.lock().connected;
        *unreached = if is_connected { 0 } else { unreached.saturating_add(1) };
        if *unreached != UNREACHED {
            return;
        }
        let why = self.way.reason().await;
        tracing::warn!(
            "no server of the fleet can be reached, and AFPA serves on and goes on trying: {why}"
        );
        let mut state = self.shared.lock();
        if !state.connected {
            state.trouble = Some(why);
        }
    }

    /// Leaves a server that may be cut off from the others: it is well with its clients, and knows nothing of the logs. The next
    /// one is drawn by lot.
    async fn go_elsewhere(&self, deaf_since: &mut Option<Duration>, client: &Client) {
        let now = self.shared.now();
        if !self.shared.lock().connected || self.shared.silence() < DEAF {
            *deaf_since = None;
        } else if now.saturating_sub(*deaf_since.get_or_insert(now)) >= DEAF {
            *deaf_since = None;
            tracing::debug!("the server says nothing about the logs: another one is tried");
            let _ = client.force_reconnect().await;
        }
    }

    /// One line when two machines have one name: an order that one of them has done looks done by both.
    fn tell_twins(&self) {
        let mut state = self.shared.lock();
        let twins = state.members.twins(self.shared.now());
        if twins == state.twins {
            return;
        }
        for name in twins.difference(&state.twins) {
            tracing::warn!(
                "two machines of the fleet are named {name}: give each its own `name` in [fleet]"
            );
        }
        state.twins = twins;
    }

    /// One line when the clock of another machine is not that of this one.
    fn tell_clocks(&self) {
        let mut state = self.shared.lock();
        let apart = state.members.clocks(self.shared.now());
        for (name, ahead) in apart.iter().filter(|(name, _)| !state.clocks.contains_key(*name)) {
            let (seconds, side) =
                (ahead.unsigned_abs(), if *ahead < 0 { "behind" } else { "ahead of" });
            tracing::warn!(
                "the clock of {name} is {seconds} s {side} this machine's: tokens of HTTP/3 by one do not hold at the other until \
                 something sets both (chrony, systemd-timesyncd)"
            );
        }
        state.clocks = apart;
    }
}

/// Seconds by which a clock is ahead of that of this machine.
fn ahead(clock: u64) -> Option<i64> {
    let clock = i64::try_from(clock).ok().filter(|clock| *clock > 0)?;
    clock.checked_sub(i64::try_from(unix()).ok()?)
}
