//! Prints the statistics of a running process as tables.
//!
//! The numbers come as JSON objects in objects. Units follow from names: `_bytes` is a size, `_us`
//! and `_seconds` are times. `hits` and `misses` of one object give a ratio. Lists of objects
//! become tables with a column for each name, so that numbers of workers can be compared.

pub(super) mod digest;

use std::fmt::Write as _;

use serde_json::{Map, Value};

use afpa_config::human_size;

/// Sections with aligned names and values.
pub(super) fn table(numbers: &Value) -> String {
    let mut text = String::new();
    match numbers {
        Value::Object(object) => section(&mut text, "", object),
        other => text.push_str(&cell("", other)),
    }
    text.trim_start_matches('\n').to_owned()
}

/// Plain values come first, so that they do not look as if they belonged to an inner section.
fn section(text: &mut String, name: &str, object: &Map<String, Value>) {
    let rows = rows(object);
    if !name.is_empty() && !rows.is_empty() {
        let _ = writeln!(text, "\n{}", title(name));
    }
    let label_width = rows.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
    let value_width = rows.iter().map(|(_, value)| value.chars().count()).max().unwrap_or(0);
    for (label, value) in rows {
        let _ = writeln!(text, "  {label:<label_width$}  {value:>value_width$}");
    }
    for (key, value) in object {
        let inner = if name.is_empty() { key.clone() } else { format!("{name} {key}") };
        match value {
            Value::Object(object) => section(text, &inner, object),
            Value::Array(items) => list(text, &inner, items),
            _ => {}
        }
    }
}

fn rows(object: &Map<String, Value>) -> Vec<(String, String)> {
    let plain = object.iter().filter(|(_, value)| !value.is_object() && !value.is_array());
    let mut rows: Vec<_> = plain.map(|(key, value)| (label(key), cell(key, value))).collect();
    if let Some(ratio) = hit_ratio(object) {
        rows.push(("hit ratio".to_owned(), ratio));
    }
    rows
}

fn list(text: &mut String, name: &str, items: &[Value]) {
    if items.is_empty() {
        return;
    }
    let objects: Vec<&Map<String, Value>> = items.iter().filter_map(Value::as_object).collect();
    let Some(first) = objects.first().filter(|_| objects.len() == items.len()) else {
        let cells: Vec<String> = items.iter().map(|item| cell(name, item)).collect();
        let _ = writeln!(text, "\n{}\n  {}", title(name), cells.join(", "));
        return;
    };
    let keys: Vec<&String> = first.keys().collect();
    let heads: Vec<String> = keys.iter().map(|key| label(key)).collect();
    let lines: Vec<Vec<String>> = objects
        .iter()
        .map(|object| {
            keys.iter().map(|key| cell(key, object.get(*key).unwrap_or(&Value::Null))).collect()
        })
        .collect();
    let _ = writeln!(text, "\n{}", title(name));
    for line in std::iter::once(&heads).chain(&lines) {
        let mut row = String::new();
        for (column, cell) in line.iter().enumerate() {
            let longest = lines.iter().chain(std::iter::once(&heads));
            let lengths = longest.filter_map(|line| line.get(column)).map(|c| c.chars().count());
            let _ = write!(row, "  {cell:>0$}", lengths.max().unwrap_or(0));
        }
        let _ = writeln!(text, "{row}");
    }
}

fn hit_ratio(object: &Map<String, Value>) -> Option<String> {
    let hits = object.get("hits")?.as_f64()?;
    let misses = object.get("misses")?.as_f64()?;
    let all = hits + misses;
    (all > 0.0).then(|| format!("{:.1} %", 100.0 * hits / all))
}

fn cell(key: &str, value: &Value) -> String {
    match value {
        Value::Number(number) => match number.as_u64() {
            Some(bytes) if is_size(key) => human_size(bytes),
            Some(microseconds) if key.ends_with("_us") => duration(microseconds as f64 / 1e6),
            Some(seconds) if key.ends_with("_seconds") => duration(seconds as f64),
            Some(name) if key == "pid" => name.to_string(),
            Some(count) => grouped(count),
            None => match number.as_f64() {
                Some(seconds) if key.ends_with("_seconds") => duration(seconds),
                _ => number.to_string(),
            },
        },
        Value::String(text) => printable(text),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Null => "-".to_owned(),
        Value::Array(_) | Value::Object(_) => printable(&value.to_string()),
    }
}

fn is_size(key: &str) -> bool {
    key == "bytes" || key.ends_with("_bytes")
}

/// The name without its unit.
fn label(key: &str) -> String {
    let bare = ["_bytes", "_us", "_seconds"].iter().find_map(|unit| key.strip_suffix(unit));
    printable(&bare.unwrap_or(key).replace('_', " "))
}

fn title(name: &str) -> String {
    let spaced = printable(&name.replace('_', " "));
    let mut characters = spaced.chars();
    characters
        .next()
        .map_or(String::new(), |first| first.to_uppercase().chain(characters).collect())
}

/// Names of clients and files may hold anything; a terminal gets no control characters.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

fn duration(seconds: f64) -> String {
    let whole = seconds as u64;
    match whole {
        0 if seconds == 0.0 => "0 s".to_owned(),
        0 if seconds < 0.001 => format!("{:.0} us", seconds * 1e6),
        0 => format!("{:.1} ms", seconds * 1e3),
        1..60 => format!("{seconds:.1} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        3600..86_400 => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
        _ => format!("{} d {} h", whole / 86_400, whole % 86_400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units_and_stand_in_columns() {
        let numbers = serde_json::json!({
            "version": "0.1.0",
            "uptime_seconds": 93_784,
            "cache": {
                "hits": 1_999, "misses": 1, "pinned_bytes": 1_572_864, "locked": true,
                "policy": { "name": "afpa-lru" },
            },
            "workers": [
                { "id": 0, "requests": 1500, "busy_us": 2500 },
                { "id": 1, "requests": 7, "busy_us": 12 },
            ],
        });
        let expected = "  version    0.1.0
  uptime   1 d 2 h

Cache
  hits         1,999
  misses           1
  pinned     1.5 MiB
  locked         yes
  hit ratio  100.0 %

Cache policy
  name  afpa-lru

Workers
  id  requests    busy
   0     1,500  2.5 ms
   1         7   12 us
";
        let table = table(&numbers);
        assert_eq!(table, expected, "\n{table}");
    }

    #[test]
    fn an_empty_list_has_no_title() {
        assert_eq!(table(&serde_json::json!({ "servers": [] })), "");
    }

    #[test]
    fn no_requests_have_no_ratio() {
        let numbers = serde_json::json!({ "cache": { "hits": 0, "misses": 0 } });
        assert!(!table(&numbers).contains("ratio"));
    }

    #[test]
    fn a_terminal_gets_no_control_characters() {
        let text = table(&serde_json::json!({ "name": "a\u{1b}[31mb" }));
        assert_eq!(text, "  name  a\u{fffd}[31mb\n");
    }

    #[test]
    fn times_are_rounded_for_people() {
        for (seconds, text) in [
            (0.0, "0 s"),
            (0.000_012, "12 us"),
            (0.25, "250.0 ms"),
            (1.5, "1.5 s"),
            (61.0, "1 min 1 s"),
            (3_660.0, "1 h 1 min"),
            (90_000.0, "1 d 1 h"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }
}
