//! The prober of the server groups: a thread that probes servers and looks up names when that is due. The
//! groups decide when it is due, and judge the results.

mod ask;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use afpa_framework::steady_ms;
use afpa_names::{ResolveSettings, resolve};
pub use ask::probe;
use tokio::sync::{Notify, Semaphore};
use tokio::task::LocalSet;
use tokio::time::timeout;

use crate::select::{Group, ServerAddress};

/// Most probes and look-ups at a time.
const AT_A_TIME: usize = 256;

/// How long a start waits for look-ups: once names have addresses, there are servers for the first request.
const FIRST_NAMES: Duration = Duration::from_secs(2);

/// How often the groups are asked what is due. This is never longer than the pause before the first probe of
/// a server that has become unavailable.
const BEAT: Duration = Duration::from_millis(100);

/// Probes the servers of groups and resolves their names; its thread ends when this is dropped.
#[derive(Debug)]
pub struct HealthProber {
    shared: Arc<ProberInner>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct ProberInner {
    task: Mutex<Task>,
    changed: Notify,
}

#[derive(Clone, Debug)]
struct Task {
    groups: Vec<Arc<Group>>,
    settings: Arc<ResolveSettings>,
    ended: bool,
}

impl HealthProber {
    /// Starts the thread. Names are looked up before this returns, unless that takes more than two
    /// seconds.
    ///
    /// # Errors
    /// When the system cannot start a thread or an event queue.
    pub fn start(groups: Vec<Arc<Group>>, settings: ResolveSettings) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let task = Task { groups, settings: Arc::new(settings), ended: false };
        let shared =
            Arc::new(ProberInner { task: Mutex::new(task.clone()), changed: Notify::new() });
        let first = async {
            let names = task.groups.iter().flat_map(|group| group.names()).collect::<Vec<_>>();
            let mut due = HashMap::new();
            let all = LocalSet::new();
            for place in names {
                if due.insert(place.clone(), ()).is_none() {
                    all.spawn_local(look_up(place, task.clone()));
                }
            }
            all.await;
        };
        let _ = runtime.block_on(async { timeout(FIRST_NAMES, first).await });
        let for_thread = Arc::clone(&shared);
        let run = move || LocalSet::new().block_on(&runtime, run_until_dropped(&for_thread));
        let thread = std::thread::Builder::new().name("afpa-prober".to_owned()).spawn(run)?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Probes these groups from now on.
    pub fn replace(&self, groups: Vec<Arc<Group>>, settings: ResolveSettings) {
        self.change(|task| (task.groups, task.settings) = (groups, Arc::new(settings)));
    }

    fn change(&self, change: impl FnOnce(&mut Task)) {
        change(&mut self.shared.task.lock().unwrap_or_else(PoisonError::into_inner));
        self.shared.changed.notify_one();
    }
}

impl Drop for HealthProber {
    fn drop(&mut self) {
        self.change(|task| task.ended = true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn run_until_dropped(shared: &ProberInner) {
    let room = Rc::new(Semaphore::new(AT_A_TIME));
    let mut names: HashMap<ServerAddress, Rc<std::cell::Cell<Due>>> = HashMap::new();
    loop {
        let task = shared.task.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if task.ended {
            return;
        }
        if task.groups.is_empty() {
            shared.changed.notified().await;
            continue;
        }
        begin_probes(&task, &room);
        begin_look_ups(&task, &room, &mut names);
        let _ = timeout(BEAT, shared.changed.notified()).await;
    }
}

fn begin_probes(task: &Task, room: &Rc<Semaphore>) {
    for group in &task.groups {
        for due in group.due_probes(steady_ms()) {
            let (group, room) = (Arc::clone(group), Rc::clone(room));
            tokio::task::spawn_local(async move {
                let _room = room.acquire().await;
                let good = probe(&due).await;
                group.probed(steady_ms(), &due, good);
            });
        }
    }
}

/// When a name is looked up.
#[derive(Clone, Copy)]
enum Due {
    At(u64),
    UnderWay,
}

fn begin_look_ups(
    task: &Task,
    room: &Rc<Semaphore>,
    names: &mut HashMap<ServerAddress, Rc<std::cell::Cell<Due>>>,
) {
    let wanted: Vec<ServerAddress> = task.groups.iter().flat_map(|group| group.names()).collect();
    names.retain(|place, _| wanted.contains(place));
    for place in wanted {
        let due = names.entry(place.clone()).or_insert_with(|| Rc::new(Due::At(0).into()));
        if !matches!(due.get(), Due::At(at) if at <= steady_ms()) {
            continue;
        }
        due.set(Due::UnderWay);
        let (due, room, task) = (Rc::clone(due), Rc::clone(room), task.clone());
        tokio::task::spawn_local(async move {
            let _room = room.acquire().await;
            let pause = look_up(place, task).await;
            let pause = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
            due.set(Due::At(steady_ms().saturating_add(pause)));
        });
    }
}

/// Looks up one name for all groups that have it. Returns after which time to look it up again.
async fn look_up(place: ServerAddress, task: Task) -> Duration {
    let ServerAddress::Name { host, port } = &place else { return Duration::MAX };
    match resolve(host, &task.settings).await {
        Ok(resolved) => {
            let addresses: Vec<SocketAddr> =
                resolved.addresses.iter().map(|address| SocketAddr::new(*address, *port)).collect();
            for group in &task.groups {
                if group.names().contains(&place) {
                    group.resolved(&place, &addresses, steady_ms());
                }
            }
            resolved.ttl
        }
        Err(error) => {
            tracing::warn!(name = host, %error, "cannot look up the addresses of a server");
            task.settings.retry
        }
    }
}

#[cfg(test)]
mod tests;
