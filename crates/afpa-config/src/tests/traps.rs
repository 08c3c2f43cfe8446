//! Values that are valid, and mean something else than they seem to.

use super::*;

#[test]
fn paths_and_patterns_that_mean_something_else_are_told_with_their_line() {
    let site = "[[site]]\nroot = \"/\"\n";
    let path = |lines: &str| format!("{site}[[site.path]]\n{lines}\nstatus = 410\n");
    let content = |lines: &str| {
        let group = format!("[[site.path.content]]\n{lines}\nstatus = 410\n");
        format!("{site}[[site.path]]\nprefix = \"/\"\n{group}")
    };
    for (text, line, remedy) in [
        (path("prefix = \"/a%20b/\""), 4, "write \"/a b/\""),
        (path("prefix = \"/a?b=1/\""), 4, "if_query"),
        (path("prefix = \"/api/*\""), 4, "write \"/api/\": "),
        (
            format!("{site}[[site.header]]\nprefix = \"/a%20b/\"\nremove = [\"Server\"]"),
            4,
            "write \"/a b/\"",
        ),
        (
            format!("{site}[[site.filter]]\nprefix = \"/a%20b/\"\nincludes = true"),
            4,
            "write \"/a b/\"",
        ),
        (
            format!("{site}[[site.hint]]\nprefix = \"/img/*\"\nkeep = \"always\""),
            4,
            "write \"/img/\": ",
        ),
        (
            path("prefix = \"/a/\"")
                + "[[site.path.header]]\nprefix = \"/a/?b\"\nremove = [\"Server\"]",
            7,
            "if_query",
        ),
        (path("prefix = \"/a/\"\nif_path = [\"/a/b%3b*\"]"), 5, "write \"/a/b;*\""),
        (path("prefix = \"/a/\"\nif_path = [\"/a/*.x*y\"]"), 5, "write '~^/a/.*\\.x.*y$'"),
        (content("if_query = { \"a%5B%5D\" = \"1\" }"), 6, "write \"a[]\""),
        (content("if_query = { a = \"x%20y\" }"), 6, "write \"x y\""),
        (content("if_headers = { User-Agent = \"A*B*\" }"), 6, "write '~^A.*B'"),
        (content("if_cookies = { a = \"*b*c\" }"), 6, "write '~b.*c$'"),
    ] {
        let warnings = parsed(&text).expect("it is valid").warnings;
        let found = warnings.iter().find(|one| one.remedy.contains(remedy));
        let found = found.unwrap_or_else(|| panic!("{text}: {warnings:?}"));
        let Location::File(span) = &found.location else { panic!("{text}: {found:?}") };
        assert_eq!(text[..span.start].lines().count(), line, "{text}");
    }
    for (text, line, cause) in [
        (format!("{site}headers = {{ X-A = \"$host\" }}\n"), 3, "`headers` has $host"),
        (format!("{site}[[site.header]]\nadd = {{ X-A = \"{{host}}\" }}\n"), 4, "`add` has {host}"),
        (
            path("prefix = \"/a/\"")
                + "[[site.path.header]]\nrequest_set = { X-Real-IP = \"{client}\" }",
            7,
            "`request_set` has {client}",
        ),
    ] {
        let warnings = parsed(&text).expect("it is valid").warnings;
        let found = warnings.iter().find(|one| one.cause.contains(cause));
        let found = found.unwrap_or_else(|| panic!("{text}: {warnings:?}"));
        let Location::File(span) = &found.location else { panic!("{text}: {found:?}") };
        assert_eq!(text[..span.start].lines().count(), line, "{text}");
    }
    for text in [
        path("prefix = \"/a b/100%/\""),
        path("prefix = \"/a/\"\nif_path = ['~^/a/%20?*x']"),
        content("if_query = { a = '~%20', b = \"*b*\" }\nif_headers = { User-Agent = \"*bot*\" }"),
    ] {
        let warnings = parsed(&text).expect("it is valid").warnings;
        assert_eq!(warnings.len(), 0, "{text}: {warnings:?}");
    }
}

