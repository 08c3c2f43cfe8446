//! The pages that people read: links lead from README.md to each of them and to nothing that is not there, ARCHITECTURE.md names
//! code that is there, decisions are short, and CHANGELOG.md has the present version.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::words::{files, house};

/// Bytes of ARCHITECTURE.md at most: it is read as a whole.
const LONGEST: usize = 18 * 1024;

/// Lines of a decision at most: decision, reason and evidence.
const DECISION: usize = 60;

/// Lines of a page of a job, and letters of a line, at most.
const JOB: (usize, usize) = (30, 150);

/// Folders in which the paths of ARCHITECTURE.md begin.
const BASES: &[&str] = &["", "crates", "bpf", "bpf/include/afpa"];

/// The head of a table whose rows name functions, and the files that have them.
const WALK: &str = "| step | function | file |";

/// The words before a name where it is defined, in Rust.
const KEYWORDS: &[&str] = &["fn", "struct", "enum", "trait", "type", "const", "static"];

#[test]
fn links_of_pages_lead_to_files_and_headings_that_are_there() {
    let mut faults = Vec::new();
    let mut count = 0;
    for page in files().iter().filter(|path| path.extension().is_some_and(|ending| ending == "md"))
    {
        let text = fs::read_to_string(page).expect("a page");
        for link in links(&text) {
            count += 1;
            if let Some(fault) = fault_of_link(page, link) {
                let within = page.strip_prefix(house()).expect("below the house");
                faults.push(format!("{}: {link}: {fault}", within.display()));
            }
        }
    }
    assert!(count > 200, "only {count} links were found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_page_is_reached_from_the_first_one_by_links() {
    let is_page = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "md");
    let pages: BTreeSet<PathBuf> =
        files().into_iter().filter(is_page).filter_map(|path| path.canonicalize().ok()).collect();
    let reached = reached_from(&house().join("README.md").canonicalize().expect("README.md"));
    let lost: Vec<_> = pages.difference(&reached).collect();
    assert!(pages.len() > 60, "only {} pages were found", pages.len());
    assert!(lost.is_empty(), "no link leads from README.md to {lost:?}");
}

/// `make docs` lays out the pages that its navigation names, and no others.
#[test]
fn every_page_is_once_in_the_navigation_of_the_site() {
    let text = fs::read_to_string(house().join("docs/site/mkdocs.yml")).expect("the navigation");
    let entries = text.lines().filter_map(|line| line.rsplit(' ').next());
    let entries: Vec<_> =
        entries.filter(|entry| entry.ends_with(".md")).map(PathBuf::from).collect();
    let named: BTreeSet<_> = entries.iter().cloned().collect();
    assert_eq!(named.len(), entries.len(), "a page is named twice");
    let absent: Vec<_> = named.iter().filter(|page| !house().join(page).is_file()).collect();
    assert!(absent.is_empty(), "there is no page {absent:?}");
    let is_page = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "md");
    let within = |path: PathBuf| path.strip_prefix(house()).ok().map(Path::to_owned);
    let pages: BTreeSet<_> = files().into_iter().filter(is_page).filter_map(within).collect();
    let left_out: Vec<_> = pages.difference(&named).collect();
    assert!(left_out.is_empty(), "docs/site/mkdocs.yml does not name {left_out:?}");
}

/// A page of a job has the lines of nginx and Caddy beside ours.
#[test]
fn pages_of_jobs_are_short_and_narrow() {
    let mut count = 0;
    for entry in fs::read_dir(house().join("docs")).expect("docs") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Ok(text) = fs::read_to_string(&path) else { continue };
        if !text.contains("| nginx | Caddy |\n") && name != "adapt.md" {
            continue;
        }
        count += 1;
        let lines = text.lines().count();
        assert!(lines <= JOB.0, "docs/{name} has {lines} lines");
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or_default();
        assert!(widest <= JOB.1, "docs/{name} has a line of {widest} letters");
    }
    assert!(count > 10, "only {count} pages of jobs were found");
}

#[test]
fn decisions_are_listed_and_short() {
    let folder = house().join("docs/decisions");
    let list = fs::read_to_string(folder.join("README.md")).expect("the list of decisions");
    for entry in fs::read_dir(folder).expect("docs/decisions") {
        let path = entry.expect("a decision").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let lines = fs::read_to_string(&path).expect("a decision").lines().count();
        assert!(
            name == "README.md" || list.contains(&format!("]({name})")),
            "{name} is not listed"
        );
        assert!(lines <= DECISION, "{name} has {lines} lines");
    }
}

#[test]
fn architecture_is_short_and_names_files_and_functions_that_are_there() {
    let text = fs::read_to_string(house().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    assert!(text.len() <= LONGEST, "ARCHITECTURE.md has {} bytes", text.len());
    let (count, faults) = faults_of_names(&text);
    assert!(count > 80, "only {count} functions were found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_changelog_has_a_section_for_the_version_and_one_for_what_comes_after() {
    let read = |page: &str| fs::read_to_string(house().join(page)).expect("a file of the house");
    let manifest = read("Cargo.toml");
    let version = manifest.lines().find_map(|line| line.strip_prefix("version = "));
    let version = version.expect("the version of the workspace").trim_matches('"').to_owned();
    let changelog = read("CHANGELOG.md");
    let mut sections = changelog.lines().filter(|line| line.starts_with("## "));
    assert_eq!(sections.next(), Some("## [Unreleased]"));
    let newest = sections.next().unwrap_or_default();
    assert!(newest.starts_with(&format!("## [{version}] - 20")), "{newest}, not {version}");
}

/// The pages to which links lead from a page, itself among them.
fn reached_from(first: &Path) -> BTreeSet<PathBuf> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![first.to_owned()]);
    while let Some(page) = open.pop() {
        let is_page = page.extension().is_some_and(|ending| ending == "md");
        if !is_page || !reached.insert(page.clone()) {
            continue;
        }
        let text = fs::read_to_string(&page).expect("a page");
        let folder = page.parent().expect("a page is in a folder");
        let paths = links(&text).map(|link| link.split('#').next().unwrap_or_default());
        open.extend(paths.filter_map(|path| folder.join(path).canonicalize().ok()));
    }
    reached
}

