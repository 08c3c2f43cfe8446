//! The expansion of a page: its documents one within the other, with one environment.
//!
//! The flow of control is that of mod_include: two flags decide whether bytes are printed, and an element that fails
//! leaves its message.

use crate::directive::{Attribute, Element, Piece, Pieces};
use crate::environment::Environment;
use crate::expression;
use crate::path::{Link, resolve};
use crate::text::{Encoding, decode_entities};
use crate::{ExpandError, Expanded, Facts, Fault, Files, Limits, Page, Unreadable, time};

/// A page while it is expanded.
pub(crate) struct Expansion<'f> {
    files: &'f mut dyn Files,
    limits: Limits,
    environment: Environment,
    /// The documents that are being expanded, the page first.
    open: Vec<Vec<u8>>,
    includes: usize,
    /// Bytes that may still be read, copied or compared.
    work: usize,
    expanded: Expanded,
}

/// One document while it is expanded.
struct Document {
    error: Vec<u8>,
    undefined: Vec<u8>,
    time_format: Vec<u8>,
    abbreviates: bool,
    /// Bytes that are read now go into the page.
    printing: bool,
    /// One of the branches of this `if` was, or is, taken.
    taken: bool,
    /// How many `if`s within a branch that is not printed are open.
    skipped: usize,
    line: usize,
}

/// Work for each byte that a page may have.
const WORK: usize = 16;
/// Faults that are reported.
const FAULTS: usize = 8;

/// Why an element does nothing but print its message.
enum Failure {
    Fault(String),
    Fatal(ExpandError),
}

type Done = Result<(), Failure>;

fn fault<T>(cause: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Fault(cause.into()))
}

impl<'f> Expansion<'f> {
    pub(crate) fn new(page: &Page<'_>, files: &'f mut dyn Files, limits: &Limits) -> Self {
        Expansion {
            files,
            limits: *limits,
            environment: Environment::new(page),
            open: Vec::new(),
            includes: 0,
            work: limits.size.saturating_mul(WORK),
            expanded: Expanded::default(),
        }
    }

    pub(crate) fn run(mut self, page: &Page<'_>) -> Result<Expanded, ExpandError> {
        self.document(page.path, page.content)?;
        self.expanded.shows_time = self.environment.shows_time();
        Ok(self.expanded)
    }

    fn document(&mut self, path: &[u8], content: &[u8]) -> Result<(), ExpandError> {
        self.spend(content.len())?;
        self.open.push(path.to_vec());
        let mut document = Document::new();
        let mut pieces = Pieces::new(content);
        while let Some(piece) = pieces.next() {
            let done = match &piece {
                Piece::Text(text) if document.printing => self.print(text).map_err(Failure::Fatal),
                Piece::Text(_) => Ok(()),
                Piece::Element(element) => self.element(&mut document, element),
                Piece::Unfinished if document.printing => fault("an element does not end"),
                Piece::Unfinished => Ok(()),
            };
            match done {
                Ok(()) => {}
                Err(Failure::Fatal(error)) => return Err(error),
                Err(Failure::Fault(cause)) => {
                    document.line = pieces.line();
                    self.report(&document, cause);
                    self.print(&document.error.clone())?;
                }
            }
        }
        self.open.pop();
        Ok(())
    }

    fn element(&mut self, document: &mut Document, element: &Element) -> Done {
        let attributes = &element.attributes[..];
        match &*element.name {
            b"if" => self.begin(document, attributes),
            b"elif" => self.otherwise(document, Some(attributes)),
            b"else" | b"endif" if !attributes.is_empty() => match document.printing {
                true => fault("`else` and `endif` have no attributes"),
                false => Ok(()),
            },
            b"else" => self.otherwise(document, None),
            b"endif" => {
                document.end();
                Ok(())
            }
            _ if !document.printing => Ok(()),
            b"set" if attributes.len() < 2 => fault("`set` needs `var` and `value`"),
            name @ (b"config" | b"echo" | b"include" | b"fsize" | b"flastmod")
                if attributes.is_empty() =>
            {
                fault(format!("`{}` has no attributes", name.escape_ascii()))
            }
            b"config" => self.config(document, attributes),
            b"echo" => self.echo(document, attributes),
            b"set" => self.set(attributes),
            b"include" => self.include(attributes),
            b"fsize" => self.facts(attributes, |facts| size(facts, document.abbreviates)),
            b"flastmod" => self.facts(attributes, |facts| {
                time::format(facts.modified, &document.time_format, "UTC")
            }),
            name => fault(format!("there is no element \"{}\" here", name.escape_ascii())),
        }
    }

    fn begin(&mut self, document: &mut Document, attributes: &[Attribute]) -> Done {
        if !document.printing {
            document.skipped += 1;
            return Ok(());
        }
        // If it is no condition, no branch is taken.
        (document.printing, document.taken, document.skipped) = (false, true, 0);
        let holds = self.condition(attributes)?;
        (document.printing, document.taken) = (holds, holds);
        Ok(())
    }

