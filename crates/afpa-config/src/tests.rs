//! Tests of whole files: settings, and findings about them.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use super::*;

mod access;
mod acme;
mod errors;
mod fallbacks;
mod filters;
mod fleet;
mod headers;
mod hierarchy;
mod hints;
mod http3;
mod idle;
mod includes;
mod reach;
mod rounds;
mod traps;
mod zones;

fn machine() -> Machine {
    Machine {
        memory: 8 * GIB,
        cores: 4,
        unprivileged_ports: 1024,
        binds_any_port: false,
        watches: 1_000_000,
        descriptors: 1_000_000,
    }
}

fn parsed(text: &str) -> Result<Loaded, ConfigError> {
    parse_text(Source::new("afpa.toml", text), &Overrides::default(), &machine())
}

/// The message for `text`, to which a root is added.
#[track_caller]
fn refused(text: &str) -> String {
    parsed(text).expect_err("an error").to_string()
}

#[test]
fn a_root_is_all_that_a_file_needs() {
    let config = parsed("[[site]]\nroot = \"/srv/www\"\n").unwrap().config;
    assert_eq!(config.sites[0].root.as_deref(), Some(Path::new("/srv/www")));
    assert_eq!(config.sites[0].listen, [Listen::Tcp(SocketAddr::from(([127, 0, 0, 1], 8080)))]);
    assert_eq!(config.workers, 4);
    assert_eq!(config.cache.pinned_limit, 8 * GIB / 100 * 25);
    assert_eq!(config.limits.head, 32 * KIB);
    assert_eq!(config.timeouts.head, Duration::from_secs(10));
    assert_eq!(config.admin, None);
    assert_eq!(config.log.access, AccessTarget::Off);
}

#[test]
fn a_choice_that_is_a_number_may_be_written_as_one() {
    let text = |status: &str| {
        format!(
            "[[site]]\nroot = \"/srv\"\n[[site.path]]\nprefix = \"/a/\"\nredirect = \"/b/\"\nredirect_status = {status}\n"
        )
    };
    for status in ["301", "\"301\""] {
        let config = parsed(&text(status)).unwrap().config;
        let behaviour = &config.sites[0].paths[0].behaviour;
        assert_eq!(behaviour.redirect_status, RedirectStatus::MovedPermanently);
    }
    let error = refused(&text("309"));
    assert!(
        error.contains("`301`, `302`, `303`, `307` or `308`") || error.contains("did you mean"),
        "{error}"
    );
    let error = refused(&text("308").replace("redirect = ", "auth = "));
    assert!(!error.contains("did you mean"), "{error}");
}

#[test]
fn values_come_out_typed() {
    let text = r#"
        workers = 2
        user = "web"
        [limits]
        head = "16KiB"
        [cache]
        pinned_limit = "2GiB"
        policy = "s3-fifo"
        [shared_cache]
        limit = "50%"
        [compression]
        codings = ["gzip"]
        levels = { gzip = 9 }
        [log]
        access = "logs/access.log"
        [admin]
        listen = "127.0.0.1:9090"
        [[site]]
        root = "www"
        listen = ["[::]:80", "unix:/run/afpa/http.sock"]
        hosts = ["WWW.example.org"]
        headers = { X-Frame-Options = "DENY" }
        types = { md = "text/markdown; charset=utf-8" }
    "#;
    let config = parsed(text).unwrap().config;
    assert_eq!((config.workers, config.user.as_deref()), (2, Some("web")));
    assert_eq!(config.limits.head, 16 * KIB);
    assert_eq!(config.limits.of_requests().request_line, 4 * KIB);
    assert_eq!((config.cache.pinned_limit, config.cache.tables_limit), (2 * GIB, 2 * GIB / 5));
    assert_eq!(config.shared_cache.limit, 8 * GIB / 100 * 50);
    assert_eq!(config.cache.policy, Policy::S3Fifo);
    assert_eq!(config.compression.codings, [Coding::Gzip]);
    assert_eq!(config.compression.levels, Levels { br: 6, zstd: 9, gzip: 9 });
    // Relative to the file's folder, which these tests say is `/`.
    assert_eq!(config.log.access, AccessTarget::File("/logs/access.log".into()));
    assert_eq!(config.sites[0].root.as_deref(), Some(Path::new("/www")));
    assert_eq!(config.admin, Some(SocketAddr::from(([127, 0, 0, 1], 9090))));
    assert_eq!(config.sites[0].listen[1], Listen::Unix("/run/afpa/http.sock".into()));
    assert_eq!(config.sites[0].hosts, ["www.example.org"]);
    assert_eq!(config.sites[0].headers, [("X-Frame-Options".to_owned(), "DENY".to_owned())]);
}

