//! Variables, and configurations of several files.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use super::*;

/// A folder of files; the first is `afpa.toml`.
fn loaded(files: &[(&str, &str)], variables: &[(&str, &str)]) -> Result<Loaded, String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    load_folder(folder.path(), variables)
}

fn load_folder(folder: &Path, variables: &[(&str, &str)]) -> Result<Loaded, String> {
    let variables: HashMap<&str, &str> = variables.iter().copied().collect();
    let variable = |name: &str| variables.get(name).map(OsString::from);
    let known = Known { variable: &variable, ..Known::default() };
    let loaded = load_by(known, Some(&folder.join("afpa.toml")), &Overrides::default(), &machine());
    loaded.map_err(|error| error.to_string().replace(&format!("{}/", folder.display()), ""))
}

/// The message for files that cannot be used.
#[track_caller]
fn refuses(files: &[(&str, &str)], variables: &[(&str, &str)], says: &[&str]) {
    let error = loaded(files, variables).expect_err("an error");
    for says in says {
        assert!(error.contains(says), "{says}\nis not in\n{error}");
    }
}

const SITE: &str = "[[site]]\nroot = \"/\"\n";

#[test]
fn variables_are_texts_numbers_and_flags() {
    let text = "workers = \"${N}\"\n[[site]]\nroot = \"${ROOT:-/}\"\nhosts = [\"www.${NAME}\", \"${OTHER:-a.${NAME}}\"]\n\
                listing = \"${LIST}\"\nheaders = { X-A = \"a $${NAME} $5 $$ $$$${N} $$$${N} $$${N} {}\" }\n[limits]\nhead = \"${N}KiB\"\n\
                [[site.path]]\nprefix = \"/x/\"\nredirect = \"${EMPTY:-https://{host}/}\"\nredirect_status = \"${STATUS}\"\n\
                [[site.path]]\nprefix = \"/y/\"\nstatus = \"${STATUS}\"\n";
    let variables =
        [("N", "8"), ("NAME", "example.org"), ("LIST", "true"), ("EMPTY", ""), ("STATUS", "302")];
    let loaded = loaded(&[("afpa.toml", text)], &variables).unwrap();
    let (config, site) = (&loaded.config, &loaded.config.sites[0]);
    assert_eq!((config.workers, config.limits.head, site.listing), (8, 8 * KIB, true));
    assert_eq!(site.hosts, ["www.example.org", "a.example.org"]);
    assert_eq!(site.headers[0].1, "a ${NAME} $5 $$ $${N} $${N} $8 {}");
    let redirect = &site.paths[0].behaviour;
    assert_eq!(redirect.redirect.as_deref(), Some("https://{host}/"));
    assert_eq!(redirect.redirect_status.status().code(), 302);
    assert_eq!(site.paths[1].behaviour.status.unwrap().code(), 302);
}

#[test]
fn a_number_is_no_text_unless_a_variable_made_it() {
    refuses(
        &[("afpa.toml", &format!("workers = \"8\"\n{SITE}"))],
        &[],
        &["afpa.toml:1:11: error: `workers`: \"8\" is a text", "write 8, without quotes"],
    );
    refuses(
        &[("afpa.toml", &format!("workers = \"${{N}}\"\n{SITE}"))],
        &[("N", "many")],
        &["afpa.toml:1:11: error: `workers` takes a count", "not text"],
    );
}

#[test]
fn a_variable_without_a_value_is_named_at_its_place() {
    for (value, column, says, remedy) in [
        ("a${NAME}", 2, "the variable NAME is not set", "${NAME:-default}"),
        ("a${A:-${B}}", 2, "the variable B is not set", "${B:-default}"),
        ("${file:none}", 1, "the file none does not exist", "create it"),
        ("${file:.}", 1, "it is not a file", "name a text file"),
        ("${NAME", 1, "a variable that does not end", "$${"),
        ("${NAME:?why}", 1, "${NAME:?why} is neither a variable nor a file", "$${"),
        ("${}", 1, "${} is neither", "$${"),
        ("${a b}", 1, "${a b} is neither", "$${"),
    ] {
        let text = format!("{SITE}[site.headers]\nX-A = \"{value}\"\n");
        let column = match says.contains(" B ") {
            true => column + 5,
            false => column,
        };
        let place = format!("afpa.toml:4:{}: error: ", 7 + column);
        refuses(&[("afpa.toml", &text)], &[], &[&place, says, remedy]);
    }
    let deep = "${A:-".repeat(50) + &"}".repeat(50);
    let text = format!("{SITE}[site.headers]\nX-A = \"{deep}\"\n");
    refuses(&[("afpa.toml", &text)], &[], &["a variable that does not end"]);
}

