//! `[[site.errors]]`, and the same of paths and content groups: pages of the operator's own for errors.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use afpa_http::Status;

use crate::finding::Location;
use crate::items::Item;
use crate::reader::Reader;
use crate::rules::{self, Statuses};
use crate::settings::Instance;
use crate::units::Unfit;
use crate::whole_file::read_whole;

/// A `[[site.errors]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorPage {
    /// The first and the last status of each range; none: all errors.
    pub statuses: Vec<(u16, u16)>,
    /// The file; `{status}` stands for the code.
    pub file: Option<PathBuf>,
    /// The server group, or server, that gives the page.
    pub to: Option<String>,
    /// The path that it is asked for; `{status}` stands for the code.
    pub path: String,
    /// The status of the answer; `None`: that of the error.
    pub answer: Option<ErrorAnswer>,
    /// Whether the page also takes the place of errors that servers answer with.
    pub intercept: bool,
    /// The name of its section.
    pub section: &'static str,
    /// Which of that name.
    pub instance: Instance,
    /// Where it begins.
    pub location: Location,
}

/// The status that takes the place of an error's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorAnswer(pub Status);

impl fmt::Display for ErrorAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.code().fmt(f)
    }
}

/// The names of the section at the levels of sites, paths and content groups.
pub(crate) const ERRORS: [&str; 3] =
    ["site.errors", "site.path.errors", "site.path.content.errors"];

/// The part of a name that stands for the code.
const STATUS: &str = "{status}";

/// Bytes of the longest page.
pub const LONGEST_ERROR_PAGE: usize = 64 << 10;

impl ErrorPage {
    /// Reads those of this level inside of an item.
    pub(crate) fn read<'i>(
        reader: &mut Reader<'i>,
        section: &'static str,
        item: &Item<'i>,
    ) -> Vec<Self> {
        let items = reader.items(section, Some(item));
        items.into_iter().map(|item| Self::read_one(reader, &item)).collect()
    }

    fn read_one<'i>(reader: &mut Reader<'i>, item: &Item<'i>) -> Self {
        let mut s = reader.at(item);
        let statuses = s.texts_or_counts("status", "statuses and classes", rules::error_statuses);
        let path = "/{status}.html".to_owned();
        Self {
            statuses: statuses.into_iter().map(|Statuses(first, last)| (first, last)).collect(),
            file: s.optional_path("file"),
            to: s.text_or("to", "server group or server", "none", rules::destination),
            path: s.text("path", "URL path", path, rules::page_path),
            answer: s.text_or_count("answer", "status", "same", answer),
            intercept: s.flag("intercept", false),
            section: item.path,
            instance: item.instance,
            location: item.location.clone(),
        }
    }

    /// The ranges of statuses, those with fewer statuses first: the page of a status goes before that of its class.
    pub fn ranges(&self) -> Vec<(u16, u16)> {
        match &self.statuses[..] {
            [] => vec![(400, 599)],
            some => some.to_vec(),
        }
    }

    /// The files, each with its statuses. Of a class with `{status}` only those that exist.
    pub fn files(&self) -> Vec<((u16, u16), PathBuf)> {
        let Some(file) = &self.file else { return Vec::new() };
        let name = file.to_string_lossy();
        if !name.contains(STATUS) {
            return self.ranges().into_iter().map(|range| (range, file.clone())).collect();
        }
        let mut files = Vec::new();
        for (first, last) in self.ranges() {
            for code in first..=last {
                let path = PathBuf::from(name.replace(STATUS, &code.to_string()));
                if first == last || path.exists() {
                    files.push(((code, code), path));
                }
            }
        }
        files
    }
}

fn answer(text: &str) -> Result<ErrorAnswer, Unfit> {
    let status = text.parse::<u16>().ok().filter(|_| text.len() == 3).and_then(Status::new);
    // 205 has no content, and others need a field of their own.
    let fits =
        |code: u16| matches!(code, 200..=204 | 400..=599) && ![401, 405, 407].contains(&code);
    status.filter(|status| fits(status.code())).map(ErrorAnswer).ok_or_else(|| {
        let cause = format!("\"{text}\" is no status that an error page can have");
        Unfit::new(cause, "write 200, another error as 404, or leave it out")
    })
}

/// Reads the whole file of a page.
///
/// # Errors
/// As `File::open`, and for a directory, a device, or a file that is too long.
pub fn read_error_page(path: &Path) -> io::Result<Vec<u8>> {
    read_whole(path, LONGEST_ERROR_PAGE)
}
