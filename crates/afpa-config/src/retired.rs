//! Settings that there were once: the table says what became of each. A file that has one is refused with that, so that
//! nobody believes in a value that has no effect. A value that another setting has as well takes effect there, with a warning.

use crate::document::{Table, Value};
use crate::finding::{Finding, Location};

/// The fate of a setting.
pub(crate) enum Now {
    /// It has this value for everybody, for this reason.
    Constant(&'static str, &'static str),
    /// Another setting says it: its name, and a line that does.
    Called(&'static str, &'static str),
}

use Now::{Called, Constant};

/// Section, name, fate; in the order of sections.
#[rustfmt::skip]
pub(crate) const RETIRED: &[(&str, &str, Now)] = &[
    ("limits", "request_line", Constant("a quarter of `head`", "one number bounds a request head")),
    ("limits", "fields", Constant("100", "`head` bounds the memory of a head, and no browser sends half as many")),
    ("limits", "pipelined", Constant("128", "the answers to further requests leave with the next write")),
    ("limits", "least_rate", Constant("240 bytes a second", "the slowest modem is faster; [timeouts] say how long a client may rest")),
    ("limits", "counted_request_sets", Constant("1000", "a monitoring system that reads more is slowed down by them")),
    ("limits", "long_sends", Constant("1MiB", "short responses wait for less than a millisecond")),
    ("http2", "connection_window", Constant("four times `stream_window`", "it follows from the window of a stream")),
    ("http2", "field_block", Constant("twice `head` of [limits], at least 64KiB", "`head` bounds the fields of a request")),
    ("http2", "continuations", Constant("8, and more only for a `head` above 32KiB", "a flood of them is an attack")),
    ("http2", "resets_burst", Constant("256", "no client comes near it that does not attack")),
    ("http2", "resets_per_second", Constant("32", "no client comes near it that does not attack")),
    ("http2", "overhead_burst", Constant("1024", "no client comes near it that does not attack")),
    ("http2", "overhead_per_second", Constant("128", "no client comes near it that does not attack")),
    ("police", "ipv4_bits", Constant("32", "an address is a client")),
    ("police", "ipv6_bits", Constant("64", "a host often has a whole /64, and all limits count by it")),
    ("cache", "max_object", Constant("a tenth of `pinned_limit`", "no object may eject all others")),
    ("cache", "objects", Constant("1000000", "`pinned_limit` bounds their memory")),
    ("cache", "tables_limit", Constant("a fifth of `pinned_limit`", "the tables grow with the files that are kept")),
    ("cache", "kept_percent", Constant("50", "half of the room stays for files that no hint names")),
    ("shared_cache", "objects", Constant("1000000", "`limit` bounds their memory")),
    ("coherency", "max_watches", Constant("65536", "`unwatched_max_age` covers the directories beyond")),
    ("fast_path", "objects", Constant("one for each 5 KiB of `memory`", "`memory` bounds them")),
    ("fast_path", "last_answer_max", Constant("34KiB, or `answer_max` where that is more", "user mode is faster with longer ones")),
    ("fast_path", "retired", Constant("a quarter of `memory`", "it is a share of `memory`")),
    ("fast_path", "transfers", Constant("4096", "they fill a link of 10 Gbit/s")),
    ("fast_path", "flows", Constant("65536, or `connections` of [limits] where that is more", "it is a table of connections")),
    ("fast_path", "bypass_after", Constant("64", "from one hit in ten requests on the kernel pays")),
    ("fast_path", "self_check", Constant("4096", "the comparisons are no load, and find a fault within minutes")),
    ("fast_path", "firewall_interval", Constant("1s", "a ban ends answers on open connections within two of these; `connections = \"everyone\"` asks no firewall")),
    ("fast_path", "socketless", Called("connections", "connections = \"known\" for true, \"kernel\" for false")),
    ("fast_path", "admission", Called("connections", "connections = \"known\" for \"recent\", else \"flood\" or \"everyone\"")),
    ("fast_path", "flood_syns", Constant("10000", "the kernel's TCP takes a twentieth of a core for as many")),
    ("compression", "queue", Constant("1024", "a file that finds no place waits for its next request")),
    ("log", "access_queue", Constant("1MiB", "it bridges a second in which the disk takes nothing")),
    ("resolver", "attempts", Constant("2", "a name server that loses two questions does not work")),
    ("resolver", "least_ttl", Constant("1s", "a shorter one would mean a question for each request")),
    ("resolver", "retry", Constant("5s", "the old addresses are used meanwhile")),
    ("server_group", "load_bound", Constant("125", "it is the value that the method was measured with")),
    ("server_group.health", "last_resort", Constant("1s", "a request a second harms no server, and finds one that is back")),
    ("server_group.errors", "requests", Constant("20", "fewer would condemn a server for a single error")),
    ("server_group.errors", "within", Constant("10s", "older ones say nothing about now")),
    ("server_group.errors", "most_ejected", Constant("50", "where most servers fail, none of them is the cause")),
    ("server_group.streams", "field_block", Constant("twice `head` of [server_group.connections], at least 64KiB", "`head` bounds the fields of a response")),
    ("server_group.streams", "continuations", Constant("8, and more only for a `head` above 32KiB", "no server needs as many")),
    ("server_group.streams", "overhead_burst", Constant("1024", "no server comes near it that works")),
    ("server_group.streams", "overhead_per_second", Constant("128", "no server comes near it that works")),
    ("tls", "handshake_timeout", Called("head` of `[timeouts]", "head = \"10s\" under [timeouts]")),
    ("tls", "handshakes", Constant("2000, or a fifth of `connections` of [limits] where that is more", "it follows from the connections")),
    ("tls", "handshakes_per_client", Constant("200, or a tenth of `connections_per_client` of [limits] where that is more", "it follows from the connections")),
    ("tls", "reread", Constant("10s", "programs renew certificates weeks ahead")),
    ("tls", "early_data_size", Constant("16KiB", "a request with long cookies fits")),
    ("tls", "early_data_sessions", Constant("20000", "a client whose session was pushed out has a full handshake")),
    ("acme", "on_demand_per_hour", Constant("60", "an authority takes few more of one account")),
    ("site", "includes_size", Constant("1MiB", "an expanded page is one object in memory")),
    ("site.limits", "clients", Constant("65536", "those that are forgotten have been idle for longest")),
    ("site.cache", "pass_for", Constant("2m", "so long a server that forbids to keep an answer is believed")),
    ("site.cache", "heuristic_percent", Constant("10", "RFC 9111, section 4.2.2, calls it typical")),
    ("site.cache", "heuristic_max", Constant("24h", "a guess about more is worth little; `times` says more")),
    ("site.cache", "variants", Constant("32", "it is more than the codings and languages of a page")),
];