    /// `elif` with its attributes, or `else`.
    fn otherwise(&mut self, document: &mut Document, condition: Option<&[Attribute]>) -> Done {
        if document.skipped > 0 {
            return Ok(());
        }
        if document.taken {
            document.printing = false;
            return Ok(());
        }
        (document.printing, document.taken) = (false, true);
        let holds = condition.map_or(Ok(true), |attributes| self.condition(attributes))?;
        (document.printing, document.taken) = (holds, holds);
        Ok(())
    }

    fn condition(&mut self, attributes: &[Attribute]) -> Result<bool, Failure> {
        let [Attribute { name, value: Some(condition) }] = attributes else {
            return fault("a condition has one attribute, `expr`");
        };
        if name != b"expr" {
            return fault("a condition has one attribute, `expr`");
        }
        let (environment, work) = (&mut self.environment, &mut self.work);
        let mut value = |name: &[u8]| {
            let value = if *work > 0 { environment.get(name) } else { None };
            *work = work.saturating_sub(value.as_ref().map_or(0, Vec::len));
            value
        };
        let result = expression::evaluate(condition, &mut value);
        self.spend(condition.len()).map_err(Failure::Fatal)?;
        result.map_err(|error| Failure::Fault(error.to_string()))
    }

    fn config(&mut self, document: &mut Document, attributes: &[Attribute]) -> Done {
        for Attribute { name, value } in attributes {
            let Some(raw) = value else { return Ok(()) };
            match &**name {
                b"errmsg" => document.error = self.substitute(raw)?,
                b"echomsg" => document.undefined = self.substitute(raw)?,
                b"timefmt" => {
                    document.time_format = self.substitute(raw)?;
                    self.environment.set_time_format(&document.time_format);
                }
                b"sizefmt" => match &*self.substitute(raw)? {
                    b"bytes" => document.abbreviates = false,
                    b"abbrev" => document.abbreviates = true,
                    _ => return fault("`sizefmt` is `bytes` or `abbrev`"),
                },
                _ => return unknown(name, "config"),
            }
        }
        Ok(())
    }

    fn echo(&mut self, document: &Document, attributes: &[Attribute]) -> Done {
        let mut encoding = Encoding::Entity;
        for Attribute { name, value } in attributes {
            let Some(raw) = value else { return Ok(()) };
            let value = decode_entities(raw);
            match &**name {
                b"var" => {
                    let variable = self.substitute(&value)?;
                    match self.environment.get(&variable) {
                        Some(value) => self.print(&encoding.encode(&value)),
                        None => {
                            let name = variable.escape_ascii();
                            self.report(document, format!("the variable {name} has no value"));
                            self.print(&document.undefined)
                        }
                    }
                    .map_err(Failure::Fatal)?;
                }
                b"encoding" => match Encoding::named(&value) {
                    Some(named) => encoding = named,
                    None => return fault("`encoding` is `none`, `url` or `entity`"),
                },
                _ => return unknown(name, "echo"),
            }
        }
        Ok(())
    }

    fn set(&mut self, attributes: &[Attribute]) -> Done {
        let mut variable = None;
        for Attribute { name, value } in attributes {
            let Some(raw) = value else { return Ok(()) };
            let value = self.substitute(raw)?;
            match (&**name, &variable) {
                (b"var", _) => variable = Some(value),
                (b"value", Some(variable)) => {
                    if !self.environment.set(variable, value) {
                        return fault("there are too many variables, or they are too long");
                    }
                }
                (b"value", None) => return fault("`value` stands before `var`"),
                _ => return unknown(name, "set"),
            }
        }
        Ok(())
    }

    /// One document after the other. An attribute that fails has a message only if it is the last one.
    fn include(&mut self, attributes: &[Attribute]) -> Done {
        let mut last = Ok(());
        for attribute in attributes {
            match self.include_one(attribute) {
                Ok(true) => last = Ok(()),
                Ok(false) => return Ok(()),
                Err(failure @ Failure::Fault(_)) if attribute.is_link() => last = Err(failure),
                Err(failure) => return Err(failure),
            }
        }
        last
    }

    /// `false`: the attribute has no value.
    fn include_one(&mut self, attribute: &Attribute) -> Result<bool, Failure> {
        let Some(path) = self.linked(attribute, "include")? else { return Ok(false) };
        let shown = path.escape_ascii().to_string();
        if self.open.contains(&path) {
            return fault(format!("{shown} includes itself"));
        }
        if self.open.len() >= self.limits.depth {
            return fault(format!("{shown} is included too deeply"));
        }
        if self.includes >= self.limits.includes {
            return fault("the page includes too much");
        }
        self.includes += 1;
        let document = match self.files.read(&path, self.limits.size) {
            Ok(document) => document,
            Err(Unreadable::Changed) => return Err(Failure::Fatal(ExpandError::Changed)),
            Err(error) => return fault(format!("{shown}: {error}")),
        };
        if self.open.contains(&document.path) {
            return fault(format!("{shown} includes itself"));
        }
        match document.has_elements {
            true => self.document(&document.path, &document.content),
            false => self.print(&document.content),
        }
        .map_err(Failure::Fatal)?;
        Ok(true)
    }

