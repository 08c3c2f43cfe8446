//! The same pages' examples before a browser: a single-page application, and pages of other origins.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use afpa_testkit::server::free_address;
use afpa_testkit::{Endpoint, skip};
use afpa_tests::browser::{Browser, recorder};

use super::apps::App;
use super::place::{Page, Place};

/// The document of every route: its parts have absolute paths, as bundlers write them.
const DOCUMENT: &str = r#"<!doctype html>
<title>shop</title>
<link rel="stylesheet" href="/assets/app.css">
<main></main>
<script type="module" src="/assets/app.js"></script>
"#;

/// A client-side router: it begins at `/`, goes to a route, loads that anew, and goes back.
const ROUTER: &str = r#"
import { render } from "/assets/render.js";
const report = (name, text) => fetch(`/report/${name}?${encodeURIComponent(text)}`);
const step = Number(sessionStorage.getItem("step") ?? 0);
sessionStorage.setItem("step", step + 1);
render(location.pathname);
const shown = () => document.querySelector("main").textContent;
if (step === 0) {
  await report("start", shown());
  history.pushState(null, "", "/basket/42?x=1");
  location.reload();
} else if (step === 1) {
  const colour = getComputedStyle(document.querySelector("main")).color;
  await report("reloaded", `${shown()} ${location.search} ${colour}`);
  const absent = await fetch("/assets/none.js");
  const chunk = await import("/assets/none.js").then(() => "there", () => "absent");
  await report("assets", `${absent.status} ${chunk}`);
  const said = await fetch("/api/basket", { method: "POST", body: "item" });
  await report("api", (await said.text()).split("\n")[0]);
  history.pushState(null, "", "/orders/");
  render(location.pathname);
  addEventListener("popstate", () => { render(location.pathname); report("back", shown()); });
  history.back();
}
"#;

const RENDER: &str = "export const render = (path) => { document.querySelector(\"main\").textContent = `route ${path}`; };\n";

/// Puts JSON with a field of its own to another origin, reads the answer, then goes on to the page `NEXT`.
const ORIGIN: &str = r#"<!doctype html>
<title>page</title>
<script>
"use strict";
const put = fetch("API/api/items", {
  method: "PUT",
  headers: { "Content-Type": "application/json", "X-Own": "1" },
  body: JSON.stringify({ name: "ann" }),
  credentials: "include",
});
put.then((said) => said.text()).then((text) => text.split("\n")[0], () => "refused")
  .then((text) => fetch(`/report/OWN?${encodeURIComponent(text)}`))
  .then(() => { if ("NEXT") { location = "NEXT"; } });
</script>
"#;

/// The next report, without its escapes.
#[track_caller]
fn report(reports: &Receiver<String>) -> String {
    let report = reports.recv_timeout(Duration::from_secs(60)).expect("a report of the page");
    let report = report.replace("%20", " ").replace("%2F", "/").replace("%3F", "?");
    report.replace("%2C", ",").replace("%3D", "=")
}

#[test]
fn a_single_page_application_goes_on_where_it_was_reloaded() {
    let page = Page::of("fallback.md");
    let [example] = page.blocks("toml");
    let app = match App::node() {
        Ok(app) => app,
        Err(why) => skip!("{why}"),
    };
    let (recorder, reports) = recorder();
    let mut place = Place::default();
    for (name, content) in [
        ("index.html", DOCUMENT),
        ("assets/app.js", ROUTER),
        ("assets/render.js", RENDER),
        ("assets/app.css", "main { color: rgb(1, 2, 3); }"),
    ] {
        place.file(&format!("/srv/shop/{name}"), content);
    }
    place.replace("127.0.0.1:3000", app.to());
    let to = recorder.to();
    let server =
        place.serve(&format!("{example}\n[[site.path]]\nprefix = \"/report/\"\nto = \"{to}\"\n"));
    let _browser = match Browser::chromium(&server.url()) {
        Ok(browser) => browser,
        Err(why) => skip!("{why}"),
    };
    for expected in [
        "start?route /",
        "reloaded?route /basket/42 ?x=1 rgb(1, 2, 3)",
        "assets?404 absent",
        "api?node POST /api/basket 4",
        "back?route /basket/42",
    ] {
        assert_eq!(report(&reports), format!("/report/{expected}"));
    }
}

#[test]
fn a_page_of_an_allowed_origin_writes_by_cors_and_another_does_not() {
    let page = Page::of("headers.md");
    let [example] = page.blocks("toml");
    let app = match App::node() {
        Ok(app) => app,
        Err(why) => skip!("{why}"),
    };
    let (recorder, reports) = recorder();
    let (allowed, refused) = (free_address(), free_address());
    let mut place = Place::default();
    place.file("/srv/shop/index.html", "shop");
    place.replace("127.0.0.1:3000", app.to());
    place.replace("https://app.example.org", format!("http://{allowed}"));
    let api = place.serve(&example);
    let document = |own: &str, next: &str| {
        ORIGIN.replace("API", &api.url()).replace("OWN", own).replace("NEXT", next)
    };
    let other = Place::default();
    other.file("/srv/allowed/index.html", document("allowed", &format!("http://{refused}/")));
    other.file("/srv/refused/index.html", document("refused", ""));
    let site = |address, folder: &str| {
        format!(
            "[[site]]\nlisten = [\"{address}\"]\nroot = \"/srv/{folder}\"\n\
             [[site.path]]\nprefix = \"/report/\"\nto = \"{}\"\n",
            recorder.to()
        )
    };
    let both = format!("{}{}", site(allowed, "allowed"), site(refused, "refused"));
    let _pages = other.serve_with(&both, |launch| {
        launch.endpoint(Endpoint::Tcp(allowed)).listen(Endpoint::Tcp(refused));
    });
    let _browser = match Browser::chromium(&format!("http://{allowed}/")) {
        Ok(browser) => browser,
        Err(why) => skip!("{why}"),
    };
    assert_eq!(report(&reports), "/report/allowed?node PUT /api/items 14");
    assert_eq!(report(&reports), "/report/refused?refused");
    // The preflight of the second page was all that came of it: the application was asked by the first, and now.
    let said = api.get("/api/count");
    assert!(said.text().ends_with("\ncount: 2\n"), "{said:?}");
}
