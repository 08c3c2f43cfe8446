//! FerretDataset (Kakarla and others, *SCALE*, NSDI 2022): zones of every shape, with questions and the answers of four servers.
//! `AFPA_FERRET` names its folder; it is not part of this tree.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// A valid zone of it.
pub struct FerretZone {
    /// Its number in the dataset.
    pub number: String,
    /// Its name as its SOA record has it, in lower case.
    pub apex: String,
    /// Its file.
    pub text: String,
    /// `Query` has the name and the type of each question, `Expected Response` the answers of the servers.
    pub questions: Vec<Value>,
}

impl FerretZone {
    /// All of them in order, read one by one; `None`: `AFPA_FERRET` names no folder.
    pub fn all() -> Option<impl Iterator<Item = Self>> {
        let folder = std::env::var_os("AFPA_FERRET")?;
        let folder = Path::new(&folder).join("ValidZoneFileTests");
        let files = fs::read_dir(folder.join("ZoneFiles")).expect("a folder").flatten();
        let mut numbers: Vec<String> =
            files.filter_map(|file| Some(file.path().file_stem()?.to_str()?.to_owned())).collect();
        numbers.sort_unstable();
        Some(numbers.into_iter().map(move |number| Self::read(&folder, number)))
    }

    fn read(folder: &Path, number: String) -> Self {
        let read = |path: String| fs::read_to_string(folder.join(path)).expect("a file");
        let text = read(format!("ZoneFiles/{number}.txt"));
        let told = read(format!("ExpectedResponses/{number}.json"));
        let questions = serde_json::from_str(&told).expect("a list");
        let soa = text.lines().find(|line| line.contains(" SOA") || line.contains("\tSOA"));
        let apex = soa.and_then(|line| line.split_whitespace().next()).expect("a SOA record");
        let apex = apex.to_lowercase();
        Self { number, apex, text, questions }
    }
}
