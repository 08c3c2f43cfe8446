//! The resolved configuration as a table, as `afpa check` prints it.

use std::fmt::Write as _;

use crate::Loaded;
use crate::finding::Location;
use crate::settings::{INTERNALS, Setting, heading, quote};
use crate::written;

impl Loaded {
    /// Section by section: name, value, and where it was set.
    ///
    /// ```text
    /// [limits]
    ///   connections             16384                 default
    ///   head                    "16KiB"               line 4
    /// ```
    pub fn table(&self) -> String {
        let rows: Vec<&Setting> = self.rows().collect();
        let widths = Widths::of(&rows);
        let mut table = String::new();
        for section in rows.chunk_by(|a, b| (a.section, a.instance) == (b.section, b.instance)) {
            let name = section.first().map_or("", |setting| setting.section);
            if !name.is_empty() {
                let _ = writeln!(table, "\n{}", heading(name));
            }
            for setting in section {
                let _ = writeln!(table, "{}", self.row(setting, &widths).trim_end());
            }
        }
        table
    }

    /// The settings in force, a line for each: its value on this machine, and in brackets where that comes from. Of several sections of a name, the number says which.
    ///
    /// ```text
    /// workers = 4 (from the cores: "auto", default)
    /// limits.head = "16KiB" (afpa.toml:4)
    /// cache.pinned_limit = 2.0 GiB (from memory: "25%", afpa.toml:6)
    /// site[1].root = "/srv" (--root)
    /// ```
    pub fn explanation(&self) -> String {
        let line = |row: &Setting| {
            let name = full_name(row);
            let origin = match &row.location {
                Location::File(span) => {
                    let file = self.source.name_at(span.start);
                    format!("{file}:{}", self.source.line(span.start))
                }
                Location::Option(option) => (*option).to_owned(),
                Location::Nowhere => "default".to_owned(),
            };
            match (derived_from(row), row.note.as_str()) {
                (Some(source), note) => {
                    format!("{name} = {note} (from {source}: {}, {origin})\n", row.value)
                }
                (None, "") => format!("{name} = {} ({origin})\n", row.value),
                (None, note) => format!("{name} = {} ({origin})\n", quote(note)),
            }
        };
        self.rows().map(line).collect()
    }

    /// The files as one in TOML. In the place of a value from a file (`${file:...}`), it has the text as it is written.
    pub fn as_one_file(&self) -> String {
        written::as_one_file(&self.written, &self.source, &self.settings)
    }

    /// There may be thousands of paths: of these, only settings that were given are shown.
    fn rows(&self) -> impl Iterator<Item = &Setting> {
        self.settings.iter().filter(|row| {
            row.instance == [0; 4]
                && !row.section.starts_with("site.path")
                && row.section != INTERNALS
                || row.location != Location::Nowhere
        })
    }

    /// Warnings as `afpa check` and the start-up print them; empty if there are none.
    pub fn rendered_warnings(&self) -> String {
        self.source.render(&self.warnings)
    }

    fn row(&self, setting: &Setting, widths: &Widths) -> String {
        let origin = match setting.location {
            Location::Nowhere => "default".to_owned(),
            _ => self.origin(Some(&setting.location)),
        };
        let (key, value) = (setting.key, shown_value(setting));
        format!("  {key:<0$}  {value:<1$}  {origin}", widths.key, widths.value)
    }
}

/// Which part of the machine the value on it follows from.
fn derived_from(setting: &Setting) -> Option<&str> {
    let share = setting.kind.strip_prefix("size, or per cent of ");
    match setting.note.as_str() {
        "" => None,
        _ if setting.key == "workers" => Some("the cores"),
        _ => share,
    }
}

/// `site[2].path[1].to`: the first path of the second site.
fn full_name(setting: &Setting) -> String {
    let mut name = String::new();
    for (depth, part) in setting.section.split('.').filter(|part| !part.is_empty()).enumerate() {
        name += part;
        let path = setting.section.splitn(depth + 2, '.').take(depth + 1).collect::<Vec<_>>();
        if heading(&path.join(".")).starts_with("[[") {
            let number = setting.instance.get(depth).map_or(1, |at| at + 1);
            let _ = write!(name, "[{number}]");
        }
        name.push('.');
    }
    name + setting.key
}

/// The value, and in brackets its result on this machine.
fn shown_value(setting: &Setting) -> String {
    match setting.note.as_str() {
        "" => setting.value.clone(),
        note => format!("{} ({note})", setting.value),
    }
}

struct Widths {
    key: usize,
    value: usize,
}

impl Widths {
    /// Longer values are not aligned, so that the last column stays on the screen.
    const VALUE_LIMIT: usize = 40;

    fn of(rows: &[&Setting]) -> Self {
        let key = rows.iter().map(|row| row.key.len()).max().unwrap_or(0);
        let lengths = rows.iter().map(|row| shown_value(row).chars().count());
        let value = lengths.filter(|length| *length <= Self::VALUE_LIMIT).max().unwrap_or(0);
        Widths { key, value }
    }
}
