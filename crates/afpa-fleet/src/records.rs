//! Records that all machines have, for other threads: they ask, and the thread of the fleet writes.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::timeout;

use crate::follower::Position;
use crate::state::Shared;

/// How often a holder looks whether a machine has fallen silent, of which nobody tells it.
const LOOK: Duration = Duration::from_secs(1);

/// The answer of the thread of the fleet; an error is for people.
pub(crate) type Answer<T> = oneshot::Sender<Result<T, String>>;

/// A question of another thread.
pub(crate) enum Ask {
    /// To take a record; `None`: another machine has it. If nobody waits for the answer any more, the record in it is given back.
    Take(String, Answer<Option<HeldRecord>>),
    /// To write a value to one that this process holds, and to hold it on or to give it back.
    Put(String, Arc<str>, bool, Answer<Position>),
    /// To give it back as it is.
    Leave(String),
}

/// Nobody sees the value: it may have a key.
impl std::fmt::Debug for Ask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Take(key, _) => f.debug_tuple("Take").field(key).finish_non_exhaustive(),
            Self::Put(key, _, is_held, _) => {
                f.debug_tuple("Put").field(key).field(is_held).finish_non_exhaustive()
            }
            Self::Leave(key) => f.debug_tuple("Leave").field(key).finish(),
        }
    }
}

/// The part that thread and askers have in common.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) asks: mpsc::UnboundedSender<Ask>,
    /// A value has changed.
    pub(crate) changed: Notify,
    /// A machine has said how far it is.
    pub(crate) heard: Notify,
}

/// The records of a fleet.
#[derive(Clone, Debug)]
pub struct Records(Arc<Shared>);

/// A record that this process holds. Dropping it gives it back.
#[derive(Debug)]
pub struct HeldRecord {
    shared: Arc<Shared>,
    key: String,
    /// The place of the last write.
    written: Option<Position>,
    is_over: bool,
}

impl Records {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// Whether a server is reached, all records were read, and all machines that are there can have been heard.
    pub fn are_read(&self) -> bool {
        self.0.lock().reads_records(self.0.now())
    }

    /// The value of a record, as it was last heard.
    pub fn value(&self, key: &str) -> Option<Arc<str>> {
        self.0.lock().shelf.as_ref()?.value(key)
    }

    /// Waits until a value changes.
    pub async fn changed(&self) {
        self.0.desk.changed.notified().await;
    }

    /// Takes a record; `None`: another machine has it.
    ///
    /// # Errors
    /// When the servers cannot be asked, with the reason for people.
    pub async fn take(&self, key: &str) -> Result<Option<HeldRecord>, String> {
        ask(&self.0, |answer| Ask::Take(key.to_owned(), answer)).await
    }
}

impl HeldRecord {
    pub(crate) fn new(shared: Arc<Shared>, key: String) -> Self {
        Self { shared, key, written: None, is_over: false }
    }

    /// Its value.
    pub fn value(&self) -> Option<Arc<str>> {
        self.shared.lock().shelf.as_ref()?.value(&self.key)
    }

    /// Whether nobody else can hold it yet.
    pub fn holds(&self) -> bool {
        let now = self.shared.now();
        self.shared.lock().shelf.as_ref().is_some_and(|shelf| shelf.holds(&self.key, now))
    }

    /// Writes another value.
    ///
    /// # Errors
    /// When it is not held any more, or nobody knows whether the servers have the value.
    pub async fn put(&mut self, value: Arc<str>) -> Result<(), String> {
        let put = |answer| Ask::Put(self.key.clone(), value, true, answer);
        self.written = Some(ask(&self.shared, put).await?);
        Ok(())
    }

    /// Writes the last value, and gives the record back.
    ///
    /// # Errors
    /// Likewise.
    pub async fn give_back(mut self, value: Arc<str>) -> Result<(), String> {
        let key = self.key.clone();
        ask(&self.shared, |answer| Ask::Put(key, value, false, answer)).await?;
        self.is_over = true;
        Ok(())
    }

    /// Waits until all live machines that have records have seen what was written last, but no longer than `most`. Names
    /// of those that have not.
    pub async fn seen(&self, most: Duration) -> Vec<String> {
        let Some(place) = self.written else { return Vec::new() };
        let deadline = self.shared.now().saturating_add(most);
        loop {
            // It is there before the look, so a word that comes in between is heard.
            let word = self.shared.desk.heard.notified();
            let now = self.shared.now();
            let waiting = self.shared.lock().members.without_records(&place, now);
            if waiting.is_empty() || now >= deadline {
                return waiting;
            }
            let _ = timeout(LOOK.min(deadline - now), word).await;
        }
    }
}

impl Drop for HeldRecord {
    fn drop(&mut self) {
        if !self.is_over {
            // Without a thread of the fleet its lease runs out.
            let _ = self.shared.desk.asks.send(Ask::Leave(std::mem::take(&mut self.key)));
        }
    }
}

async fn ask<T>(shared: &Shared, question: impl FnOnce(Answer<T>) -> Ask) -> Result<T, String> {
    let gone = "this machine takes part in no fleet any more";
    let (answer, answered) = oneshot::channel();
    shared.desk.asks.send(question(answer)).map_err(|_| gone.to_owned())?;
    answered.await.unwrap_or_else(|_| Err(gone.to_owned()))
}

/// Nobody answers them now. Returns the keys of records that nobody works with any more.
pub(crate) fn refuse(asks: &mut mpsc::UnboundedReceiver<Ask>, why: &str) -> Vec<String> {
    let mut left = Vec::new();
    while let Ok(ask) = asks.try_recv() {
        match ask {
            Ask::Take(_, answer) => drop(answer.send(Err(why.to_owned()))),
            Ask::Put(_, _, _, answer) => drop(answer.send(Err(why.to_owned()))),
            Ask::Leave(key) => left.push(key),
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Heartbeat;
    use crate::orders::Orders;

    #[tokio::test]
    async fn a_record_that_nobody_waits_for_any_more_is_given_back() {
        let (desk, mut asks) = mpsc::unbounded_channel();
        let orders = Orders::new("a-1".to_owned(), Vec::new());
        let shared = Shared::new(orders, Heartbeat::default(), Duration::ZERO, desk, None);
        let records = Records::new(Arc::new(shared));
        let taker = records.clone();
        let waiting = tokio::spawn(async move { taker.take("k").await.map(|_| ()) });
        let Some(Ask::Take(key, answer)) = asks.recv().await else { panic!("it asks") };
        // It ends between question and answer, as at a reload.
        waiting.abort();
        assert!(waiting.await.is_err_and(|ended| ended.is_cancelled()));
        drop(answer.send(Ok(Some(HeldRecord::new(Arc::clone(&records.0), key)))));
        assert!(matches!(asks.try_recv(), Ok(Ask::Leave(key)) if key == "k"));
    }

    #[test]
    fn nobody_sees_the_value_of_a_question() {
        let (answer, _answered) = oneshot::channel();
        let put = Ask::Put("certificate a.test".to_owned(), "PRIVATE KEY".into(), true, answer);
        let shown = format!("{put:?}");
        assert!(shown.contains("a.test") && !shown.contains("PRIVATE"), "{shown}");
    }
}