#[test]
fn what_comes_from_a_file_is_used_and_not_shown() {
    let text = "[log]\naccess = \"${file:run/key}\"\n[[site]]\nroot = \"/\"\n[site.headers]\nX-Key = \"Bearer ${file:${CREDENTIALS_DIRECTORY}/key}\"\nX-B = \"${B}\"\n";
    let files = [("afpa.toml", text), ("run/key", "hunter2\r\n")];
    let loaded = loaded(&files, &[("CREDENTIALS_DIRECTORY", "run"), ("B", "b")]).unwrap();
    assert_eq!(loaded.config.sites[0].headers[0].1, "Bearer hunter2");
    let log = &loaded.config.log.access;
    assert!(matches!(log, AccessTarget::File(path) if path.ends_with("hunter2")));
    for shown in [loaded.table(), loaded.explanation(), loaded.as_one_file()] {
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains("Bearer ${file:${CREDENTIALS_DIRECTORY}/key}"), "{shown}");
    }
    assert!(loaded.as_one_file().contains("X-B = \"b\""));
    for (line, says) in [
        ("workers = \"${file:key}\"\n", "the content of the file is no count"),
        ("user = \"${file:key}\"\n", "the content of the file is no user name"),
        ("[log]\nformat = \"${file:key}\"\n", "the content of the file is no "),
    ] {
        let text = format!("{line}{SITE}");
        let files = [("afpa.toml", text.as_str()), ("key", "hunter 2\n")];
        let error = super::includes::loaded(&files, &[]).expect_err("an error");
        assert!(error.contains(says) && !error.contains("hunter"), "{error}");
    }
    // Nor does a message of a check that comes later.
    for line in [
        "to = \"${file:key}\"\n",
        "root = \"/${file:key}\"\n",
        "root = \"/\"\nphp = \"${file:key}\"\n",
    ] {
        let text = format!("[[site]]\n{line}");
        let files = [("afpa.toml", text.as_str()), ("key", "Hunter-Two\n")];
        let error = super::includes::loaded(&files, &[]).expect_err("an error").to_lowercase();
        assert!(error.contains("${file:key}") && !error.contains("hunter"), "{error}");
    }
    let text = format!("{SITE}headers = {{ X-A = \"${{file:key}}\" }}\n");
    let files = [("afpa.toml", text.as_str()), ("key", "hunter\ntwo\n")];
    let error = super::includes::loaded(&files, &[]).expect_err("an error");
    assert!(error.contains("has a line break") && !error.contains("hunter"), "{error}");
}

#[test]
fn files_are_put_together_in_order() {
    let main = "include = [\"sites/*.toml\", \"none/*.toml\", \"limits.toml\"]\nworkers = 2\n[log]\nlevel = \"info\"\n[[site]]\nhosts = [\"main\"]\nroot = \"/\"\n";
    let site = |name: &str| format!("[[site]]\nhosts = [\"{name}\"]\nroot = \"www\"\n");
    let (a, b) = (site("a"), site("b"));
    let nested = format!("include = [\"../more/c.toml\"]\n{}", site("b2"));
    let loaded = loaded(
        &[
            ("afpa.toml", main),
            ("sites/b.toml", &format!("{b}\n{nested}").replace("\ninclude = [\"../more/c.toml\"]", "")),
            ("sites/a.toml", &format!("include = [\"../more/c.toml\"]\n{a}")),
            ("sites/.hidden.toml", "nonsense"),
            ("sites/www/x", ""),
            ("more/c.toml", &site("c")),
            ("more/www/x", ""),
            ("limits.toml", "[log]\naccess = \"off\"\n[[server_group]]\nname = \"g\"\nservers = [\"127.0.0.1:1\"]\n"),
        ],
        &[],
    )
    .unwrap();
    let hosts: Vec<_> = loaded.config.sites.iter().map(|site| site.hosts[0].as_str()).collect();
    assert_eq!(hosts, ["main", "a", "c", "b", "b2"]);
    let root = |at: usize| loaded.config.sites[at].root.clone().unwrap();
    assert!(root(1).ends_with("sites/www") && root(2).ends_with("more/www"));
    assert_eq!(loaded.config.groups.len(), 1);
    let explained = loaded.explanation();
    assert!(explained.contains("more/c.toml:2)"), "{explained}");
    let table = loaded.table();
    assert!(table.contains("line 2") && table.contains("more/c.toml:2"), "{table}");
    // The one file that comes out says the same.
    let text = loaded.as_one_file();
    assert!(text.starts_with("workers = 2\n\n[log]  # "), "{text}");
    let again = parsed(&text).unwrap().config;
    let hosts: Vec<_> = again.sites.iter().map(|site| site.hosts[0].as_str()).collect();
    assert_eq!(hosts, ["main", "a", "c", "b", "b2"]);
}

