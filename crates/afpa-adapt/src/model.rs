//! A configuration of AFPA, as far as nginx's lead to one. Settings are lines of TOML already.

/// The line that closes a place to everybody.
pub(crate) const NOBODY: &str = "deny = [\"0.0.0.0/0\", \"::/0\"]";

/// The treatment of requests of a path, under some conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Group {
    /// `extensions` and `if_...`.
    pub(crate) conditions: Vec<String>,
    /// `to`, `root`, `index`, `fallback`, `redirect`, `status` and what goes with them.
    pub(crate) action: Vec<String>,
    /// Access and limits.
    pub(crate) rules: Vec<String>,
    /// `[[...header]]` for requests to servers.
    pub(crate) sent: Vec<Vec<String>>,
    /// `[[...header]]` for answers.
    pub(crate) headers: Vec<Vec<String>>,
    /// `[[...errors]]`.
    pub(crate) errors: Vec<Vec<String>>,
    /// Whether it serves files.
    pub(crate) is_files: bool,
    /// Whether it lists directories.
    pub(crate) is_listing: bool,
    /// Whether not everybody may use it.
    pub(crate) is_guarded: bool,
    /// The regular expression of its location, and whether the case does not matter there.
    pub(crate) pattern: Option<(String, bool)>,
}

impl Group {
    /// An answer without a file or a server.
    pub(crate) fn status(code: u16) -> Self {
        Group { action: vec![format!("status = {code}")], ..Group::default() }
    }

    /// An answer for nobody. The guard holds for every reading of a path, such as a script with more behind its name.
    pub(crate) fn closed() -> Self {
        Group { rules: vec![NOBODY.to_owned()], ..Group::status(403) }
    }

    /// The same answer, guarded if it is the answer of a guard.
    pub(crate) fn guarded_if_forbidden(mut self) -> Self {
        if self.action.first().is_some_and(|line| line == "status = 403") && !self.is_closed() {
            self.rules.push(NOBODY.to_owned());
        }
        self
    }

    /// Whether it is guarded against everybody.
    pub(crate) fn is_closed(&self) -> bool {
        self.rules.iter().any(|line| line == NOBODY)
    }

    /// Whether it answers with an error.
    pub(crate) fn refuses(&self) -> bool {
        let is_error =
            |line: &String| line.starts_with("status = 4") || line.starts_with("status = 5");
        self.action.first().is_some_and(is_error)
    }

    /// Whether nothing but its action counts.
    pub(crate) fn is_bare(&self) -> bool {
        self.conditions.is_empty()
            && self.rules.is_empty()
            && self.headers.is_empty()
            && self.sent.is_empty()
            && self.errors.is_empty()
    }
}

/// A `[[site.path]]`; the last group has no conditions.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) prefix: String,
    pub(crate) exact: bool,
    pub(crate) groups: Vec<Group>,
}

/// A `[[site]]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Site {
    pub(crate) comment: String,
    /// Lines of the section itself.
    pub(crate) lines: Vec<String>,
    /// Sections inside of it, with their names.
    pub(crate) sections: Vec<(String, Vec<String>)>,
    pub(crate) paths: Vec<Path>,
}

/// A `[[server_group]]`.
#[derive(Clone, Debug)]
pub(crate) struct ServerGroup {
    pub(crate) name: String,
    /// Everything but the name.
    pub(crate) body: String,
}

/// A whole configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Output {
    /// Sections of the process, with their names, in order.
    pub(crate) sections: Vec<(&'static str, Vec<String>)>,
    pub(crate) groups: Vec<ServerGroup>,
    /// Chain and key.
    pub(crate) certificates: Vec<(String, String)>,
    pub(crate) sites: Vec<Site>,
}

impl Output {
    /// Adds a line to a section, once.
    pub(crate) fn line(&mut self, section: &'static str, line: String) {
        let found = self.sections.iter_mut().find(|(name, _)| *name == section);
        match found {
            Some((_, lines)) if lines.contains(&line) => {}
            Some((_, lines)) => lines.push(line),
            None => self.sections.push((section, vec![line])),
        }
    }
}
