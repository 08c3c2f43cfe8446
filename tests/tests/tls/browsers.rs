//! Browsers behind which nobody stands open a page over HTTP/2, and report by which protocol it came.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use afpa_testkit::{Tree, eventually_within, skip, tree::patterned};
use afpa_tests::browser::{self, Browser};
use afpa_tests::tls::{Authority, TlsServer};

/// Asks for more parts than a browser has connections by HTTP/1.1, and reports when all of them are there.
const PAGE: &str = r#"<!doctype html>
<title>page</title>
<script>
"use strict";
const parts = Array.from({ length: 30 }, (_, at) => fetch(`/part${at}.bin`).then((part) => part.arrayBuffer()));
Promise.all(parts).then((all) => {
  const length = all.reduce((sum, part) => sum + part.byteLength, 0);
  const protocols = performance.getEntries().map((entry) => entry.nextHopProtocol).filter(Boolean);
  fetch(`/report?${length}-${[...new Set(protocols)].join("-")}`);
});
</script>
"#;

/// A browser that trusts the authority. `database`: where it looks for that below its home; `arguments` are made from its home.
fn open(
    program: &str,
    authority: &Authority,
    database: &str,
    arguments: impl Fn(&Path) -> Vec<String>,
) -> Option<Browser> {
    let home = browser::home();
    let database = home.path().join(database);
    std::fs::create_dir_all(&database).expect("a folder");
    trust(&database, authority)?;
    let arguments = arguments(home.path());
    Browser::start(program, home, &arguments).ok()
}

/// Has the browsers of this data base of NSS trust the authority; `None`: there is no program for that.
fn trust(database: &Path, authority: &Authority) -> Option<()> {
    let database = format!("sql:{}", database.display());
    let certutil = |arguments: &[&str]| {
        let mut command = Command::new("certutil");
        command.args(["-d", &database]).args(arguments).output().ok()
    };
    certutil(&["-N", "--empty-password"])?;
    let file = authority.path().display().to_string();
    let added = certutil(&["-A", "-n", "authority", "-t", "C,,", "-i", &file])?;
    assert!(added.status.success(), "{added:?}");
    Some(())
}

/// Opens the page, and waits for its report in the log.
fn visit(agent: &str, browse: impl Fn(&Authority, &str) -> Option<Browser>) {
    let (tree, authority) = (Tree::new(), Authority::new());
    tree.file("index.html", PAGE);
    for part in 0..30 {
        tree.file(format!("part{part}.bin"), patterned(10_000));
    }
    let server = TlsServer::written(tree.path(), |plain, tls| {
        // A browser looks `localhost` up by itself.
        let files = authority.issue("address", &[&tls.ip().to_string()]);
        let text = format!(
            "[log]\naccess = \"-\"\naccess_format = \"json\"\n{}[[site]]\nlisten = [\"{plain}\"]\n\
             tls = [\"{tls}\"]\nroot = \"{}\"\n",
            files.section(),
            tree.path().display()
        );
        (text, Box::new(|_| {}))
    });
    let Some(browser) = browse(&authority, &format!("https://{}/", server.tls)) else {
        skip!("no {agent}, or no certutil")
    };
    eventually_within(Duration::from_secs(60), "the page reports", || {
        server.server.log().contains("/report?")
    });
    drop(browser);
    let log = server.server.log();
    let line = log.lines().find(|line| line.contains("/report?")).expect("it is there");
    assert!(line.contains("/report?300000-h2\""), "{line}");
    assert!(line.contains("\"protocol\":\"h2\"") && line.contains("\"TLSv1.3\""), "{line}");
    assert!(line.contains(agent), "{line}");
}

#[test]
fn firefox_loads_a_page_over_http2() {
    visit("Firefox/", |authority, url| {
        open("firefox-esr", authority, "profile", |home| {
            let profile = home.join("profile");
            let preferences = "user_pref(\"datareporting.policy.dataSubmissionEnabled\", false);\n\
                               user_pref(\"browser.shell.checkDefaultBrowser\", false);\n\
                               user_pref(\"network.proxy.type\", 0);\n";
            std::fs::write(profile.join("user.js"), preferences).expect("written");
            let profile = profile.display().to_string();
            ["--headless", "--no-remote", "--profile", &profile, url].map(str::to_owned).to_vec()
        })
    });
}

#[test]
fn chromium_loads_a_page_over_http2() {
    visit("Chrome/", |authority, url| {
        open("chromium", authority, ".pki/nssdb", |home| browser::chromium(home, &[url]))
    });
}