/// The targets of links to files of the house.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://") && !target.contains(char::is_whitespace))
}

fn fault_of_link(page: &Path, link: &str) -> Option<String> {
    let (path, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = match path {
        "" => page.to_owned(),
        path => page.parent().expect("a page is in a folder").join(path),
    };
    if !target.exists() {
        return Some("is not there".to_owned());
    }
    let is_page = target.extension().is_some_and(|ending| ending == "md");
    if heading.is_empty() || !is_page {
        return None;
    }
    let text = fs::read_to_string(&target).expect("a page");
    let is_there = text.lines().any(|line| line.starts_with('#') && slug(line) == heading);
    (!is_there).then(|| format!("has no heading `{heading}`"))
}

/// The name of a heading in links, as GitHub makes it.
fn slug(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// How many functions a page names, and which of its paths and functions are not there.
fn faults_of_names(text: &str) -> (usize, Vec<String>) {
    let (mut count, mut faults, mut in_walk) = (0, Vec::new(), false);
    let everything = all_sources();
    for line in text.lines() {
        in_walk = line == WALK || in_walk && line.starts_with('|');
        let paths = quoted(line).filter(|name| name.contains('/'));
        let mut sources = String::new();
        for path in paths {
            match find(path) {
                None => faults.push(format!("`{path}` is not there")),
                Some(file) => sources += &fs::read_to_string(file).unwrap_or_default(),
            }
        }
        let functions = if in_walk { line.split('|').nth(2).unwrap_or_default() } else { line };
        for name in quoted(functions).filter(|name| in_walk || is_of_rust(name)) {
            count += 1;
            if !defines(if in_walk { &sources } else { &everything }, name) {
                faults.push(format!("`{name}` is not defined: {line}"));
            }
        }
    }
    (count, faults)
}

fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Whether a name in running text is that of a type, or of something within one.
fn is_of_rust(name: &str) -> bool {
    let is_path = name.chars().all(|c| c.is_alphanumeric() || matches!(c, ':' | '_'));
    let is_type = name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase);
    is_path && (name.contains("::") || is_type)
}

fn all_sources() -> String {
    let is_ours = |path: &PathBuf| {
        path.extension().is_some_and(|ending| ending == "rs")
            && path.starts_with(house().join("crates"))
    };
    files().into_iter().filter(is_ours).filter_map(|path| fs::read_to_string(path).ok()).collect()
}

fn find(path: &str) -> Option<PathBuf> {
    BASES.iter().map(|base| house().join(base).join(path)).find(|path| path.exists())
}

/// Whether a text defines the last part of `Type::name`: by one of Rust's keywords, or, in C, with its result before it.
fn defines(sources: &str, name: &str) -> bool {
    let name = name.rsplit("::").next().unwrap_or(name);
    sources.lines().any(|line| {
        line.match_indices(name).any(|(at, _)| {
            let (before, after) = (&line[..at], &line[at + name.len()..]);
            let is_whole = !after.starts_with(|c: char| c.is_alphanumeric() || c == '_');
            let word = before.trim_end().rsplit([' ', '\t', '(']).next().unwrap_or_default();
            let by_rust = before.ends_with(' ') && KEYWORDS.contains(&word);
            let is_at_left = line.starts_with(|c: char| c.is_alphabetic() || c == '_');
            let by_c = before.ends_with(' ') && is_at_left;
            is_whole && (by_rust || by_c && after.starts_with('('))
        })
    })
}

#[test]
fn a_function_is_found_where_it_is_defined_and_not_where_it_is_called() {
    assert!(defines("    pub(super) async fn serve(&mut self) -> End {", "Connection::serve"));
    assert!(defines("static __always_inline int serve(struct __sk_buff *skb,", "serve"));
    assert!(defines("pub struct Tls<'a> {", "Tls"));
    for call in ["\tverdict = serve(skb);", "    self.serve().await", "fn serves(", "fn observe("] {
        assert!(!defines(call, "serve"), "{call}");
    }
}

#[test]
fn paths_functions_and_links_that_are_not_there_are_found_out() {
    let text = format!("{WALK}\n|---|---|---|\n| x | `nowhere_at_all` | `no/such.rs` |\n");
    assert_eq!(faults_of_names(&text).1.len(), 2, "neither the function nor the file");
    assert_eq!(faults_of_names("`NoSuchType`, `no_such::function`, `SO_REUSEPORT`").1.len(), 2);
    let glossary = house().join("docs/glossary.md");
    assert_eq!(reached_from(&glossary).len(), 1, "no other page links a page without links");
    let page = house().join("README.md");
    assert!(fault_of_link(&page, "docs/absent.md").is_some());
    assert!(fault_of_link(&page, "docs/rules/README.md#nothing-of-the-kind").is_some());
    assert_eq!(fault_of_link(&page, "docs/rules/README.md#rules"), None);
}
