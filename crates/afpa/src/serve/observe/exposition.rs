//! The two text formats of metrics, and which of them a client gets.
//!
//! [OpenMetrics 1.0](https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md) is for those
//! that ask for it. Everybody else gets version 0.0.4 of Prometheus's own format, which every tool reads.

use afpa_http::{Request, syntax};

/// A text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exposition {
    Prometheus,
    OpenMetrics,
}

impl Exposition {
    /// The format that `Accept` prefers (RFC 9110 section 12.5.1): of the highest weight, and at equal weight the first.
    /// A client that accepts neither gets Prometheus's, as from other servers.
    pub(crate) fn wanted(request: &Request<'_, '_>) -> Self {
        let accept = request.fields().filter(|(name, _)| name.eq_ignore_ascii_case("accept"));
        let members = accept.flat_map(|(_, value)| syntax::list(value));
        let mut best = (Exposition::Prometheus, 0);
        for (format, weight) in members.filter_map(range) {
            if weight > best.1 {
                best = (format, weight);
            }
        }
        best.0
    }

    /// The value of Content-Type.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Exposition::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Exposition::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// A page of OpenMetrics in this format.
    pub(super) fn of(self, page: String) -> String {
        match self {
            Exposition::Prometheus => prometheus(&page),
            Exposition::OpenMetrics => page,
        }
    }
}

/// The format that a media range names, with its weight in thousandths; `None` if it names neither.
fn range(member: &[u8]) -> Option<(Exposition, u32)> {
    let mut parts = str::from_utf8(member).ok()?.split(';').map(str::trim);
    let kind = parts.next()?.to_ascii_lowercase();
    let (mut weight, mut version) = (1000, None);
    for (name, value) in parts.filter_map(|part| part.split_once('=')) {
        let (name, value) = (name.trim(), value.trim().trim_matches('"'));
        match name.to_ascii_lowercase().as_str() {
            "q" => weight = thousandths(value)?,
            "version" => version = Some(value),
            _ => {}
        }
    }
    match (kind.as_str(), version) {
        ("application/openmetrics-text", None | Some("1.0.0" | "0.0.1")) => {
            Some((Exposition::OpenMetrics, weight))
        }
        ("text/plain", None | Some("0.0.4")) | ("text/*" | "*/*", _) => {
            Some((Exposition::Prometheus, weight))
        }
        _ => None,
    }
}

fn thousandths(weight: &str) -> Option<u32> {
    let weight: f32 = weight.parse().ok().filter(|weight| (0.0..=1.0).contains(weight))?;
    Some((weight * 1000.0) as u32)
}

/// Converts a page to Prometheus's format. There the name of a family is that of its samples: a counter's ends with
/// `_total`. The format has no units and no last line.
fn prometheus(page: &str) -> String {
    let mut text = String::with_capacity(page.len() + page.len() / 16);
    let mut help = None;
    for line in page.lines() {
        if let Some(about) = line.strip_prefix("# HELP ") {
            help = about.split_once(' ');
        } else if let Some(about) = line.strip_prefix("# TYPE ") {
            let Some((name, kind)) = about.split_once(' ') else { continue };
            let suffix = if kind == "counter" { "_total" } else { "" };
            if let Some((_, help)) = help.take().filter(|(of, _)| *of == name) {
                text.push_str(&format!("# HELP {name}{suffix} {help}\n"));
            }
            text.push_str(&format!("# TYPE {name}{suffix} {kind}\n"));
        } else if !line.starts_with('#') {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use afpa_http::{FieldSlots, RequestLimits, request};

    fn wanted(lines: &[&str]) -> Exposition {
        let fields: String = lines.iter().map(|line| format!("Accept: {line}\r\n")).collect();
        let head = format!("GET /metrics HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
        let mut slots = FieldSlots::new();
        let request = request::parse(head.as_bytes(), &mut slots, &RequestLimits::default());
        Exposition::wanted(&request.unwrap().unwrap())
    }

    #[test]
    fn openmetrics_is_for_those_that_prefer_it() {
        use Exposition::{OpenMetrics, Prometheus};
        const OM: &str = "application/openmetrics-text";
        let of_prometheus = format!(
            "{OM};version=1.0.0;q=0.5,{OM};version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
        );
        for (lines, expected) in [
            (&[][..], Prometheus),
            (&["text/plain"], Prometheus),
            (&["*/*"], Prometheus),
            (&["application/json"], Prometheus),
            (&[OM], OpenMetrics),
            (&["Application/OpenMetrics-Text; Version=\"1.0.0\" ; Q=0.1"], OpenMetrics),
            (&[&format!("{OM};version=2.0.0")], Prometheus),
            (&[&format!("{OM};q=0")], Prometheus),
            (&[&format!("{OM};q=x")], Prometheus),
            (&[&format!("{OM};q=0.2, text/plain;q=0.3")], Prometheus),
            (&[&format!("{OM};q=0.3, text/plain;q=0.2")], OpenMetrics),
            (&["text/plain", OM], Prometheus),
            (&[OM, "text/plain"], OpenMetrics),
            (&["text/plain;q=0.5", &format!("{OM};q=0.9")], OpenMetrics),
            (&[&of_prometheus], OpenMetrics),
        ] {
            assert_eq!(wanted(lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn a_page_is_written_in_both_formats() {
        let page = "# HELP a Help.\n# TYPE a counter\na_total 1\n\
            # HELP b_bytes Size.\n# TYPE b_bytes gauge\n# UNIT b_bytes bytes\nb_bytes{x=\"# y\"} 2\n# EOF\n";
        assert_eq!(Exposition::OpenMetrics.of(page.to_owned()), page);
        assert_eq!(
            Exposition::Prometheus.of(page.to_owned()),
            "# HELP a_total Help.\n# TYPE a_total counter\na_total 1\n\
             # HELP b_bytes Size.\n# TYPE b_bytes gauge\nb_bytes{x=\"# y\"} 2\n"
        );
    }
}
