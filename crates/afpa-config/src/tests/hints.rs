//! Hints in whole files.

use super::*;

/// The hints of the first directory.
fn hints(text: &str) -> Vec<RootHint> {
    let loaded = parsed(text).unwrap();
    let hierarchy = ListenerNumbers::default().hierarchy(&loaded.config);
    hierarchy.roots[0].hints.clone()
}

#[test]
fn prefixes_are_those_of_urls_wherever_a_directory_is_mounted() {
    let text = r#"
        [[site]]
        [[site.hint]]
        keep = "always"
        [[site.hint]]
        prefix = "/img/icons/"
        weight = 3
        [[site.hint]]
        prefix = "/other/"
        weight = 2
        [[site.path]]
        prefix = "/img/"
        root = "/srv/images"
    "#;
    let hints = hints(text);
    let prefixes: Vec<_> = hints.iter().map(|hint| hint.prefix.as_str()).collect();
    assert_eq!(prefixes, ["/", "/icons/"]);
    assert_eq!((hints[0].keep, hints[1].weight), (Keep::Always, 3));
}

#[test]
fn the_root_of_a_site_has_all_of_its_hints() {
    let text = r#"
        [[site]]
        root = "/srv/www"
        [[site.hint]]
        prefix = "/a/"
        extensions = ["ISO", "none"]
        keep = "never"
        [[site.hint]]
        expiry = "90s"
    "#;
    let hints = hints(text);
    assert_eq!(hints[0].extensions, ["iso", "none"]);
    assert_eq!(hints[0].keep, Keep::Never);
    assert_eq!(hints[1].expiry, Duration::from_secs(90));
}

#[test]
fn a_hint_that_contradicts_itself_is_refused_where_it_does() {
    let text = "\
[[site]]
root = \"/srv\"
[[site.hint]]
keep = \"never\"
weight = 3
";
    let expected = "\
afpa.toml:5:10: error: `weight` has no effect on what is never kept
  |
5 | weight = 3
  |          ^
  = remove `weight`, or `keep`";
    assert_eq!(refused(text), expected);
}

#[test]
fn two_hints_for_one_file_are_refused() {
    let text = "\
[[site]]
root = \"/srv\"
[[site.hint]]
extensions = [\"css\", \"js\"]
weight = 3
[[site.hint]]
extensions = [\"js\"]
weight = 2
";
    let refused = refused(text);
    assert!(refused.starts_with("afpa.toml:6:1: error: another hint of this site"), "{refused}");
    assert!(refused.contains("write one hint for both"), "{refused}");
}

#[test]
fn words_that_mean_nothing_here_have_a_remedy() {
    let others = refused("[[site]]\nroot = \"/srv\"\n[[site.hint]]\nextensions = [\"others\"]\n");
    assert!(others.contains("leave the list empty"), "{others}");
    let brackets = refused("[[site]]\nroot = \"/srv\"\n[site.hint]\nweight = 2\n");
    assert!(brackets.contains("write [[site.hint]]"), "{brackets}");
    let key = refused("[[site]]\nroot = \"/srv\"\n[[site.hint]]\nwieght = 2\n");
    assert!(key.contains("did you mean `weight`?"), "{key}");
    let keep = refused("[[site]]\nroot = \"/srv\"\n[[site.hint]]\nkeep = \"pin\"\n");
    assert!(keep.contains("`auto`, `always` or `never`"), "{keep}");
}

#[test]
fn a_hint_without_effect_is_a_warning() {
    let warned = |text: &str| {
        let warnings = parsed(text).unwrap().warnings;
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        format!("{:?}", warnings[0])
    };
    let root = "[[site]]\nroot = \"/srv\"\n";
    assert!(warned(&format!("{root}[[site.hint]]\n")).contains("says nothing"));
    let both = format!("{root}[[site.hint]]\nkeep = \"always\"\nweight = 2\n");
    assert!(warned(&both).contains("always kept"));
    let to = "[[site]]\nto = \"127.0.0.1:3000\"\n[[site.hint]]\nweight = 2\n";
    assert!(warned(to).contains("nothing of this site is cached"));
}
