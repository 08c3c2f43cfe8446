//! The built-in content of an error, in the form that the client asks for: a page, a problem (RFC 9457), or plain text.

use crate::coding::weight;
use crate::{Request, Status, page, syntax};

/// A form of the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A page for people.
    Html,
    /// A JSON object with `type`, `title`, `status` and `detail` (RFC 9457 section 3).
    Json,
    /// A line of text.
    Plain,
}

impl Form {
    /// In the order in which they are preferred when a client takes all alike.
    const ALL: [Form; 3] = [Form::Html, Form::Json, Form::Plain];

    /// Its media type.
    pub const fn content_type(self) -> &'static str {
        match self {
            Form::Html => page::CONTENT_TYPE,
            Form::Json => "application/problem+json",
            Form::Plain => "text/plain; charset=utf-8",
        }
    }

    /// The names in Accept that mean it.
    const fn names(self) -> &'static [&'static str] {
        match self {
            Form::Html => &["text/html", "application/xhtml+xml"],
            Form::Json => &["application/json", "application/problem+json"],
            Form::Plain => &["text/plain"],
        }
    }

    /// The form that the client prefers (RFC 9110 section 12.5.1): by weight, then the one that is named rather than meant
    /// by `*`, then the one that is named first. Without Accept, and where none is acceptable, a page.
    pub fn of(request: &Request<'_, '_>) -> Form {
        let lines = request.fields().filter(|(name, _)| name.eq_ignore_ascii_case("accept"));
        let mut ranges: Vec<Range<'_>> = Vec::new();
        for (_, value) in lines {
            ranges.extend(syntax::list(value).filter_map(Range::read));
        }
        let mut best = (Form::Html, Rank::default());
        for form in Form::ALL {
            let rank = Rank::of(form, &ranges);
            if rank.weight > 0 && rank.beats(best.1) {
                best = (form, rank);
            }
        }
        best.0
    }

    /// The content for a status, with a sentence of help.
    pub fn content(self, status: Status, sentence: &str) -> Vec<u8> {
        match self {
            Form::Html => page::page(status, sentence),
            Form::Plain => format!("{status}\n{sentence}\n").into_bytes(),
            Form::Json => {
                let (code, detail) = (status.code(), quoted(sentence));
                // The title of `about:blank` is that of the status, and some have none.
                let title = match status.reason() {
                    "" => String::new(),
                    reason => format!("\"title\":{},", quoted(reason)),
                };
                format!(
                    "{{\"type\":\"about:blank\",{title}\"status\":{code},\"detail\":{detail}}}\n"
                )
                .into_bytes()
            }
        }
    }
}

/// A string of JSON (RFC 8259 section 7).
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if control.is_ascii_control() => quoted.push(' '),
            plain => quoted.push(plain),
        }
    }
    quoted.push('"');
    quoted
}

/// A media range of Accept.
struct Range<'b> {
    name: &'b [u8],
    /// In thousandths.
    weight: u16,
}

impl<'b> Range<'b> {
    fn read(member: &'b [u8]) -> Option<Self> {
        let mut parts = member.split(|&byte| byte == b';').map(syntax::trim);
        let name = parts.next().filter(|name| name.contains(&b'/'))?;
        let is_weight =
            |part: &&[u8]| part.get(..2).is_some_and(|begin| begin.eq_ignore_ascii_case(b"q="));
        let weight = parts.find(is_weight).map_or(Some(1000), weight)?;
        Some(Self { name, weight })
    }
}

/// How much a client wants a form.
#[derive(Clone, Copy, Default)]
struct Rank {
    weight: u16,
    /// 3: named, 2: `type/*`, 1: `*/*`.
    named: u8,
    /// The place of its name in the list.
    place: usize,
}

impl Rank {
    /// Of all ranges that mean a form, the most specific one counts.
    fn of(form: Form, ranges: &[Range<'_>]) -> Self {
        let mut rank = Rank::default();
        for (place, range) in ranges.iter().enumerate() {
            let named = form.names().iter().map(|name| specificity(range.name, name)).max();
            let named = named.unwrap_or_default();
            if named > rank.named {
                rank = Rank { weight: range.weight, named, place };
            }
        }
        rank
    }

    fn beats(self, other: Rank) -> bool {
        let worth = |rank: Rank| (rank.weight, rank.named);
        worth(self) > worth(other)
            || worth(self) == worth(other) && self.named == 3 && self.place < other.place
    }
}

fn specificity(range: &[u8], name: &str) -> u8 {
    let kind = name.split_once('/').map_or(name, |(kind, _)| kind);
    let has_kind =
        || range.strip_suffix(b"/*").is_some_and(|own| own.eq_ignore_ascii_case(kind.as_bytes()));
    match range {
        range if range.eq_ignore_ascii_case(name.as_bytes()) => 3,
        b"*/*" => 1,
        _ if has_kind() => 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FieldSlots, RequestLimits, request};

    fn form(lines: &str) -> Form {
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
        let mut slots = FieldSlots::default();
        let parsed = request::parse(head.as_bytes(), &mut slots, &RequestLimits::default());
        Form::of(&parsed.unwrap().unwrap())
    }

    #[test]
    fn the_form_is_the_one_that_the_client_prefers() {
        for (accept, wanted) in [
            ("*/*", Form::Html),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", Form::Html),
            ("application/json", Form::Json),
            ("Application/Problem+JSON", Form::Json),
            ("application/json, text/plain, */*", Form::Json),
            ("text/plain, application/json", Form::Plain),
            ("application/json;q=0.5, text/html", Form::Html),
            ("text/html;q=0.5, application/json;q=0.6", Form::Json),
            ("application/*", Form::Html),
            ("text/plain", Form::Plain),
            ("text/*", Form::Html),
            ("text/*, text/html;q=0", Form::Plain),
            ("text/html;q=0, application/json;q=0.001", Form::Json),
            ("image/png", Form::Html),
            ("application/json;q=0", Form::Html),
            ("application/json;q=2", Form::Html),
            ("application/json;version=1;q=0.9", Form::Json),
            ("", Form::Html),
            (",;,/", Form::Html),
        ] {
            assert_eq!(form(&format!("Accept: {accept}\r\n")), wanted, "{accept}");
        }
        assert_eq!(form(""), Form::Html);
        assert_eq!(form("Accept: image/png\r\nAccept: application/json\r\n"), Form::Json);
    }

    #[test]
    fn a_problem_is_json_whatever_the_sentence_has() {
        let content = Form::Json.content(Status::NOT_FOUND, "a \"b\" \\ c\n");
        let wanted = "{\"type\":\"about:blank\",\"title\":\"Not Found\",\"status\":404,\"detail\":\"a \\\"b\\\" \\\\ c \"}\n";
        assert_eq!(String::from_utf8(content).unwrap(), wanted);
        let nameless = Form::Json.content(Status::new(418).unwrap(), "");
        let wanted = "{\"type\":\"about:blank\",\"status\":418,\"detail\":\"\"}\n";
        assert_eq!(String::from_utf8(nameless).unwrap(), wanted);
        let content = Form::Plain.content(Status::NOT_FOUND, "It is gone.");
        assert_eq!(String::from_utf8(content).unwrap(), "404 Not Found\nIt is gone.\n");
    }
}
