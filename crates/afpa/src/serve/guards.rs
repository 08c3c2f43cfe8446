//! The parts of sites that not everybody may use: reads the users of `basic_auth`, and gives each part its demand.
//! The servers of `forward_auth` are known by their numbers.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use afpa_config::{BasicAuth, Config, ForwardAuth, Guarded, Routes, read_users};
use afpa_framework::{HelperLimits, Helpers};
use afpa_module_http::{
    Global, Guard, Guards, PasswordChecks, PasswordDemand, Places, ServerDemand, reserved,
};
use afpa_router::GroupId;
use afpa_users::Users;
use anyhow::Context as _;

use crate::confine::Confinement;

/// Passwords that may wait for each thread that checks some.
const WAITING: usize = 16;

/// The guards of all sites; `None`: there are none. Users whose file is as before stay known.
///
/// # Errors
/// With the file that cannot be read.
pub(super) fn build(
    config: &Config,
    routes: &Routes,
    confinement: &Confinement,
    previous: &Global,
) -> anyhow::Result<Option<Arc<Guards>>> {
    let Guarded { addresses, passwords, consents } = &routes.guarded;
    let is_open = addresses.demands.is_empty() && passwords.demands.is_empty();
    if is_open && consents.demands.is_empty() {
        return Ok(None);
    }
    let guards = addresses.demands.iter().map(|access| Guard::new(&access.allow, &access.deny));
    let addresses = Places::new(Arc::clone(&addresses.router), guards.collect());
    let demands = demands(&passwords.demands, confinement, previous)?;
    let passwords = Places::new(Arc::clone(&passwords.router), demands);
    let asked = asked(config, &consents.demands);
    let consents = Places::new(Arc::clone(&consents.router), asked);
    let reserved = config.sites.iter().map(|site| reserved(site.copied_fields())).collect();
    Ok(Some(Arc::new(Guards { addresses, passwords, consents, reserved })))
}

/// The servers that are asked for their consent. Equal demands are one, so that no request makes one twice.
fn asked(config: &Config, all: &[ForwardAuth]) -> Vec<Option<Arc<ServerDemand>>> {
    let mut known: Vec<(&ForwardAuth, Arc<ServerDemand>)> = Vec::new();
    let demands = all.iter().map(|auth| {
        let ForwardAuth::Server { to, path, copy } = auth else { return None };
        if let Some((_, demand)) = known.iter().find(|(other, _)| *other == auth) {
            return Some(Arc::clone(demand));
        }
        // The checks have reported a group that does not exist. Without one nothing is let through.
        let group = config.groups.iter().position(|group| group.settings.name == *to);
        let group = GroupId(group.and_then(|at| u32::try_from(at).ok()).unwrap_or(u32::MAX));
        let copy = copy.iter().map(|name| name.as_str().into()).collect();
        let demand = Arc::new(ServerDemand { group, path: path.clone(), copy });
        known.push((auth, Arc::clone(&demand)));
        Some(demand)
    });
    demands.collect()
}

fn demands(
    all: &[BasicAuth],
    confinement: &Confinement,
    previous: &Global,
) -> anyhow::Result<Vec<Option<Arc<PasswordDemand>>>> {
    let mut known: HashMap<&Path, Arc<Users>> = HashMap::new();
    let mut checks = None;
    let mut demands = Vec::new();
    for demand in all {
        let BasicAuth::Users { file, realm } = demand else {
            demands.push(None);
            continue;
        };
        let users = match known.get(file.as_path()) {
            Some(users) => Arc::clone(users),
            None => users(file, previous)?,
        };
        known.insert(file, Arc::clone(&users));
        let checks = match &checks {
            Some(checks) => PasswordChecks::clone(checks),
            None => checks.insert(start(confinement)?).clone(),
        };
        demands.push(Some(Arc::new(PasswordDemand::new(users, checks, realm))));
    }
    Ok(demands)
}

/// The users of a file; those that are there if the file is the same.
fn users(file: &Path, previous: &Global) -> anyhow::Result<Arc<Users>> {
    let bytes =
        read_users(file).with_context(|| format!("cannot read the users of {}", file.display()))?;
    let guards = previous.guards.as_deref();
    let before = guards.into_iter().flat_map(|guards| guards.passwords.demands()).flatten();
    let same = before.map(|demand| &demand.users).find(|users| users.is_of(&bytes));
    if let Some(users) = same {
        return Ok(Arc::clone(users));
    }
    let read = Users::read(&bytes).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("{}: {}", file.display(), faults.join("; "))
    });
    read.map(Arc::new)
}

/// Threads for nothing but passwords: as many as half of the processors, so that the others go on serving. They need no
/// file and no socket.
fn start(confinement: &Confinement) -> anyhow::Result<PasswordChecks> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let threads = (processors / 2).clamp(1, 16);
    let limits = HelperLimits { threads, places: threads * WAITING };
    let confined = confinement.helpers_below([]);
    let pools = Helpers::start(["afpa-password".to_owned()], limits, || confined.begin());
    let pool = pools.context("cannot start a thread")?.pop().context("one pool for one name")?;
    Ok(PasswordChecks::new(pool, limits.places))
}
