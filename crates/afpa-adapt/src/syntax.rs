//! From a text to directives, with those of included files in the place of `include`. The grammar is the one that
//! crossplane documents. No crate of the registry is kept up that reads unknown directives, so it stands here.

use std::rc::Rc;

use crate::lexer::{Fault, Lexer, Token};
use crate::names;
use crate::standard;

/// Files and their texts for the absolute path, or pattern (`*`, `?`, `[a-z]`), of an `include`, in the order of their
/// names; none for a pattern that fits nothing. The error says why a file cannot be read.
pub type Files<'f> = &'f mut dyn FnMut(&str) -> Result<Vec<(String, String)>, String>;

/// Why a configuration cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: error: {cause}\n  {remedy}")]
pub struct SyntaxError {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The fault.
    pub cause: String,
    /// The remedy.
    pub remedy: String,
}

/// A directive with its words and its block.
#[derive(Clone, Debug)]
pub(crate) struct Directive {
    /// Unique.
    pub(crate) id: usize,
    pub(crate) name: String,
    pub(crate) words: Vec<String>,
    pub(crate) block: Option<Vec<Directive>>,
    pub(crate) file: Rc<str>,
    pub(crate) line: u32,
}

impl Directive {
    pub(crate) fn word(&self, index: usize) -> &str {
        self.words.get(index).map_or("", |word| word)
    }

    pub(crate) fn is(&self, name: &str) -> bool {
        self.name == name
    }

    pub(crate) fn children(&self) -> &[Directive] {
        self.block.as_deref().unwrap_or_default()
    }
}

/// Blocks within blocks, and files within files.
const DEEPEST: usize = 32;
/// Directives of all files together.
const MOST: usize = 200_000;

/// Reads `text`, the file `name`, and what it includes.
pub(crate) fn parse(
    name: &str,
    text: &str,
    files: Files<'_>,
) -> Result<Vec<Directive>, SyntaxError> {
    let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
    let mut parser = Parser { files, folder, open: vec![name.to_owned()], next: 0 };
    parser.file(name, text, 0)
}

struct Parser<'f> {
    files: Files<'f>,
    /// Of the first file: relative names of all files begin there.
    folder: String,
    /// The files that are being read.
    open: Vec<String>,
    next: usize,
}

/// A file while it is read.
struct Reading<'t> {
    name: Rc<str>,
    lexer: Lexer<'t>,
}

impl Reading<'_> {
    fn error(&self, (line, cause, remedy): Fault) -> SyntaxError {
        SyntaxError { file: self.name.to_string(), line, cause, remedy: remedy.to_owned() }
    }

    fn fault(&self, line: u32, cause: impl Into<String>, remedy: &'static str) -> SyntaxError {
        self.error((line, cause.into(), remedy))
    }

    fn next(&mut self) -> Result<Option<(Token, u32)>, SyntaxError> {
        self.lexer.next().map_err(|fault| self.error(fault))
    }
}

impl Parser<'_> {
    fn file(
        &mut self,
        name: &str,
        text: &str,
        depth: usize,
    ) -> Result<Vec<Directive>, SyntaxError> {
        let mut reading = Reading { name: name.into(), lexer: Lexer::new(text) };
        self.block(&mut reading, depth, None)
    }

    /// The directives up to the end of the block that began in line `begun`, or of the file.
    fn block(
        &mut self,
        reading: &mut Reading<'_>,
        depth: usize,
        begun: Option<u32>,
    ) -> Result<Vec<Directive>, SyntaxError> {
        let mut directives = Vec::new();
        loop {
            match (reading.next()?, begun) {
                (Some((Token::Word(name), line)), _) => {
                    self.directive(reading, (name, line), depth, &mut directives)?;
                }
                (Some((Token::Close, _)), Some(_)) | (None, None) => return Ok(directives),
                (Some((Token::Close, line)), None) => {
                    return Err(reading.fault(line, "} closes no block", "remove it"));
                }
                (None, Some(begun)) => {
                    return Err(reading.fault(begun, "a block does not end", "close it with }"));
                }
                (Some((Token::End, line)), _) => {
                    return Err(reading.fault(line, "; ends no directive", "remove it"));
                }
                (Some((Token::Open, line)), _) => {
                    return Err(reading.fault(line, "{ opens a block without a name", "name it"));
                }
            }
        }
    }

    fn directive(
        &mut self,
        reading: &mut Reading<'_>,
        (name, line): (String, u32),
        depth: usize,
        into: &mut Vec<Directive>,
    ) -> Result<(), SyntaxError> {
        let (words, has_block) = self.words(reading, &name, line)?;
        if has_block && names::lacks_end(&name, &words) {
            return Err(reading.fault(line, format!("`{name}` does not end"), "end it with ;"));
        }
        self.next += 1;
        if self.next > MOST {
            return Err(reading.fault(line, "these are too many directives", "split the file"));
        }
        let file = Rc::clone(&reading.name);
        let mut directive = Directive { id: self.next, name, words, block: None, file, line };
        if has_block && directive.name.ends_with("_by_lua_block") {
            reading.lexer.skip_code().map_err(|fault| reading.error(fault))?;
            directive.block = Some(Vec::new());
        } else if has_block {
            if depth >= DEEPEST {
                return Err(reading.fault(line, "blocks are nested too deeply", "flatten them"));
            }
            directive.block = Some(self.block(reading, depth + 1, Some(line))?);
        }
        let included = match directive.is("include") && !has_block {
            true => self.include(reading, &directive, depth)?,
            false => Vec::new(),
        };
        into.push(directive);
        into.extend(included);
        Ok(())
    }

    /// The words of a directive, and whether a block follows.
    fn words(
        &mut self,
        reading: &mut Reading<'_>,
        name: &str,
        begun: u32,
    ) -> Result<(Vec<String>, bool), SyntaxError> {
        let mut words = Vec::new();
        loop {
            match reading.next()? {
                Some((Token::Word(word), _)) => words.push(word),
                Some((Token::End, _)) => return Ok((words, false)),
                Some((Token::Open, _)) => return Ok((words, true)),
                Some((Token::Close, _)) | None => {
                    let cause = format!("`{name}` does not end");
                    return Err(reading.fault(begun, cause, "end it with ;"));
                }
            }
        }
    }

    fn include(
        &mut self,
        reading: &Reading<'_>,
        directive: &Directive,
        depth: usize,
    ) -> Result<Vec<Directive>, SyntaxError> {
        let (line, pattern) = (directive.line, directive.word(0));
        let path = match pattern.starts_with('/') || self.folder.is_empty() {
            true => pattern.to_owned(),
            false => format!("{}/{pattern}", self.folder),
        };
        let found = match (self.files)(&path) {
            Ok(found) => found,
            Err(cause) => match standard::text(&path) {
                Some(text) => vec![(path, text.to_owned())],
                None => {
                    let cause = format!("{path} cannot be included: {cause}");
                    let remedy = "run `afpa adapt` where nginx's files are";
                    return Err(reading.fault(line, cause, remedy));
                }
            },
        };
        let mut directives = Vec::new();
        for (name, text) in found {
            if self.open.contains(&name) || self.open.len() > DEEPEST {
                let cause = format!("{name} includes itself");
                return Err(reading.fault(line, cause, "remove the `include`"));
            }
            self.open.push(name.clone());
            let inner = self.file(&name, &text, depth)?;
            self.open.pop();
            directives.extend(inner);
        }
        Ok(directives)
    }
}
