//! The measurements that a folder of results has already, so that they are not taken again: the
//! journals of a run that was cut short, or the results of one that had no time for everything.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::results::{Journal, Point, Results, Turn, write_whole};
use crate::whitebox::WhiteBox;
use crate::wish::Wish;

/// The journal of turns.
pub const TURNS: &str = "turns.jsonl";
/// The journal of servers that took part.
pub const SERVERS: &str = "servers.jsonl";
/// The journal of white-box turns.
pub const WHITE_BOX: &str = "white-box.jsonl";
/// The wish that the folder is for.
const WISH: &str = "wish.json";

/// A folder of results when a command comes to it.
#[derive(Debug)]
pub struct ResultsFolder {
    /// The measurements that were taken there.
    pub done: Done,
    /// The report that is there, to be added to.
    pub finished: Option<Results>,
}

/// Measurements that are there, failed ones included.
#[derive(Debug, Default)]
pub struct Done {
    turns: HashMap<Point, HashSet<(String, u32)>>,
    lengths: HashMap<Point, Duration>,
    looks: HashSet<(Point, String)>,
}

impl ResultsFolder {
    /// Looks at a folder for a wish. A run for the same wish is continued, whatever time either had; a
    /// run for another wish is refused. Nothing is written.
    ///
    /// # Errors
    ///
    /// When the folder holds something else, or cannot be read.
    pub fn look(folder: &Path, wish: &Wish) -> Result<Self> {
        let place = folder.display();
        let finished = match folder.join("results.json").exists() {
            true => Some(Results::read(folder)?),
            false => None,
        };
        match fs::read_to_string(folder.join(WISH)) {
            Ok(text) => {
                let kept: Wish = serde_json::from_str(&text)?;
                ensure!(
                    kept.is_but_for_time(wish),
                    "{place} holds a run that was asked for differently: choose another folder, or \
                     the same command"
                );
            }
            Err(_) => {
                ensure!(finished.is_none(), "{place} holds results, but not what was asked for");
            }
        }
        let there = |name: &str| folder.join(name).exists();
        let turns = match &finished {
            Some(results) if !there(TURNS) => results.turns.clone(),
            _ => Journal::read(&folder.join(TURNS))?,
        };
        let looks = match &finished {
            Some(results) if !there(WHITE_BOX) => results.white_box.clone(),
            _ => Journal::read(&folder.join(WHITE_BOX))?,
        };
        Ok(Self { done: Done::of(&turns, &looks), finished })
    }

    /// Makes the folder ready to be measured into.
    ///
    /// # Errors
    ///
    /// When it cannot be written to.
    pub fn begin(&self, folder: &Path, wish: &Wish) -> Result<()> {
        fs::create_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
        let text = serde_json::to_string_pretty(wish)? + "\n";
        write_whole(&folder.join(WISH), text.as_bytes())?;
        self.finished.as_ref().map_or(Ok(()), |results| write_journals(results, folder))
    }
}

/// The newest folder in `parent` with a run for the same wish that was cut short.
pub fn cut_short(parent: &Path, wish: &Wish) -> Option<PathBuf> {
    let folders = fs::read_dir(parent).ok()?.flatten().map(|entry| entry.path());
    let mut unfinished: Vec<PathBuf> = folders
        // They are removed when the report is written.
        .filter(|folder| folder.join(TURNS).exists())
        .filter(|folder| ResultsFolder::look(folder, wish).is_ok())
        .collect();
    // Their names are times.
    unfinished.sort();
    unfinished.pop()
}

/// A finished run's journals went into its results. They are made again, but for those that a
/// command that was cut short has added to since.
fn write_journals(results: &Results, folder: &Path) -> Result<()> {
    for (name, text) in [
        (TURNS, lines(&results.turns)?),
        (SERVERS, lines(&results.servers)?),
        (WHITE_BOX, lines(&results.white_box)?),
    ] {
        let path = folder.join(name);
        if !path.exists() {
            write_whole(&path, text.as_bytes())?;
        }
    }
    Ok(())
}

fn lines<T: Serialize>(entries: &[T]) -> Result<String> {
    entries.iter().map(|entry| Ok(serde_json::to_string(entry)? + "\n")).collect()
}

/// Removes the journals of a run that has ended: `results.json` has their entries.
pub fn remove_journals(folder: &Path) {
    for name in [TURNS, SERVERS, WHITE_BOX] {
        let _ = fs::remove_file(folder.join(name));
    }
}

impl Done {
    /// Of all that was measured.
    pub fn of(turns: &[Turn], looks: &[WhiteBox]) -> Self {
        let mut done = Self::default();
        for turn in turns {
            let who = (turn.server.clone(), turn.round);
            done.turns.entry(turn.point.clone()).or_default().insert(who);
            // A turn that failed at once tells no length.
            if turn.measured.seconds > 0.0 {
                let length = Duration::from_secs_f64(turn.measured.seconds);
                done.lengths.entry(turn.point.clone()).or_insert(length);
            }
        }
        let looks = looks.iter().map(|look| (look.point.clone(), look.server.clone()));
        Self { looks: looks.collect(), ..done }
    }

