//! A zone from its file (RFC 1035 section 5): directives, names and times to live are read here, the data of each record by
//! the `domain` crate, and those that it lacks in `forms`.

use bytes::Bytes;
use domain::base::Name as DomainName;
use domain::base::rdata::ComposeRecordData as _;
use domain::zonefile::inplace::{Entry as Scanned, Zonefile};

use crate::build::build;
use crate::entries::{Entries, Entry, Unsplit};
use crate::fault::Fault;
use crate::forms;
use crate::name::Name;
use crate::rtype;
use crate::zone::{Record, Zone, minimum_of};

/// Files that include each other.
const DEEPEST: usize = 8;
/// Files of one zone.
const MOST_FILES: usize = 256;
/// Findings of one zone; one mistake may cause many.
const MOST_FINDINGS: usize = 20;
/// The longest time to live (RFC 2181 section 8).
const LONGEST_TTL: u32 = i32::MAX as u32;

/// Something to say about a zone file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1; `None`: it is about the whole zone.
    pub line: Option<usize>,
    /// The reason.
    pub cause: String,
    /// How to mend it.
    pub remedy: String,
    /// Whether the zone cannot be served.
    pub is_error: bool,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { file, line, cause, .. } = self;
        match line {
            Some(line) => write!(f, "{file}:{line}: {cause}"),
            None => write!(f, "{file}: {cause}"),
        }
    }
}

/// A zone file that was read.
#[derive(Debug)]
pub struct ReadZone {
    /// The zone, if it can be served.
    pub zone: Option<Zone>,
    /// Errors and warnings.
    pub findings: Vec<Finding>,
    /// The names of the files that it includes, as they are written.
    pub includes: Vec<String>,
}

/// Gives the text of an included file, or why there is none.
pub type Include<'i> = &'i mut dyn FnMut(&str) -> Result<String, String>;

/// Reads a zone from the text of its file.
pub fn read_zone(apex: &Name, file: &str, text: &str, include: Include<'_>) -> ReadZone {
    let mut reader = Reader {
        include,
        records: Vec::new(),
        places: Vec::new(),
        findings: Vec::new(),
        files: vec![file.to_owned()],
    };
    let mut state = State { origin: apex.clone(), owner: None, ttl: None, last_ttl: None };
    // Some editors begin a file with a byte order mark.
    reader.file(0, text.strip_prefix('\u{feff}').unwrap_or(text), &mut state, 0);
    let Reader { records, places, mut findings, files, .. } = reader;
    let had_errors = findings.iter().any(|finding| finding.is_error);
    let zone = build(apex, &records, |place, fault| {
        // After an error the rest would only cause errors that do not exist.
        if had_errors && place.is_none() {
            return;
        }
        let place = place.and_then(|place| places.get(place));
        let owner = place.and_then(|(_, _, record)| records.get(*record));
        findings.push(told(fault, owner, place.map(|(file, line, _)| (*file, *line)), &files));
    });
    findings.truncate(MOST_FINDINGS);
    let includes = files.into_iter().skip(1).collect();
    ReadZone { zone: zone.filter(|_| !had_errors), findings, includes }
}

fn told(
    fault: Fault,
    record: Option<&Record>,
    place: Option<(usize, usize)>,
    files: &[String],
) -> Finding {
    let name = record.map(|record| format!("{}: ", record.owner)).unwrap_or_default();
    let (file, line) = place.map_or((0, None), |(file, line)| (file, Some(line)));
    Finding {
        file: files.get(file).cloned().unwrap_or_default(),
        line,
        cause: format!("{name}{fault}"),
        remedy: fault.remedy().to_owned(),
        is_error: !fault.is_harmless(),
    }
}

/// The part of a reader that directives and records change.
#[derive(Clone)]
struct State {
    origin: Name,
    owner: Option<Name>,
    ttl: Option<u32>,
    last_ttl: Option<u32>,
}

struct Reader<'i> {
    include: Include<'i>,
    records: Vec<Record>,
    /// The file and the line of each record, and its own place.
    places: Vec<(usize, usize, usize)>,
    findings: Vec<Finding>,
    files: Vec<String>,
}