#[test]
fn errors_of_included_files_have_their_places() {
    let main = format!("include = [\"a.toml\", \"b.toml\"]\nlisen = 1\n{SITE}");
    refuses(
        &[
            ("afpa.toml", &main),
            ("a.toml", "# one\n\n[limits]\n  hed = 1"),
            ("b.toml", "[log]\nlevel = \"lod\"\n"),
        ],
        &[],
        &[
            "afpa.toml:2:1: error: unknown setting `lisen`",
            "a.toml:4:3: error: unknown setting `hed`",
            "  |\n4 |   hed = 1\n  |   ^^^",
            "b.toml:2:9: error: `level`",
            "3 errors",
        ],
    );
    refuses(
        &[("afpa.toml", &main), ("a.toml", "a ="), ("b.toml", "c = \"${NONE}\"\n")],
        &[],
        &["a.toml:1:4: error: ", "b.toml:1:6: error: the variable NONE is not set"],
    );
}

#[test]
fn what_is_there_twice_names_both_places() {
    let main = format!("include = [\"a.toml\"]\nworkers = 2\n[log]\nlevel = \"info\"\n{SITE}");
    refuses(
        &[
            ("afpa.toml", &main),
            ("a.toml", "workers = 3\n[log]\naccess = \"off\"\nlevel = \"debug\"\n"),
        ],
        &[],
        &[
            "a.toml:1:1: error: `workers` is set in two files",
            "= the other one is in afpa.toml:2",
            "a.toml:4:1: error: `log.level` is set in two files",
            "= the other one is in afpa.toml:4",
        ],
    );
    let site = "[[site]]\nhosts = [\"a\"]\nroot = \"/\"\n";
    let group = "[[server_group]]\nname = \"g\"\nservers = [\"127.0.0.1:1\"]\n";
    let both = format!("{site}{group}");
    refuses(
        &[("afpa.toml", &format!("include = [\"a.toml\"]\n{both}")), ("a.toml", &both)],
        &[],
        &[
            "a.toml:2:9: error: the host \"a\" on",
            "= the other one is in afpa.toml:3",
            "a.toml:5:8: error: there are two server groups called \"g\"",
            "= the other one is in afpa.toml:6",
        ],
    );
    refuses(
        &[
            ("afpa.toml", &format!("include = [\n\"a.toml\", \"./?.toml\"]\n{SITE}")),
            ("a.toml", ""),
        ],
        &[],
        &[
            "afpa.toml:2:11: error: ",
            "a.toml is included twice",
            "= the other one is in afpa.toml:2",
        ],
    );
}

#[test]
fn a_file_that_includes_itself_is_refused_with_the_way() {
    let main = format!("include = [\"a/b.toml\"]\n{SITE}");
    refuses(
        &[
            ("afpa.toml", &main),
            ("a/b.toml", "include = [\"c.toml\"]"),
            ("a/c.toml", "include = [\"../*.toml\"]"),
        ],
        &[],
        &[
            "a/c.toml:1:12: error: a file that includes itself: \
             afpa.toml includes a/b.toml includes a/c.toml includes a/../afpa.toml",
            "= remove one of these lines",
        ],
    );
    let own = format!("include = [\"afpa.toml\"]\n{SITE}");
    refuses(&[("afpa.toml", &own)], &[], &["afpa.toml includes afpa.toml"]);
}

#[test]
fn a_name_without_a_file_is_refused_and_a_pattern_is_not() {
    for (name, says, remedy) in [
        ("none.toml", "none.toml: No such file", "create it"),
        ("sites", "sites: it is not a file", "name a text file"),
        ("site*", "sites: it is not a file", "name a text file"),
        ("***", "is not a pattern", "sites/*.toml"),
    ] {
        let main = format!("include = [\"{name}\"]\n{SITE}");
        refuses(
            &[("afpa.toml", &main), ("sites/x", "")],
            &[],
            &["afpa.toml:1:12: error: ", says, remedy],
        );
    }
    let main = format!("include = [\"none/*.toml\"]\n{SITE}");
    loaded(&[("afpa.toml", &main)], &[]).unwrap();
}
