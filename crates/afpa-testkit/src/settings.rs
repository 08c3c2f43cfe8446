//! The settings that tests change, by their meaning. The spelling of the configuration file is known
//! here and nowhere else in the tests.

use std::{collections::BTreeMap, fmt::Write, time::Duration};

/// Content of a configuration file.
#[derive(Clone, Debug, Default)]
pub struct Settings(BTreeMap<String, String>);

impl Settings {
    /// Any setting: a dotted key and a value as TOML has it. Keys that begin with `site.` are those
    /// of the one site.
    pub fn set(&mut self, key: &str, value: impl ToString) -> &mut Self {
        self.0.insert(key.to_owned(), value.to_string());
        self
    }

    /// Time for a whole request head from its first byte; then 408.
    pub fn head_time(&mut self, time: Duration) -> &mut Self {
        self.set("timeouts.head", duration(time))
    }

    /// Time between two pieces of a request body; then 408.
    pub fn body_time(&mut self, time: Duration) -> &mut Self {
        self.set("timeouts.body", duration(time))
    }

    /// Time a connection may rest between requests; then it is closed in silence.
    pub fn idle_time(&mut self, time: Duration) -> &mut Self {
        self.set("timeouts.idle", duration(time))
    }

    /// Time a reader may stand still while a response is being sent; then it is cut off.
    pub fn write_time(&mut self, time: Duration) -> &mut Self {
        self.set("timeouts.write", duration(time))
    }

    /// Connections in total; 503 beyond.
    pub fn connections(&mut self, count: usize) -> &mut Self {
        self.set("limits.connections", count)
    }

    /// Connections of one client address; 503 beyond.
    pub fn connections_per_client(&mut self, count: usize) -> &mut Self {
        self.set("limits.connections_per_client", count)
    }

    /// Whether nothing was changed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The file's text: dotted keys, one a line, then the site, as TOML has tables last.
    pub fn text(&self) -> String {
        let (mut text, mut site) = (String::new(), String::new());
        for (key, value) in &self.0 {
            match key.strip_prefix("site.") {
                Some(key) => writeln!(site, "{key} = {value}"),
                None => writeln!(text, "{key} = {value}"),
            }
            .expect("writing to a string");
        }
        if !site.is_empty() {
            text += "\n[[site]]\n";
        }
        text + &site
    }
}

/// A time as the configuration file has it.
fn duration(time: Duration) -> String {
    format!("\"{}ms\"", time.as_millis())
}