#[test]
fn an_unknown_key_is_shown_with_the_one_that_was_meant() {
    let text = "[[site]]\nroot = \"/srv\"\nlisen = [\"[::]:80\"]\n";
    let expected = "\
afpa.toml:3:1: error: unknown setting `lisen` in [[site]]
  |
3 | lisen = [\"[::]:80\"]
  | ^^^^^
  = did you mean `listen`?";
    assert_eq!(refused(text), expected);
}

#[test]
fn a_key_in_the_wrong_section_is_sent_to_its_own() {
    let expected = "\
afpa.toml:1:1: error: unknown setting `root` in the top level
  |
1 | root = \"/srv\"
  | ^^^^
  = `root` belongs to [[site]]

afpa.toml: error: no `root`: which directory is to be served?
  = write under [[site]]: root = \"/var/www/html\"

2 errors";
    assert_eq!(refused("root = \"/srv\"\n"), expected);
}

#[test]
fn every_error_of_a_file_is_reported_at_once() {
    let text = "\
workers = 0
[limit]
head = 1
[limits]
head = \"16kb\"
connections = \"many\"
[timeouts]
idle = \"2d\"
[cache]
policy = \"lfru\"
pinned_limit = \"0%\"
[compression.level]
br = 3
[[site]]
root = \"/srv\"
listen = [\"8080\", \"localhost:80\"]
headers = { Date = \"today\" }
";
    let expected = "\
afpa.toml:1:11: error: `workers` is out of range
  |
1 | workers = 0
  |           ^
  = use 1 to 1024; the default is \"auto\"

afpa.toml:2:2: error: unknown section [limit]
  |
2 | [limit]
  |  ^^^^^
  = did you mean [limits]?

afpa.toml:5:8: error: `head`: \"16kb\" is not a size
  |
5 | head = \"16kb\"
  |        ^^^^^^
  = did you mean \"16KiB\"?

afpa.toml:6:15: error: `connections` takes a count, 1 to 1000000, not text
  |
6 | connections = \"many\"
  |               ^^^^^^
  = the default is `connections = 10000`

afpa.toml:8:8: error: `idle`: \"2d\" is not a duration
  |
8 | idle = \"2d\"
  |        ^^^^
  = write a number and a unit of ms, s, m or h: \"500ms\", \"10s\", \"5m\"

afpa.toml:10:10: error: `policy`: \"lfru\" is not known
   |
10 | policy = \"lfru\"
   |          ^^^^^^
   = did you mean \"lfu\"?

afpa.toml:11:16: error: `pinned_limit`: \"0%\" is not a share
   |
11 | pinned_limit = \"0%\"
   |                ^^^^
   = write a whole number from 1% to 100%, or a size such as \"2GiB\"

afpa.toml:12:14: error: unknown setting `level` in [compression]
   |
12 | [compression.level]
   |              ^^^^^
   = did you mean `levels`?

afpa.toml:16:11: error: `listen`: \"8080\" has no address
   |
16 | listen = [\"8080\", \"localhost:80\"]
   |           ^^^^^^
   = did you mean \"127.0.0.1:8080\" (this machine only) or \"0.0.0.0:8080\" (everyone)?

afpa.toml:16:19: error: `listen`: \"localhost:80\" is not a listen address (names are not looked up)
   |
16 | listen = [\"8080\", \"localhost:80\"]
   |                   ^^^^^^^^^^^^^^
   = write an IP address with a port, \"127.0.0.1:8080\" or \"[::]:80\", or \"unix:/path\"

afpa.toml:17:20: error: `headers`: AFPA writes the field Date itself
   |
17 | headers = { Date = \"today\" }
   |                    ^^^^^^^
   = remove it

11 errors";
    assert_eq!(refused(text), expected);
}

#[test]
fn syntax_errors_are_all_reported_and_nothing_else() {
    let message = refused("workers = \nlisen = 1\n[limits\n");
    assert!(message.contains("afpa.toml:1:"), "{message}");
    assert!(message.contains("afpa.toml:3:"), "{message}");
    assert!(!message.contains("lisen` in"), "{message}");
}

#[test]
fn a_key_given_twice_says_so() {
    let message = refused("workers = 1\nworkers = 2\n");
    assert!(message.contains("afpa.toml:2:1: error: duplicate key"), "{message}");
    assert!(message.contains("= keep one of the two"), "{message}");
}

#[test]
fn contradictions_are_errors() {
    let with_root = |text: &str| format!("{text}\n[[site]]\nroot = \"/a\"\n");
    let admin = refused(&with_root("[admin]\nlisten = \"127.0.0.1:8080\""));
    assert!(admin.contains("127.0.0.1:8080 is an address of the site too"), "{admin}");
    let twice = refused("[[site]]\nroot = \"/a\"\nlisten = [\"[::]:80\", \"[::]:80\"]\n");
    assert!(twice.contains("`listen` has [::]:80 twice"), "{twice}");
    assert!(refused("[[site]]\nroot = \"/a\"\nlisten = []\n").contains("nobody could connect"));
}

#[test]
fn subject_and_address_of_a_client_have_fields_that_a_server_can_tell_apart() {
    let text = |address: &str| {
        format!(
            "[[site]]\nto = \"app\"\n[[server_group]]\nname = \"app\"\nservers = [\"127.0.0.1:3000\"]\n\
             [server_group.request]\nclient_subject = \"X-Client\"\nclient_address = \"{address}\"\n"
        )
    };
    for alike in ["X-Client", "x-client", "X_Client"] {
        let error = refused(&text(alike));
        assert!(error.contains("afpa.toml:8:18: error: a server takes"), "{error}");
        assert!(error.contains("= give each of the two its own name"), "{error}");
    }
    assert!(parsed(&text("X-Client-Address")).is_ok());
}

#[test]
fn a_missing_root_is_named_with_its_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("afpa.toml");
    fs::write(&file, "[[site]]\nroot = \"gone\"\n").unwrap();
    let error = load(Some(&file), &Overrides::default(), &machine()).unwrap_err().to_string();
    let (file, root) = (file.display(), folder.path().join("gone"));
    let expected = format!(
        "{file}:2:8: error: directory {} does not exist\n  |\n2 | root = \"gone\"\n  |        ^^^^^^\n  = create it or correct `root`",
        root.display()
    );
    assert_eq!(error, expected);
}

#[test]
fn folders_and_accounts_have_to_exist() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("afpa.toml");
    let text = "\
user = \"no-such-user\"
group = \"no-such-group\"
[log]
access = \"logs/access.log\"
[control]
path = \"/nowhere/afpa.sock\"
[[site]]
root = \".\"
listen = [\"unix:/nowhere/http.sock\"]
";
    fs::write(&file, text).unwrap();
    let error = load(Some(&file), &Overrides::default(), &machine()).unwrap_err().to_string();
    let logs = folder.path().join("logs");
    for expected in [
        ":1:8: error: user \"no-such-user\" does not exist",
        ":2:9: error: group \"no-such-group\" does not exist",
        &format!(":4:10: error: `access`: directory {} does not exist", logs.display()),
        &format!("= create it: mkdir -p {}", logs.display()),
        ":6:8: error: `path`: directory /nowhere does not exist",
        ":9:10: error: `listen`: directory /nowhere does not exist",
    ] {
        assert!(error.contains(expected), "{expected:?} is missing in\n{error}");
    }
    assert!(error.ends_with("5 errors"), "{error}");
}

#[test]
fn a_missing_file_says_what_to_do() {
    let error = load(Some(Path::new("/none.toml")), &Overrides::default(), &machine()).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("/none.toml: error: No such file"), "{text}");
    assert!(text.ends_with("= create it, or name another file"), "{text}");
}

#[test]
fn options_go_before_the_file_and_are_blamed_by_name() {
    let mut overrides = Overrides::default();
    overrides.count("", "workers", "--workers", Some("3"));
    overrides.list("site", "listen", "--listen", &["[::1]:81".to_owned()]);
    overrides.path("site", "root", "DIR", Some(Path::new("/")));
    let source = Source::new("afpa.toml", "workers = 2\n[[site]]\nroot = \"/gone\"\n");
    let loaded = parse_text(source.clone(), &overrides, &machine()).unwrap();
    assert_eq!(loaded.config.workers, 3);
    assert_eq!(loaded.config.sites[0].root.as_deref(), Some(Path::new("/")));
    assert_eq!(loaded.settings.location("site", "root"), Location::Option("DIR"));

    let quoted = Source::new(
        "afpa.toml",
        "workers = \"2\"\n[http2]\ntls = \"true\"\n[[site]]\nroot = \"/\"\n",
    );
    let error = parse_text(quoted, &Overrides::default(), &machine()).unwrap_err().to_string();
    assert!(error.contains("write 2, without quotes"), "{error}");
    assert!(error.contains("write true, without quotes"), "{error}");

    let mut wrong = Overrides::default();
    wrong.count("", "workers", "--workers", Some("many"));
    let error = parse_text(source, &wrong, &machine()).unwrap_err();
    let expected = "\
--workers: error: `workers` takes a count, 1 to 1024, or `auto`, not text
  = the default is `workers = \"auto\"`";
    assert_eq!(error.to_string(), expected);
    assert!(error.is_usage());
}

#[test]
fn a_directory_alone_is_a_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let loaded = Config::for_directory(folder.path()).unwrap();
    assert_eq!(loaded.config.sites[0].root.as_deref(), Some(folder.path()));
    let file = folder.path().join("a");
    fs::write(&file, "").unwrap();
    let error = Config::for_directory(&file).unwrap_err().to_string();
    assert!(error.starts_with(&format!("DIR: error: {} is not a directory", file.display())));
}

#[test]
fn the_snapshot_of_the_shared_cache_has_a_folder_of_its_own() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("afpa.toml");
    let check = |snapshot: &str| {
        let site = "[[site]]\nto = \"127.0.0.1:9\"\n";
        fs::write(&file, format!("[shared_cache]\nsnapshot = \"{snapshot}\"\n{site}")).unwrap();
        match load(Some(&file), &Overrides::default(), &machine()) {
            Ok(loaded) => loaded.rendered_warnings(),
            Err(errors) => errors.to_string(),
        }
    };
    assert_eq!(check("made/file"), "");
    for (snapshot, expected) in [
        ("no/such/file", ":2:"),
        ("no/such/file", "= create it: mkdir -p"),
        (".", "is a directory"),
        ("afpa.toml/file", "is not a directory"),
    ] {
        let found = check(snapshot);
        assert!(found.contains("error") && found.contains(expected), "{found}");
    }
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let found = check("file");
    assert!(found.contains("warning") && found.contains("chmod go-w"), "{found}");
}

#[test]
fn what_deserves_a_look_is_a_warning() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let file = folder.path().join("afpa.toml");
    let text = "\
workers = 64
user = \"root\"
[cache]
pinned_limit = \"100%\"
[coherency]
watch = true
[limits]
connections = 1000000
[admin]
listen = \"0.0.0.0:9090\"
[[site]]
root = \".\"
listen = [\"[::]:80\"]
symlinks = \"always\"
dotfiles = true
";
    fs::write(&file, text).unwrap();
    let machine = Machine { watches: 60_000, ..machine() };
    let loaded = load(Some(&file), &Overrides::default(), &machine).unwrap();
    let warnings = loaded.rendered_warnings();
    for expected in [
        "64 workers share 4 cores",
        "would stay root",
        "leaves little of this machine's 8.0 GiB",
        "the system allows 60000 watches, not 65536",
        "the limits and the document roots need 2004865 descriptors, and this user may have 1000000",
        "can be read from other machines",
        "every user of this machine can write to",
        "port 80 needs a privilege",
        "every symbolic link within the root is followed",
        ".git and .env among them",
    ] {
        assert!(warnings.contains(expected), "{expected:?} is missing in\n{warnings}");
    }
    assert_eq!(loaded.warnings.len(), 10, "{warnings}");
}

#[test]
fn the_table_names_value_and_origin() {
    let mut overrides = Overrides::default();
    overrides.count("", "workers", "--workers", Some("3"));
    let source = Source::new("afpa.toml", "[[site]]\nroot = \"/srv\"\n");
    let table = parse_text(source, &overrides, &machine()).unwrap().table();
    let has = |words: &str| {
        let found = |line: &str| line.split_whitespace().eq(words.split_whitespace());
        assert!(table.lines().any(found), "{words:?} is missing in\n{table}");
    };
    has("workers 3 --workers");
    has("[limits]");
    has("head \"32KiB\" default");
    has("pinned_limit \"25%\" (2.0 GiB) default");
    has("[[site]]");
    has("root \"/srv\" line 2");
}

#[test]
fn the_explanation_names_what_is_in_force_and_why_a_line_a_setting() {
    let mut overrides = Overrides::default();
    overrides.count("", "workers", "--workers", Some("3"));
    let text = "[limits]\nhead = \"16KiB\"\n[cache]\npinned_limit = \"50%\"\n[log]\naccess = \"a.log\"\n\
                [[site]]\nroot = \"/srv\"\n[[site]]\nhosts = [\"b.org\"]\nroot = \"/b\"\n\
                [[site.path]]\nprefix = \"/a/\"\nstatus = 204\n";
    let explained = |overrides: &Overrides| {
        let source = Source::new("afpa.toml", text);
        parse_text(source, overrides, &machine()).unwrap().explanation()
    };
    let said = explained(&Overrides::default());
    for line in [
        "workers = 4 (from the cores: \"auto\", default)",
        "limits.head = \"16KiB\" (afpa.toml:2)",
        "limits.connections = 10000 (default)",
        "cache.pinned_limit = 4.0 GiB (from memory: \"50%\", afpa.toml:4)",
        "shared_cache.limit = 819.2 MiB (from memory: \"10%\", default)",
        "log.access = \"/a.log\" (afpa.toml:6)",
        "site[1].root = \"/srv\" (afpa.toml:8)",
        "site[2].hosts = [\"b.org\"] (afpa.toml:10)",
        "site[2].path[1].status = 204 (afpa.toml:14)",
        "fast_path.connections = \"known\" (default)",
    ] {
        assert!(said.lines().any(|said| said == line), "{line} is missing in\n{said}");
    }
    assert!(said.lines().all(|line| line.contains(" = ") && line.ends_with(')')), "{said}");
    assert!(!said.contains("internals"), "{said}");
    assert!(explained(&overrides).contains("workers = 3 (--workers)\n"));
}
