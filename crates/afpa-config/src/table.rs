//! The resolved configuration as a table, as `afpa check` prints it.

use std::fmt::Write as _;

use crate::Loaded;
use crate::finding::Location;
use crate::settings::{INTERNALS, Setting, heading};

impl Loaded {
    /// Section by section: name, value, and where it was set.
    ///
    /// ```text
    /// [limits]
    ///   connections             16384                 default
    ///   head                    "16KiB"               line 4
    /// ```
    pub fn table(&self) -> String {
        // There may be thousands of paths: of these, only settings that were given are shown.
        let said = |row: &&Setting| {
            row.instance == [0; 3]
                && !row.section.starts_with("site.path")
                && row.section != INTERNALS
                || row.location != Location::Nowhere
        };
        let rows: Vec<&Setting> = self.settings.iter().filter(said).collect();
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

    /// Warnings as `afpa check` and the start-up print them; empty if there are none.
    pub fn rendered_warnings(&self) -> String {
        self.source.render(&self.warnings)
    }

    fn row(&self, setting: &Setting, widths: &Widths) -> String {
        let origin = match &setting.location {
            Location::File(span) => format!("line {}", self.source.line(span.start)),
            Location::Option(option) => (*option).to_owned(),
            Location::Nowhere => "default".to_owned(),
        };
        let (key, value) = (setting.key, shown_value(setting));
        format!("  {key:<0$}  {value:<1$}  {origin}", widths.key, widths.value)
    }
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
