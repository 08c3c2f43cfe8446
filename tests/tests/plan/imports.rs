//! The imports and the definitions of a source file, as far as the plan needs them.

use std::collections::{BTreeMap, BTreeSet};

/// A path that leads to an item: of a `use`, or in code.
#[derive(Debug)]
pub(crate) struct Import {
    pub(crate) path: Vec<String>,
    /// The name under which the file knows it; empty: it is a path in code.
    pub(crate) name: String,
    /// It is re-exported.
    pub(crate) is_public: bool,
    pub(crate) line: usize,
}

/// A source file.
#[derive(Debug, Default)]
pub(crate) struct Module {
    pub(crate) file: String,
    pub(crate) imports: Vec<Import>,
    /// The items that it defines.
    items: BTreeSet<String>,
    /// Its children that exist only for tests.
    pub(crate) tests: BTreeSet<String>,
}

/// The module whose file defines the item that an import of the module at `from` leads to. `None`: it is of another
/// crate, or a whole module.
pub(crate) fn target(
    modules: &BTreeMap<Vec<String>, Module>,
    from: &[String],
    import: &Import,
) -> Option<Vec<String>> {
    match resolve(modules, from, &import.path, 0)? {
        Found::Item(at) => Some(at),
        Found::Module(_) => None,
    }
}

enum Found {
    Item(Vec<String>),
    Module(Vec<String>),
}

/// Resolves a path that stands in the module at `from`.
fn resolve(
    modules: &BTreeMap<Vec<String>, Module>,
    from: &[String],
    path: &[String],
    depth: usize,
) -> Option<Found> {
    let mut at = from.to_vec();
    let mut rest = path;
    match path.first()?.as_str() {
        "crate" => (at, rest) = (Vec::new(), &path[1..]),
        "self" => rest = &path[1..],
        "super" => {
            while rest.first().is_some_and(|name| name == "super") {
                at.pop()?;
                rest = &rest[1..];
            }
        }
        name => {
            let child = [from, &[name.to_owned()]].concat();
            if !modules.contains_key(&child) {
                // Another name of a module, or something of another crate.
                let own = modules[from].imports.iter().find(|import| import.name == name)?;
                if depth > 8 || own.path == path || own.path.first() == path.first() {
                    return None;
                }
                let Found::Module(module) = resolve(modules, from, &own.path, depth + 1)? else {
                    return None;
                };
                (at, rest) = (module, &path[1..]);
            }
        }
    }
    within(modules, at, rest, depth)
}

/// Resolves what is left of a path in a module.
fn within(
    modules: &BTreeMap<Vec<String>, Module>,
    mut at: Vec<String>,
    mut rest: &[String],
    depth: usize,
) -> Option<Found> {
    while let Some(name) = rest.first() {
        let child = [at.as_slice(), std::slice::from_ref(name)].concat();
        if modules.contains_key(&child) {
            (at, rest) = (child, &rest[1..]);
            continue;
        }
        let module = modules.get(&at)?;
        if module.items.contains(name) || depth > 8 {
            return Some(Found::Item(at));
        }
        let named = module.imports.iter().find(|import| import.name == *name);
        if let Some(import) = named {
            return match resolve(modules, &at, &import.path, depth + 1)? {
                Found::Module(module) => within(modules, module, &rest[1..], depth + 1),
                item => Some(item),
            };
        }
        let all = module.imports.iter().filter(|import| import.name == "*");
        for import in all {
            if let Some(Found::Module(inner)) = resolve(modules, &at, &import.path, depth + 1)
                && modules[&inner].items.contains(name)
            {
                return Some(Found::Item(inner));
            }
        }
        return Some(Found::Item(at));
    }
    Some(Found::Module(at))
}

impl Module {
    pub(crate) fn read(file: String, text: &str) -> Self {
        let mut module = Self { file, ..Self::default() };
        let tokens = tokens(text);
        let mut at = 0;
        while at < tokens.len() {
            at = module.item(&tokens, at);
        }
        module
    }