/// A cause and a remedy.
type Wrong = (String, &'static str);

impl Reader<'_> {
    fn file(&mut self, file: usize, text: &str, state: &mut State, depth: usize) {
        let mut entries = Entries::of(text);
        while self.findings.len() < MOST_FINDINGS {
            let entry = match entries.next_entry() {
                Ok(Some(entry)) => entry,
                Ok(None) => return,
                Err(unsplit) => {
                    let (line, cause, remedy) = unsplit_words(unsplit);
                    return self.wrong(file, line, (cause.to_owned(), remedy));
                }
            };
            let line = entry.line;
            let first = entry.words.first().copied().unwrap_or_default();
            let read = match first.strip_prefix('$').filter(|_| !entry.begins_blank) {
                Some(directive) => self.directive(file, directive, &entry, state, depth),
                None => record(&entry, state).map(|record| {
                    self.places.push((file, line, self.records.len()));
                    self.records.push(record);
                }),
            };
            if let Err(wrong) = read {
                self.wrong(file, line, wrong);
            }
        }
    }

    fn wrong(&mut self, file: usize, line: usize, (cause, remedy): Wrong) {
        let file = self.files.get(file).cloned().unwrap_or_default();
        let (line, remedy) = (Some(line), remedy.to_owned());
        self.findings.push(Finding { file, line, cause, remedy, is_error: true });
    }

    fn directive(
        &mut self,
        file: usize,
        directive: &str,
        entry: &Entry<'_>,
        state: &mut State,
        depth: usize,
    ) -> Result<(), Wrong> {
        let words = entry.words.get(1..).unwrap_or_default();
        match (directive.to_ascii_uppercase().as_str(), words) {
            ("ORIGIN", [name]) => state.origin = owner(name, &state.origin)?,
            ("TTL", [ttl]) => state.ttl = Some(seconds(ttl).ok_or_else(|| no_ttl(ttl))?),
            ("INCLUDE", [path]) => self.included(file, path, state.clone(), depth)?,
            ("INCLUDE", [path, name]) => {
                let origin = owner(name, &state.origin)?;
                self.included(file, path, State { origin, ..state.clone() }, depth)?;
            }
            ("ORIGIN" | "TTL" | "INCLUDE", _) => {
                let remedy =
                    "$ORIGIN takes a name, $TTL a time, $INCLUDE a path and perhaps a name";
                return Err((format!("${directive} has the wrong number of words"), remedy));
            }
            _ => {
                let remedy = "there are $ORIGIN, $TTL and $INCLUDE; write the records that $GENERATE would make";
                return Err((format!("${directive} is not known"), remedy));
            }
        }
        Ok(())
    }

    /// Reads an included file; directives in it end with it (RFC 1035 section 5.1).
    fn included(
        &mut self,
        _by: usize,
        path: &str,
        mut state: State,
        depth: usize,
    ) -> Result<(), Wrong> {
        let path = path.trim_matches('"');
        if depth >= DEEPEST || self.files.len() >= MOST_FILES {
            let remedy = "include less: a file that includes itself never ends";
            return Err((format!("{path} is included too deep, or is one file too many"), remedy));
        }
        let text = (self.include)(path).map_err(|why| {
            let remedy = "name a file in the folder of the zone file, or below it";
            (format!("cannot include {path}: {why}"), remedy)
        })?;
        self.files.push(path.to_owned());
        let file = self.files.len() - 1;
        self.file(file, &text, &mut state, depth + 1);
        Ok(())
    }
}

fn unsplit_words(unsplit: Unsplit) -> (usize, &'static str, &'static str) {
    match unsplit {
        Unsplit::Quote(line) => (
            line,
            "a quote is not closed on its line",
            "close it, or write \\\" for a quote itself",
        ),
        Unsplit::Open(line) => {
            (line, "a parenthesis is never closed", "close it where the record ends")
        }
        Unsplit::Closed(line) => (line, "a parenthesis closes nothing", "remove it"),
    }
}

fn record(entry: &Entry<'_>, state: &mut State) -> Result<Record, Wrong> {
    let mut words = entry.words.as_slice();
    if !entry.begins_blank {
        let (first, rest) = words.split_first().unwrap_or((&"@", &[]));
        state.owner = Some(owner(first, &state.origin)?);
        words = rest;
    }
    let owner = state.owner.clone().ok_or_else(|| {
        let remedy = "write a name at the beginning of the line; @ is the zone itself";
        ("the first record has no name".to_owned(), remedy)
    })?;
    let mut ttl = None;
    let (kind, data) = loop {
        let Some((first, rest)) = words.split_first() else {
            let remedy = "write: NAME TTL IN TYPE DATA, for example www A 192.0.2.1";
            return Err((format!("{owner}: the record has no type"), remedy));
        };
        match *first {
            class if class.eq_ignore_ascii_case("IN") || class.eq_ignore_ascii_case("CLASS1") => {}
            class if ["CH", "HS", "CS"].iter().any(|other| class.eq_ignore_ascii_case(other)) => {
                return Err((format!("{owner}: class {class} is not served"), "use IN"));
            }
            time if time.starts_with(|c: char| c.is_ascii_digit()) && ttl.is_none() => {
                ttl = Some(seconds(time).ok_or_else(|| no_ttl(time))?);
            }
            kind => break (kind, rest),
        }
        words = rest;
    };
    let (rtype, data) = scan(&owner, kind, data, &state.origin)?;
    if let Some(ttl) = ttl {
        state.last_ttl = Some(ttl);
    }
    let of_soa = || minimum_of(&data).filter(|_| rtype == rtype::SOA);
    let ttl = ttl.or(state.ttl).or(state.last_ttl).or_else(of_soa).ok_or_else(|| {
        (format!("{owner}: the record has no time to live"), "write $TTL 1h above it")
    })?;
    state.last_ttl.get_or_insert(ttl);
    Ok(Record { owner, rtype, ttl, data })
}