#[test]
fn a_rewrite_with_escapes_is_the_target_that_it_shows() {
    let rewrite = |prefix: &str, new: &str| {
        let to = "to = \"127.0.0.1:3000\"";
        let path = format!("[[site.path]]\nprefix = \"{prefix}\"\n{to}\nrewrite = \"{new}\"\n");
        let config = parsed(&format!("[[site]]\n{path}")).unwrap().config;
        let hierarchy = Hierarchy::of(&config, &mut |_| 0);
        hierarchy.table.sites[0].paths[0].contents[0].rewrite.clone()
    };
    let target = |text: &str| Some(afpa_router::Rewrite::Target(text.into()));
    assert_eq!(rewrite("/old/", "/a%20b/"), target("/a%20b/{rest}"));
    assert_eq!(rewrite("/old/", "/a%2Fb/"), target("/a%2Fb/{rest}"));
    let plain = |head: &str| {
        let head = head.as_bytes().to_vec();
        Some(afpa_router::Rewrite::Prefix { strip: "/old".len(), head })
    };
    assert_eq!(rewrite("/old/", "/a b/"), plain("/a b"));
    assert_eq!(rewrite("/old/", "/100%/"), plain("/100%"));
}

#[test]
fn addresses_and_sections_in_the_wrong_place_say_where_they_belong() {
    let behind = refused("[[site.path]]\nprefix = \"/\"\n[[site]]\nroot = \"/\"\n");
    assert!(behind.contains("afpa.toml:3:3: error: duplicate key"), "{behind}");
    assert!(behind.contains("stand behind it: move them there"), "{behind}");
    let site = "[[site]]\n[[site.path]]\nprefix = \"/\"\n";
    let rewrite = refused(&format!("{site}rewrite = \"https://b.example/\"\n"));
    assert!(rewrite.contains("write `redirect` to send clients there"), "{rewrite}");
    let kind = refused("[[server_group]]\nname = 5\nservers = [\"a:1\"]\n[[site]]\nto = \"a:1\"\n");
    assert!(kind.contains("it has no default: docs/configuration.md shows"), "{kind}");
    let prefix = refused("[[site]]\nroot = \"/\"\n[[site.path]]\nprefix = \"a\"\nstatus = 404\n");
    assert!(prefix.contains("= write \"/a\"") && !prefix.contains("2 errors"), "{prefix}");
    let root = refused("[[site]]\nroot = \"/\"\n[[site.path]]\nprefix = \"/a\"\nroot = \"/\"\n");
    assert!(root.contains("which does not end with a slash"), "{root}");
    assert!(!root.contains("the rewritten path"), "{root}");
    let servers = |list: &str| {
        refused(&format!(
            "[[server_group]]\nname = \"a\"\nservers = [{list}]\n[[site]]\nto = \"a\"\n"
        ))
    };
    let url = servers("\"https://b.example\"");
    assert!(url.contains("is not the address of a server") && !url.contains("2 errors"), "{url}");
    let weight = servers("{ to = \"b:1\", weight = -1 }");
    assert!(
        weight.trim_end().ends_with("= use 0 to 1000") && !weight.contains("2 errors"),
        "{weight}"
    );
    let nul = refused("[[site]]\nroot = \"/a\\u0000\"\n");
    assert!(nul.contains("no path has the character \\u0000"), "{nul}");
}

#[test]
fn a_printed_file_has_the_numbers_that_variables_made_in_tables_of_servers() {
    for more in ["", ", \"127.0.0.1:2\""] {
        let server = "{ to = \"127.0.0.1:1\", weight = \"${NONE_OF_THESE:-3}\" }";
        let text = format!(
            "[[server_group]]\nname = \"a\"\nservers = [{server}{more}]\n[[site]]\nto = \"a\"\n\
             headers = {{ X-A = \"${{NONE_OF_THESE:-3}}\" }}\nroot = \"/\"\n"
        );
        let printed = parsed(&text).unwrap().as_one_file();
        assert!(printed.contains("weight = 3") && printed.contains("X-A = \"3\""), "{printed}");
        let again = parsed(&printed).unwrap().config;
        assert_eq!(again.groups[0].settings.servers[0].weight, 3);
    }
}