/// The error about `key` of `section`, if it was a setting once.
pub(crate) fn finding(section: &str, key: &str, location: &Location) -> Option<Finding> {
    let (.., now) = RETIRED.iter().find(|(of, name, _)| (*of, *name) == (section, key))?;
    let (cause, remedy) = match now {
        Constant(value, reason) => {
            (format!("`{key}` is now a constant ({value}): {reason}"), "remove it".to_owned())
        }
        Called(name, line) => (format!("`{key}` is now called `{name}`"), format!("write {line}")),
    };
    Some(Finding::error(location.clone(), cause, remedy))
}

/// Puts settings under the names that they have now, where their values can be said there. Returns a warning for each.
pub(crate) fn translate(document: &mut Table) -> Vec<Finding> {
    let section = document.iter_mut().find(|(key, _)| key.name == "fast_path");
    let Some(Value::Table(table)) = section.map(|(_, node)| &mut node.value) else {
        return Vec::new();
    };
    if table.iter().any(|(key, _)| key.name == "connections") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (key, node) in table.iter_mut().filter(|(key, _)| key.name == "socketless") {
        let Value::Flag(flag) = node.value else { continue };
        let value = if flag { "known" } else { "kernel" };
        let cause = "`socketless` is now called `connections`".to_owned();
        let remedy = format!("write connections = \"{value}\"");
        findings.push(Finding::warning(Location::File(key.span.clone()), cause, remedy));
        key.name = "connections".to_owned();
        node.value = Value::Text(value.to_owned());
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Connections;

    #[test]
    fn a_value_that_another_setting_has_takes_effect_there() {
        for (line, connections) in
            [("socketless = true", Connections::Known), ("socketless = false", Connections::Kernel)]
        {
            let source =
                Source::new("old.toml", format!("[fast_path]\n{line}\n[[site]]\nroot = \"/\"\n"));
            let loaded = parse_text(source, &Overrides::default(), &Machine::probe()).unwrap();
            assert_eq!(loaded.config.fast_path.connections, connections);
            let told = |finding: &Finding| finding.cause.contains("now called `connections`");
            assert_eq!(loaded.warnings.iter().filter(|finding| told(finding)).count(), 1, "{line}");
        }
        let both =
            "[fast_path]\nsocketless = true\nconnections = \"kernel\"\n[[site]]\nroot = \"/\"\n";
        let source = Source::new("old.toml", both);
        assert!(parse_text(source, &Overrides::default(), &Machine::probe()).is_err());
    }
    use crate::{Machine, Overrides, Source, known, parse_text};

    #[test]
    fn each_old_name_says_what_became_of_it_with_file_line_and_remedy() {
        let settings = known(&Machine::probe());
        for (section, key, now) in RETIRED {
            assert!(settings.get(section, key).is_none(), "{section}.{key} is a setting");
            let parts: Vec<&str> = section.split('.').collect();
            let lists = ["site", "server_group"];
            let table = parts.iter().enumerate().map(|(depth, part)| match depth {
                0 if lists.contains(part) => format!("[[{part}]]\n"),
                _ if depth + 1 == parts.len() => format!("[{}]\n", parts[..=depth].join(".")),
                _ => String::new(),
            });
            let text = format!("{}{key} = 1\n", table.collect::<String>());
            let line = text.lines().count();
            let source = Source::new("old.toml", text);
            let said = parse_text(source, &Overrides::default(), &Machine::probe()).unwrap_err();
            let said = said.to_string();
            let (error, remedy) = match now {
                Constant(value, reason) => {
                    let error = format!("`{key}` is now a constant ({value}): {reason}");
                    (error, "= remove it".to_owned())
                }
                Called(name, line) => {
                    let to = settings.get(section, name).is_some();
                    assert!(to || name.contains('['), "{name} is no setting of [{section}]");
                    (format!("`{key}` is now called `{name}`"), format!("= write {line}"))
                }
            };
            assert!(said.contains(&format!("old.toml:{line}:1: error: {error}\n")), "{said}");
            assert!(said.contains(&remedy) && !said.contains("unknown setting"), "{said}");
        }
    }
}