fn owner(word: &str, origin: &Name) -> Result<Name, Wrong> {
    Name::parse(word, origin).map_err(|error| {
        (
            format!("{word} is no name: {error}"),
            "write labels of at most 63 bytes, with dots between them",
        )
    })
}

fn no_ttl(word: &str) -> Wrong {
    (
        format!("{word} is no time to live"),
        "write seconds, or a time as 1h, 2d or 1w2d; at most 68 years",
    )
}

/// Seconds as a number, or with units: 1w2d3h4m5s.
fn seconds(word: &str) -> Option<u32> {
    let (mut total, mut number) = (0_u32, None);
    for byte in word.bytes() {
        let unit = match byte.to_ascii_lowercase() {
            digit @ b'0'..=b'9' => {
                let digit = u32::from(digit - b'0');
                number = Some(number.unwrap_or(0_u32).checked_mul(10)?.checked_add(digit)?);
                continue;
            }
            b's' => 1,
            b'm' => 60,
            b'h' => 3600,
            b'd' => 86_400,
            b'w' => 604_800,
            _ => return None,
        };
        total = total.checked_add(number.take()?.checked_mul(unit)?)?;
    }
    let total = match number {
        Some(number) => total.checked_add(number)?,
        None if word.is_empty() => return None,
        None => total,
    };
    (total <= LONGEST_TTL).then_some(total)
}

/// The type and the wire form of a record's data.
fn scan(owner: &Name, kind: &str, data: &[&str], origin: &Name) -> Result<(u16, Box<[u8]>), Wrong> {
    let cannot =
        |why: &str| (format!("{owner}: the data of {kind} cannot be read: {why}"), remedy_of(kind));
    if let Some(read) = forms::scan(kind, data, origin) {
        return match read {
            Ok((rtype, data)) if data.len() <= usize::from(u16::MAX) => Ok((rtype, data.into())),
            Ok(_) => Err(cannot("they are too long")),
            Err(why) => Err(cannot(&why)),
        };
    }
    let same = forms::SAME_FORM.iter().find(|(name, ..)| kind.eq_ignore_ascii_case(name));
    let mut line = format!(". 0 IN {}", same.map_or(kind, |(_, _, form)| form));
    for (index, word) in data.iter().enumerate() {
        line.push(' ');
        let is_time = kind.eq_ignore_ascii_case("SOA") && (3..=6).contains(&index);
        match seconds(word).filter(|_| is_time) {
            Some(seconds) => line.push_str(&seconds.to_string()),
            None => push_word(&mut line, word),
        }
    }
    line.push('\n');
    let mut file = Zonefile::from(line.as_str());
    if let Ok(origin) = DomainName::from_octets(Bytes::copy_from_slice(origin.wire())) {
        file.set_origin(origin);
    }
    match file.next_entry() {
        Ok(Some(Scanned::Record(record))) => {
            let mut wire = Vec::new();
            record.data().compose_rdata(&mut wire).map_err(|_| {
                (
                    format!("{owner}: the data of {kind} is too long"),
                    "split it into several records",
                )
            })?;
            let rtype = same.map_or(record.rtype().to_int(), |(_, rtype, _)| *rtype);
            Ok((rtype, wire.into()))
        }
        Ok(_) => Err((format!("{owner}: {kind} is no type of record"), REMEDY)),
        Err(error) => {
            let error = error.to_string();
            // The place within our own line says nothing to the operator.
            let why = error.splitn(3, ':').last().unwrap_or_default().trim();
            Err(cannot(why))
        }
    }
}

/// Appends a word; bytes beyond ASCII become numbers, which mean the same.
fn push_word(line: &mut String, word: &str) {
    let mut is_escaped = false;
    for letter in word.chars() {
        if letter.is_ascii() {
            line.push(letter);
            is_escaped = letter == '\\' && !is_escaped;
            continue;
        }
        if is_escaped {
            line.pop();
        }
        is_escaped = false;
        for byte in letter.encode_utf8(&mut [0; 4]).bytes() {
            line.push_str(&format!("\\{byte:03}"));
        }
    }
}

const REMEDY: &str =
    "correct the type or the data; any type can be written as TYPE123 \\# LENGTH HEX (RFC 3597)";

fn remedy_of(kind: &str) -> &'static str {
    match kind.to_ascii_uppercase().as_str() {
        "A" => "write an IPv4 address, for example 192.0.2.1",
        "AAAA" => "write an IPv6 address, for example 2001:db8::1",
        "MX" => "write a preference and a name, for example 10 mail",
        "TXT" => "write it in quotes, and as several texts of at most 255 bytes if it is long",
        "SOA" => "write: SOA ns1 hostmaster 1 1h 15m 4w 5m",
        "CAA" => "write for example 0 issue \"letsencrypt.org\"",
        "HTTPS" | "SVCB" => "write for example 1 . alpn=h2",
        _ => REMEDY,
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
