//! Looks inside: turns of their own with counters and with samples, whose rates are used nowhere.

use afpa_generator::Load;
use afpa_netlab::Bed;
use anyhow::{Result, anyhow, ensure};

use super::{Brought, Run, Watch, wrong};
use crate::plan::{Group, Session, Task};
use crate::results::Journal;
use crate::results_folder;
use crate::servers::Running;
use crate::whitebox::{self, Counting, Profile, Sampling, WhiteBox};

impl Run<'_> {
    /// White-box turns of every server of a group: each of `tasks` once with the counters on, which change
    /// the rate, and once with samples; at a rate that is held, with samples alone.
    ///
    /// # Errors
    ///
    /// When the journal cannot be written, or a signal ends the run.
    pub fn look_inside(
        &self,
        group: &Group,
        watch: &mut dyn Watch,
        brought: &mut Brought,
    ) -> Result<()> {
        let path = self.folder.join(results_folder::WHITE_BOX);
        let mut journal: Journal<WhiteBox> = Journal::open(&path)?;
        brought.white_box = std::mem::take(&mut journal.found);
        for server in &group.servers {
            let session = Session { group, server, round: 1 };
            let missing = |task: &&Task| {
                let point = task.point(&group.bed);
                !brought.white_box.iter().any(|w| w.server == *server && w.point == point)
            };
            let tasks: Vec<&Task> = session.tasks().into_iter().filter(missing).collect();
            if tasks.is_empty() {
                continue;
            }
            watch.say(&format!("inside {server}, {}: {} loads", group.title, tasks.len()));
            let held = self.with_server(&session, |bed, running, _| {
                for task in &tasks {
                    ensure!(!self.is_interrupted(), "interrupted");
                    match self.look(task, bed, running, &session) {
                        Ok(found) => {
                            journal.add(&found)?;
                            brought.white_box.push(found);
                        }
                        // The next load may be possible.
                        Err(error) => {
                            let load = &task.workload.name;
                            watch.say(&format!("inside {server}, {load}: {error:#}"));
                        }
                    }
                }
                Ok(())
            });
            match held {
                Err(error) if self.is_interrupted() => return Err(error),
                Err(error) => watch.say(&format!("inside {server}: {error:#}")),
                Ok(_) => {}
            }
        }
        Ok(())
    }

    fn look(
        &self,
        task: &Task,
        bed: &Bed,
        running: &Running<'_>,
        session: &Session<'_>,
    ) -> Result<WhiteBox> {
        if task.load.rate.is_some() {
            let profile = self.profile(task, bed, running, session)?;
            let point = task.point(&session.group.bed);
            return Ok(WhiteBox::profiled(&point, session.server, profile));
        }
        let counted = Task {
            load: Load { duration: whitebox::SECONDS, ..task.load.clone() },
            ..task.clone()
        };
        let found = self.count(&counted, bed, session)?;
        Ok(WhiteBox { profile: Some(self.profile(task, bed, running, session)?), ..found })
    }

    fn profile(
        &self,
        task: &Task,
        bed: &Bed,
        running: &Running<'_>,
        session: &Session<'_>,
    ) -> Result<Profile> {
        let mut sampling = Sampling::prepare(session.group.bed.server_core, self.work)?;
        let mut told = Vec::with_capacity(2);
        let measured = self.load(task, bed, session, &mut || {
            let order = if told.is_empty() { sampling.begin() } else { sampling.pause() };
            told.push(order);
        })?;
        if let Some(failure) = wrong(&measured) {
            return Err(anyhow!(failure));
        }
        told.into_iter().collect::<Result<Vec<()>>>()?;
        sampling.end(&measured, &running.processes())
    }

    fn count(&self, task: &Task, bed: &Bed, session: &Session<'_>) -> Result<WhiteBox> {
        let plan = &session.group.bed;
        let mut counting = Counting::prepare(plan.server_core, self.work)?;
        let mut told = Vec::with_capacity(2);
        let measured = self.load(task, bed, session, &mut || {
            let order = if told.is_empty() { counting.begin() } else { counting.pause() };
            told.push(order);
        })?;
        if let Some(failure) = wrong(&measured) {
            return Err(anyhow!(failure));
        }
        told.into_iter().collect::<Result<Vec<()>>>()?;
        Ok(counting.end()?.each(&task.point(plan), session.server, &measured))
    }
}