    /// Has this been measured?
    pub fn has(&self, point: &Point, server: &str, round: u32) -> bool {
        let there = self.turns.get(point);
        there.is_some_and(|turns| turns.contains(&(server.to_owned(), round)))
    }

    /// Has this been looked into?
    pub fn has_look(&self, point: &Point, server: &str) -> bool {
        self.looks.contains(&(point.clone(), server.to_owned()))
    }

    /// How long measurements of a point took, if there are any: the others shall take as long.
    pub fn length(&self, point: &Point) -> Option<Duration> {
        self.lengths.get(point).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::Preset;
    use crate::choice::tests::wish;
    use crate::summary::tests::results;

    /// The steps of a command before it measures.
    fn open(folder: &Path, wish: &Wish) -> ResultsFolder {
        let kept = ResultsFolder::look(folder, wish).unwrap();
        kept.begin(folder, wish).unwrap();
        kept
    }

    #[test]
    fn a_finished_run_is_gone_on_with_for_the_same_wish_alone() {
        let folder = tempfile::tempdir().unwrap();
        let first = Wish { within: Some(Duration::from_secs(60)), ..wish(Preset::Full) };
        let kept = open(folder.path(), &first);
        assert!(kept.finished.is_none() && kept.done.turns.is_empty());
        let measured = results(&[("afpa", &[10.0, 11.0])]);
        measured.write(folder.path()).unwrap();

        let longer = Wish { within: Some(Duration::from_secs(90)), ..wish(Preset::Full) };
        let kept = ResultsFolder::look(folder.path(), &longer).unwrap();
        let point = &measured.turns[0].point;
        assert!(kept.done.has(point, "afpa", 2) && !kept.done.has(point, "afpa", 3));
        assert!(!kept.done.has(point, "nginx", 1));
        assert_eq!(kept.done.length(point), Some(Duration::from_secs(1)));
        assert_eq!(kept.finished.unwrap().turns.len(), 2);

        let other = Wish { rounds: 7, ..wish(Preset::Full) };
        let error = ResultsFolder::look(folder.path(), &other).unwrap_err().to_string();
        assert!(error.contains("asked for differently"), "{error}");
    }

    #[test]
    fn what_was_added_before_a_command_was_cut_short_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        open(folder.path(), &wish(Preset::Full));
        let mut measured = results(&[("afpa", &[10.0, 11.0])]);
        measured.write(folder.path()).unwrap();
        open(folder.path(), &wish(Preset::Full));
        let mut journal: Journal<Turn> = Journal::open(&folder.path().join(TURNS)).unwrap();
        assert_eq!(journal.found.len(), 2);
        measured.turns[1].round = 3;
        journal.add(&measured.turns[1]).unwrap();
        let kept = open(folder.path(), &wish(Preset::Full));
        let rounds = |round| kept.done.has(&measured.turns[0].point, "afpa", round);
        assert_eq!([1, 2, 3, 4].map(rounds), [true, true, true, false]);
        remove_journals(folder.path());
        assert!(!folder.path().join(TURNS).exists());
    }

    #[test]
    fn a_run_that_was_cut_short_is_found_again() {
        let parent = tempfile::tempdir().unwrap();
        let (full, quick) = (wish(Preset::Full), wish(Preset::Quick));
        assert_eq!(cut_short(parent.path(), &full), None);
        let begin = |name: &str, wish: &Wish| {
            let folder = parent.path().join(name);
            open(&folder, wish);
            Journal::<Turn>::open(&folder.join(TURNS)).unwrap();
            folder
        };
        let [older, newer] =
            ["2026-11-28-100000", "2026-11-29-100000"].map(|name| begin(name, &full));
        begin("2026-11-30-100000", &quick);
        let longer = Wish { within: Some(Duration::from_secs(90)), ..wish(Preset::Full) };
        assert_eq!(cut_short(parent.path(), &longer), Some(newer.clone()));
        results(&[("afpa", &[10.0])]).write(&newer).unwrap();
        assert_eq!(cut_short(parent.path(), &full), Some(newer.clone()), "its report is missing");
        remove_journals(&newer);
        assert_eq!(cut_short(parent.path(), &full), Some(older));
    }

    #[test]
    fn results_without_a_wish_are_not_added_to() {
        let folder = tempfile::tempdir().unwrap();
        results(&[("afpa", &[10.0])]).write(folder.path()).unwrap();
        assert!(ResultsFolder::look(folder.path(), &wish(Preset::Quick)).is_err());
        assert!(ResultsFolder::look(&folder.path().join("none"), &wish(Preset::Quick)).is_ok());
    }
}