    fn facts(&mut self, attributes: &[Attribute], shown: impl Fn(Facts) -> Vec<u8>) -> Done {
        for attribute in attributes {
            let Some(path) = self.linked(attribute, "fsize and flastmod")? else { return Ok(()) };
            self.spend(self.limits.size / 1000).map_err(Failure::Fatal)?;
            match self.files.look(&path) {
                Ok(facts) => self.print(&shown(facts)).map_err(Failure::Fatal)?,
                Err(Unreadable::Changed) => return Err(Failure::Fatal(ExpandError::Changed)),
                Err(error) => return fault(format!("{}: {error}", path.escape_ascii())),
            }
        }
        Ok(())
    }

    /// The path that an attribute names; `None` if it has no value.
    fn linked(&mut self, attribute: &Attribute, element: &str) -> Result<Option<Vec<u8>>, Failure> {
        let Attribute { name, value } = attribute;
        let Some(raw) = value else { return Ok(None) };
        let value = self.substitute(&decode_entities(raw))?;
        let link = match &**name {
            b"virtual" => Link::Virtual(&value),
            b"file" => Link::File(&value),
            _ => return unknown(name, element).map(|()| None),
        };
        let from = self.open.last().map(Vec::as_slice).unwrap_or_default();
        match resolve(from, link) {
            Some(path) => Ok(Some(path)),
            None => fault(format!("\"{}\" is no path of this site", value.escape_ascii())),
        }
    }

    fn substitute(&mut self, text: &[u8]) -> Result<Vec<u8>, Failure> {
        let text = self.environment.substitute(text);
        self.spend(text.len()).map_err(Failure::Fatal)?;
        Ok(text)
    }

    fn print(&mut self, text: &[u8]) -> Result<(), ExpandError> {
        self.spend(text.len())?;
        if self.expanded.content.len() + text.len() > self.limits.size {
            return Err(ExpandError::TooMuch);
        }
        self.expanded.content.extend_from_slice(text);
        Ok(())
    }

    /// Elements cost something, too, however short they are.
    fn spend(&mut self, bytes: usize) -> Result<(), ExpandError> {
        let left = self.work.checked_sub(bytes + 1);
        self.work = left.ok_or(ExpandError::TooMuch)?;
        Ok(())
    }

    fn report(&mut self, document: &Document, cause: String) {
        if self.expanded.faults.len() < FAULTS {
            let path = self.open.last().cloned().unwrap_or_default();
            self.expanded.faults.push(Fault { path, line: document.line, cause });
        }
    }
}

impl Attribute {
    fn is_link(&self) -> bool {
        matches!(&*self.name, b"virtual" | b"file")
    }
}

impl Document {
    fn new() -> Self {
        Document {
            error: b"[an error occurred while processing this directive]".to_vec(),
            undefined: b"(none)".to_vec(),
            time_format: time::DEFAULT.to_vec(),
            abbreviates: true,
            printing: true,
            taken: true,
            skipped: 0,
            line: 1,
        }
    }

    /// `endif`
    fn end(&mut self) {
        match self.skipped {
            0 => (self.printing, self.taken) = (true, true),
            _ => self.skipped -= 1,
        }
    }
}

fn unknown(name: &[u8], element: &str) -> Done {
    fault(format!("{element} has no attribute \"{}\"", name.escape_ascii()))
}

/// In bytes with thousands separated, or as Apache abbreviates.
fn size(facts: Facts, abbreviates: bool) -> Vec<u8> {
    if abbreviates {
        return abbreviated(facts.size).into_bytes();
    }
    let digits = facts.size.to_string();
    let mut text = Vec::new();
    for (at, digit) in digits.bytes().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(b',');
        }
        text.push(digit);
    }
    text
}

/// As `apr_strfsize`: three digits and a unit.
pub(crate) fn abbreviated(size: u64) -> String {
    if size < 973 {
        return format!("{size:3} ");
    }
    let mut size = size;
    for unit in ["K", "M", "G", "T", "P", "E"] {
        let remainder = size & 1023;
        size >>= 10;
        if size >= 973 {
            continue;
        }
        if size < 9 || (size == 9 && remainder < 973) {
            let mut tenths = (remainder * 5 + 256) / 512;
            let mut whole = size;
            if tenths >= 10 {
                (whole, tenths) = (whole + 1, 0);
            }
            return format!("{whole}.{tenths}{unit}");
        }
        let rounded = size + u64::from(remainder >= 512);
        return format!("{rounded:3}{unit}");
    }
    "****".to_owned()
}
