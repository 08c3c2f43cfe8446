//! Circles of files inside a crate: files that import each other cannot be read, moved or tested one by one. Two may.
//!
//! An import is a path in `use` or in code. It counts for the file that defines its item: a re-export is looked through,
//! and a parent that declares its children and re-exports their items does not import them. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::house::{manifests, sources};
use super::imports::{Import, Module, target};

#[test]
fn no_circle_has_more_than_two_files() {
    let mut found = Vec::new();
    for (name, (folder, _)) in manifests() {
        let files = modules(&folder.join("src"));
        let imports = imports(&files);
        let circles = circles(&edges(&imports));
        for circle in circles.into_iter().filter(|circle| circle.len() > 2) {
            let closing = closing(&imports, &circle);
            let files = circle.iter().cloned().collect::<Vec<_>>().join(" ");
            found.push(format!("{name}: {} files: {files}\n{closing}", circle.len()));
        }
    }
    assert!(found.is_empty(), "{} circles:\n{}", found.len(), found.join("\n"));
}

type Modules = BTreeMap<Vec<String>, Module>;

/// The modules of a crate that have a file, by their path. Modules of tests are not among them.
fn modules(src: &Path) -> Modules {
    let read = |file: PathBuf| {
        let name = file.strip_prefix(src).expect("below src").to_string_lossy().into_owned();
        (name, fs::read_to_string(&file).expect("a source file"))
    };
    modules_of(sources(src).into_iter().map(read))
}

/// The same, of files by their names and texts.
fn modules_of(files: impl Iterator<Item = (String, String)>) -> Modules {
    let mut modules = Modules::new();
    for (name, text) in files {
        let stem = name.trim_end_matches(".rs");
        let stem = stem.strip_suffix("/mod").unwrap_or(stem);
        let path = match stem {
            "lib" | "main" => Vec::new(),
            _ => stem.split('/').map(str::to_owned).collect(),
        };
        modules.insert(path, Module::read(name, &text));
    }
    let below = |(path, module): (&Vec<String>, &Module)| -> Vec<Vec<String>> {
        module
            .tests
            .iter()
            .map(|name| [path.as_slice(), std::slice::from_ref(name)].concat())
            .collect()
    };
    let tests: Vec<Vec<String>> = modules.iter().flat_map(below).collect();
    modules.retain(|path, _| !tests.iter().any(|test| path.starts_with(test)));
    modules
}

/// File, imported file, and the import.
type Edge<'m> = (&'m str, &'m str, &'m Import);

fn imports(modules: &Modules) -> Vec<Edge<'_>> {
    let mut found = Vec::new();
    for (path, module) in modules {
        for import in &module.imports {
            let Some(at) = target(modules, path, import) else { continue };
            let reexports = import.is_public && at.starts_with(path);
            if at != *path && !reexports {
                found.push((&*module.file, &*modules[&at].file, import));
            }
        }
    }
    found
}

fn edges<'m>(imports: &[Edge<'m>]) -> BTreeMap<&'m str, BTreeSet<&'m str>> {
    let mut edges: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for (from, to, _) in imports {
        edges.entry(*from).or_default().insert(*to);
    }
    edges
}

/// The largest sets of files in which each imports each, on whatever way.
fn circles(edges: &BTreeMap<&str, BTreeSet<&str>>) -> BTreeSet<BTreeSet<String>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        edges.keys().map(|file| (*file, reached_from(file, edges))).collect();
    let circle = |file: &&str| {
        let own = reached.get(file)?;
        let within =
            own.iter().filter(|other| reached.get(*other).is_some_and(|all| all.contains(file)));
        Some(within.map(|other| (*other).to_owned()).collect::<BTreeSet<_>>())
    };
    edges.keys().filter_map(circle).filter(|circle| !circle.is_empty()).collect()
}

fn reached_from<'m>(file: &str, edges: &BTreeMap<&'m str, BTreeSet<&'m str>>) -> BTreeSet<&'m str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = edges.get(file).into_iter().flatten().copied().collect();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(edges.get(next).into_iter().flatten());
        }
    }
    reached
}

/// The pair of files without whose imports the least of the circle is left, with these imports.
fn closing(imports: &[Edge<'_>], circle: &BTreeSet<String>) -> String {
    let within: Vec<_> = imports
        .iter()
        .filter(|(from, to, _)| circle.contains(*from) && circle.contains(*to))
        .copied()
        .collect();
    let pairs: BTreeSet<(&str, &str)> = within.iter().map(|(from, to, _)| (*from, *to)).collect();
    let left = |pair: &(&str, &str)| {
        let others: Vec<_> =
            within.iter().filter(|(from, to, _)| (*from, *to) != *pair).copied().collect();
        circles(&edges(&others)).iter().map(BTreeSet::len).max().unwrap_or_default()
    };
    let Some(pair) = pairs.iter().min_by_key(|pair| left(pair)) else { return String::new() };
    let lines = within.iter().filter(|(from, to, _)| (*from, *to) == *pair);
    let lines = lines.map(|(from, to, import)| {
        format!("  {from}:{} closes it: {} is in {to}", import.line, import.path.join("::"))
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles_of(files: &[(&str, &str)]) -> (Vec<BTreeSet<String>>, String) {
        let files = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        let modules = modules_of(files);
        let imports = imports(&modules);
        let found: Vec<_> = circles(&edges(&imports)).into_iter().collect();
        let closing = found.first().map(|circle| closing(&imports, circle));
        (found, closing.unwrap_or_default())
    }

    #[test]
    fn a_circle_is_found_through_reexports_and_paths_in_code() {
        let (found, closing) = circles_of(&[
            ("lib.rs", "mod a; mod b; mod c; pub use c::C;"),
            ("a.rs", "use crate::b::{self, B};\npub struct A(B);"),
            ("b.rs", "use super::{\n    C,\n};\npub struct B(C);"),
            ("c.rs", "pub struct C;\nfn c() { crate::a::A::new() }"),
        ]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].iter().collect::<Vec<_>>(), ["a.rs", "b.rs", "c.rs"]);
        assert!(closing.contains("a.rs:1 closes it: crate::b::B is in b.rs"), "{closing}");
    }

    #[test]
    fn parents_that_reexport_tests_and_texts_make_no_circle() {
        let (found, _) = circles_of(&[
            ("lib.rs", "mod a; mod b;\npub use a::A; pub(crate) use b::*;\n#[cfg(test)]\nmod t;"),
            ("a.rs", "use crate::B;\n// crate::a::A\npub struct A(B);"),
            (
                "b.rs",
                "pub struct B;\nconst T: &str = \"crate::a::A\";\n#[cfg(test)]\nmod tests { use crate::A; }",
            ),
            ("t.rs", "use crate::A;"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }
}