    /// Reads on from a token. Returns the place of the next one.
    fn item(&mut self, tokens: &[Token<'_>], at: usize) -> usize {
        const DEFINING: [&str; 9] =
            ["struct", "enum", "trait", "type", "fn", "const", "static", "union", "macro_rules"];
        let word = |at: usize| tokens.get(at).map_or("", |token| token.text);
        match word(at) {
            "#" if word(at + 1) == "[" && word(at + 2) == "cfg" && word(at + 4) == "test" => {
                let mut next = after(tokens, at + 1);
                if let Some(place) = (next..next + 5).find(|place| word(*place) == "mod") {
                    self.tests.insert(word(place + 1).to_owned());
                }
                while !matches!(word(next), "" | ";" | "{") {
                    next += 1;
                }
                if word(next) == "{" { after(tokens, next) } else { next + 1 }
            }
            "use" => {
                let is_public = at > 0 && matches!(word(at - 1), "pub" | ")");
                self.tree(tokens, at + 1, &[], is_public)
            }
            name if DEFINING.contains(&name) => {
                let skipped = usize::from(name == "macro_rules");
                self.items.insert(word(at + 1 + skipped).to_owned());
                at + 2 + skipped
            }
            name if is_name(name) && word(at + 1) == "::" => {
                let (mut path, mut next) = (vec![name.to_owned()], at + 1);
                while word(next) == "::" && is_name(word(next + 1)) {
                    path.push(word(next + 1).to_owned());
                    next += 2;
                }
                let (name, line) = (String::new(), tokens[at].line);
                self.imports.push(Import { path, name, is_public: false, line });
                next.max(at + 2)
            }
            _ => at + 1,
        }
    }

    /// Reads a tree of `use`, below a path. Returns the place behind it.
    fn tree(
        &mut self,
        tokens: &[Token<'_>],
        at: usize,
        below: &[String],
        is_public: bool,
    ) -> usize {
        let word = |at: usize| tokens.get(at).map_or("", |token| token.text);
        let (mut path, mut next) = (below.to_vec(), at);
        let mut name = String::new();
        loop {
            match word(next) {
                "::" => next += 1,
                "{" => {
                    next += 1;
                    while !matches!(word(next), "}" | "") {
                        next = self.tree(tokens, next, &path, is_public);
                        next += usize::from(word(next) == ",");
                    }
                    return next + 1;
                }
                "*" => {
                    name = "*".to_owned();
                    next += 1;
                }
                "as" => {
                    name = word(next + 1).to_owned();
                    next += 2;
                }
                "self" if !path.is_empty() => next += 1,
                word if is_name(word) => {
                    path.push(word.to_owned());
                    next += 1;
                }
                _ => break,
            }
        }
        if name.is_empty() {
            name = path.last().cloned().unwrap_or_default();
        }
        let line = tokens.get(at).map_or(0, |token| token.line);
        self.imports.push(Import { path, name, is_public, line });
        next
    }
}

struct Token<'t> {
    text: &'t str,
    line: usize,
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// The place behind the bracket that closes the one at `at`.
fn after(tokens: &[Token<'_>], at: usize) -> usize {
    let mut depth = 0;
    for (place, token) in tokens.iter().enumerate().skip(at) {
        match token.text {
            "{" | "[" | "(" => depth += 1,
            "}" | "]" | ")" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return place + 1;
        }
    }
    tokens.len()
}

/// Names, `::` and single characters, without comments, texts, characters and spaces.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let (mut rest, mut line) = (text, 1);
    while let Some(first) = rest.chars().next() {
        let (length, is_token) = match first {
            _ if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), false),
            '"' => (text_length(rest), false),
            'r' if rest.starts_with("r\"") => {
                (rest[2..].find('"').map_or(rest.len(), |end| end + 3), false)
            }
            'r' if rest.starts_with("r#\"") => {
                (rest.find("\"#").map_or(rest.len(), |end| end + 2), false)
            }
            '\'' => (character_length(rest), false),
            ':' if rest.starts_with("::") => (2, true),
            _ if first.is_alphanumeric() || first == '_' => {
                let end = rest.find(|other: char| !other.is_alphanumeric() && other != '_');
                (end.unwrap_or(rest.len()), true)
            }
            _ => (first.len_utf8(), !first.is_whitespace()),
        };
        let (text, after) = rest.split_at(length);
        if is_token {
            tokens.push(Token { text, line });
        }
        line += text.matches('\n').count();
        rest = after;
    }
    tokens
}

/// The length of a text in quotes.
fn text_length(text: &str) -> usize {
    let mut escaped = false;
    let end = text.char_indices().skip(1).find(|(_, other)| {
        let ends = *other == '"' && !escaped;
        escaped = *other == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |(end, _)| end + 1)
}

/// The length of a character in quotes, or 1 at the begin of a lifetime.
fn character_length(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => text[3..].find('\'').map_or(text.len(), |end| end + 4),
        Some(_) => match chars.next() {
            Some((end, '\'')) => end + 1,
            _ => 1,
        },
        None => 1,
    }
}
